"""Takes commits and uncommitted work out of an agent's copy on a host, by git there; nothing of it is believed."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters.git import Repository, fetch_bundle
from swarm_tui.adapters.git.copy_view import VIEW_SCRIPT
from swarm_tui.adapters.git.names import branch_ref, checked_revision
from swarm_tui.adapters.process import Finished
from swarm_tui.errors import AdapterError, SwarmError
from swarm_tui.model.text import plain
from swarm_tui.places.ssh_link import SshLink

if TYPE_CHECKING:
    from swarm_tui.places.ssh import SshPlace

BUNDLE_LIMIT: Final = 1 << 30
_GIT_TIMEOUT: Final = 600.0
_BUNDLE: Final = ".git/swarm-pulled.bundle"
_STATUS_SCRIPT: Final = (
    VIEW_SCRIPT
    + """
look_into . || exit 1
git -c core.fsmonitor=false status --porcelain -z --no-renames --untracked-files=normal --ignore-submodules=dirty
"""
)
_PATCH_SCRIPT: Final = (
    VIEW_SCRIPT
    + """
set -e
look_into .
{
  git diff-files --name-only -z --ignore-submodules=dirty
  git ls-files --others --exclude-standard -z
} | git update-index -z --add --remove --stdin
git rm -r --cached --quiet --ignore-unmatch -- "$1"
git diff --cached --binary --no-ext-diff --no-textconv --submodule=short HEAD
"""
)


async def fetch_from_far_copy(
    place: SshPlace, copy: str, repository: Repository, *, base: str, branch: str, ref: str
) -> str:
    """Fetch a branch of a copy as `ref`; return its tip, or "" when it has no commit of its own or the copy is gone."""
    link = place.link
    if not await _is_copy(link, copy):
        return ""
    name = branch_ref(branch)
    found = await link.run(["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"], cwd=copy)
    if found.code != 0 or found.text.strip() == base:
        return ""
    bundle = f"{copy}/{_BUNDLE}"
    await _git(link, copy, "bundle", "create", "--quiet", bundle, f"^{checked_revision(base)}", name)
    try:
        with tempfile.TemporaryDirectory(prefix="swarm-bundle-") as folder:
            target = Path(folder) / "branch.bundle"
            if not await place.fetch_path(bundle, target, limit=BUNDLE_LIMIT):
                raise AdapterError(f"the commits of {branch} could not be packed on {link.access.name}")
            return await asyncio.to_thread(fetch_bundle, repository, target, branch=branch, into=ref)
    finally:
        await link.run(["rm", "-f", bundle])


async def far_uncommitted_paths(link: SshLink, copy: str, without: str) -> tuple[str, ...]:
    """Return what a copy holds beyond its last commit, outside one folder; nothing when the copy is gone."""
    if not await _is_copy(link, copy):
        return ()
    status = await link.run(["sh", "-c", _STATUS_SCRIPT], cwd=copy, timeout=_GIT_TIMEOUT)
    if status.code != 0:
        raise AdapterError(f"git status failed on {link.access.name}: {plain(status.error_text, 300)}")
    paths = (field[3:] for field in status.stdout.decode("utf-8", "surrogateescape").split("\0") if field)
    return tuple(path for path in paths if path.split("/")[0] != without)


async def far_uncommitted_patch(link: SshLink, copy: str, without: str, limit: int) -> bytes:
    """Return the same as one patch; SwarmError when there is too much for one."""
    paths = await far_uncommitted_paths(link, copy, without)
    if not paths:
        return b""
    too_large = SwarmError(f"it is larger than {limit // 1_000_000} MB", f"it stays in {copy} on {link.access.name}")
    measured = await link.ask("measure", paths=[f"{copy}/{path}" for path in paths], limit=limit, timeout=_GIT_TIMEOUT)
    if not isinstance(measured.get("size"), int) or measured["size"] > limit:
        raise too_large
    finished = await link.run(["sh", "-c", _PATCH_SCRIPT, "patch", without], cwd=copy, timeout=_GIT_TIMEOUT)
    if finished.code != 0:
        raise AdapterError(f"git failed on {link.access.name}: {plain(finished.error_text, 300)}")
    if finished.is_truncated or len(finished.stdout) > limit:
        raise too_large
    return finished.stdout


async def _is_copy(link: SshLink, copy: str) -> bool:
    """Return whether a copy is there; where its `.git` is broken, git would go up and find another repository."""
    if not copy or (await link.run(["test", "-e", f"{copy}/.git"])).code != 0:
        return False
    found = await link.run(["sh", "-c", 'test "$(git rev-parse --show-toplevel)" = "$(pwd -P)"'], cwd=copy)
    if found.code != 0:
        raise SwarmError(f"{copy} is no git repository any more", "its files are still there")
    return True


async def _git(link: SshLink, copy: str, *words: str) -> Finished:
    finished = await link.run(["git", *words], cwd=copy, timeout=_GIT_TIMEOUT)
    if finished.code != 0:
        raise AdapterError(f"git {words[0]} failed on {link.access.name}: {plain(finished.error_text, 300)}")
    return finished

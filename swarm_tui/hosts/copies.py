"""Fetch commits and uncommitted work from an agent's copy, here and by ssh."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters.git import Repository, create_bundle, fetch_bundle
from swarm_tui.adapters.git.copy_view import VIEW_SCRIPT, view_of_copy, view_without_git
from swarm_tui.adapters.git.history import EVERY_SUBMODULE
from swarm_tui.adapters.git.names import branch_ref, checked_revision
from swarm_tui.adapters.processes.run import finish_in_thread
from swarm_tui.errors import AdapterError, SwarmError
from swarm_tui.hosts.link import SshLink
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.hosts.ssh import SshHost


_LOCAL_FETCHED: Final = "fetched"
"""The branch of a view that points at the commit to be fetched."""


def fetch_from_copy(repository: Repository, copy: Path, *, base: str, tip: str, ref: str) -> str:
    """Fetch a commit of a copy as `ref` and return it; "" when it adds nothing to the base, or the copy is gone."""
    if tip == base or not (copy / ".git").exists():
        return ""
    with view_of_copy(copy) as view, tempfile.TemporaryDirectory(prefix="swarm-") as folder:
        bundle = Path(folder) / "branch.bundle"
        view.update_ref(branch_ref(_LOCAL_FETCHED), tip, old=None)
        if not create_bundle(view, bundle, base=base, branch=_LOCAL_FETCHED):
            return ""
        return fetch_bundle(repository, bundle, branch=_LOCAL_FETCHED, into=ref)


def uncommitted_paths(copy: Path, without: str) -> tuple[str, ...]:
    """Return what a copy holds beyond its last commit, outside one folder; nothing when the copy is gone."""
    if not (copy / ".git").exists():
        return ()
    with view_of_copy(copy) as view:
        return _dirty_paths(view, without)


def _dirty_paths(view: Repository, without: str) -> tuple[str, ...]:
    # To look for changes inside a submodule, git would run in it, by the submodule's settings.
    words = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty")
    paths = (field[3:] for field in view.run(*words).fields)
    return tuple(path for path in paths if path.split("/")[0] != without)


def uncommitted_patch(copy: Path, without: str, limit: int) -> bytes:
    """Return the same as one patch; SwarmError when there is too much for one."""
    if not (copy / ".git").exists():
        return b""
    with view_of_copy(copy) as view:
        return _patch_in(view, copy, without, limit)


def patch_without_git(repository: Repository, copy: Path, base: str, without: str, limit: int) -> bytes:
    """Return what a copy whose `.git` was deleted holds beyond a commit, outside one folder, as one patch."""
    if (copy / ".git").exists() or not copy.is_dir():
        return b""
    with view_without_git(repository, copy, base) as view:
        return _patch_in(view, copy, without, limit)


def _patch_in(view: Repository, copy: Path, without: str, limit: int) -> bytes:
    paths = _dirty_paths(view, without)
    if not paths:
        return b""
    if _is_larger(copy, paths, limit):
        raise SwarmError(f"it is larger than {limit // 1_000_000} MB", f"it stays in {copy}")
    return _whole_difference(view, without)


def _whole_difference(repository: Repository, without: str) -> bytes:
    # `git add` would run git inside submodules, by their settings.
    changed = repository.run("diff-files", "--name-only", "-z", "--ignore-submodules=dirty", timeout=600).stdout
    changed += repository.run("ls-files", "--others", "--exclude-standard", "-z", timeout=600).stdout
    repository.run("update-index", "-z", "--add", "--remove", "--stdin", stdin=changed, timeout=600)
    repository.run("rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", without)
    words = ("diff", "--cached", "--binary", "--no-ext-diff", "--no-textconv", "--submodule=short", EVERY_SUBMODULE)
    return repository.run(*words, "HEAD", timeout=600).stdout


def _is_larger(copy: Path, paths: Iterable[str], limit: int) -> bool:
    """Return whether files and whole folders of a copy hold more than so many bytes; links are not followed."""
    left, waiting = limit, [copy / path for path in paths]
    while waiting and left >= 0:
        path = waiting.pop()
        try:
            if path.is_dir() and not path.is_symlink():
                waiting += path.iterdir()
            else:
                left -= path.lstat().st_size
        except OSError:
            # A removed file has no size, and what may not be read cannot be kept.
            continue
    return left < 0


BUNDLE_LIMIT: Final = 1 << 30
_GIT_TIMEOUT: Final = 600.0
_BUNDLE: Final = ".git/swarm-pulled.bundle"
_FETCHED: Final = "fetched"
_NOTHING_TO_PACK: Final = 3
_BUNDLE_SCRIPT: Final = (
    VIEW_SCRIPT
    + f"""
look_into . || exit 1
git update-ref refs/heads/{_FETCHED} "$1" || exit 1
excluded=
git cat-file -e "$2^{{commit}}" 2>/dev/null && excluded="^$2"
[ -n "$(git rev-list --max-count=1 refs/heads/{_FETCHED} $excluded)" ] || exit {_NOTHING_TO_PACK}
git bundle create --quiet "$3" refs/heads/{_FETCHED} $excluded
"""
)
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
    place: SshHost, copy: str, repository: Repository, *, base: str, tip: str, ref: str
) -> str:
    """Fetch a commit of a copy as `ref` and return it; "" when it adds nothing to the base, or the copy is gone."""
    link = place.link
    if tip == base or not await _is_copy(link, copy):
        return ""
    bundle = f"{copy}/{_BUNDLE}"
    words = ["sh", "-c", _BUNDLE_SCRIPT, "bundle", checked_revision(tip), checked_revision(base), bundle]
    try:
        packed = await link.run(words, cwd=copy, timeout=_GIT_TIMEOUT)
        if packed.code == _NOTHING_TO_PACK:
            return ""
        with tempfile.TemporaryDirectory(prefix="swarm-bundle-") as folder:
            target = Path(folder) / "branch.bundle"
            if packed.code != 0 or not await place.fetch_path(bundle, target, limit=BUNDLE_LIMIT):
                reason = plain(packed.error_text, 300)
                raise AdapterError(f"cannot pack the commits up to {tip[:12]} on {link.access.name}: {reason}")
            return await finish_in_thread(partial(fetch_bundle, repository, target, branch=_FETCHED, into=ref))
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

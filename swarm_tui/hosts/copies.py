"""Fetch commits and uncommitted work from an agent's copy, on any host."""

from __future__ import annotations

import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import Repository, fetch_bundle
from swarm_tui.adapters.git.copy_view import VIEW_SCRIPT
from swarm_tui.adapters.git.names import checked_revision
from swarm_tui.adapters.processes.run import OUTPUT_LIMIT, Finished, finish_in_thread
from swarm_tui.errors import AdapterError, SwarmError, shortage_in_words
from swarm_tui.hosts.protocol import Host
from swarm_tui.model.text import plain

BUNDLE_LIMIT: Final = 1 << 30
_GIT_TIMEOUT: Final = 600.0
_CHECK_TIMEOUT: Final = 60.0
_FETCHED: Final = "fetched"
_BUNDLE: Final = "branch.bundle"
_BUNDLE_FOLDER: Final = re.compile(r"/.*/swarm-bundle\.\w{10}")
_GONE, _NOTHING, _TOO_LARGE = 10, 11, 12

_CHECK_SCRIPT: Final = f"""
cd "$1" 2>/dev/null && [ -e .git ] || exit {_GONE}
[ "$(git rev-parse --show-toplevel 2>/dev/null)" = "$(pwd -P)" ]
"""
_LOOK: Final = f"look_into . || exit {_GONE}\n"
_BUNDLE_SCRIPT: Final = f"""
git update-ref refs/heads/{_FETCHED} "$1" || exit 1
excluded=
git cat-file -e "$2^{{commit}}" 2>/dev/null && excluded="^$2"
[ -n "$(git rev-list --max-count=1 refs/heads/{_FETCHED} $excluded)" ] || exit {_NOTHING}
folder=$(mktemp -d "${{TMPDIR:-/tmp}}/swarm-bundle.XXXXXXXXXX") || exit 1
git bundle create --quiet "$folder/{_BUNDLE}" refs/heads/{_FETCHED} $excluded || {{ rm -rf "$folder"; exit 1; }}
printf '%s\\n' "$folder"
"""
# To look for changes inside a submodule, git would run in it, with the submodule's settings.
_STATUS_SCRIPT: Final = """
git status --porcelain -z --no-renames --untracked-files=normal --ignore-submodules=dirty -- . ":(exclude,literal)$1"
"""
_PATCH_SCRIPT: Final = f"""
set -e
{{
  git diff-files --name-only -z --ignore-submodules=dirty -- . ":(exclude,literal)$1"
  git ls-files --others --exclude-standard -z -- . ":(exclude,literal)$1"
}} > "$view/changed"
[ -s "$view/changed" ] || exit 0
# A removed file has no size.
xargs -0 ls -lnd -- < "$view/changed" 2>/dev/null | awk -v limit="$2" '{{ size += $5 }} END {{ exit size > limit }}' ||
  exit {_TOO_LARGE}
git update-index -z --add --remove --stdin < "$view/changed"
git diff --cached --binary --no-ext-diff --no-textconv --submodule=short --ignore-submodules=none HEAD
"""
_LOOK_WITHOUT_GIT: Final = f"""
[ -d "$3" ] && [ ! -e "$3/.git" ] || exit {_GONE}
make_view "$4" "$5" "$6" || exit 1
cd "$3" || exit 1
export GIT_DIR="$view/git" GIT_WORK_TREE="$PWD" GIT_INDEX_FILE="$view/index"
git read-tree "$6" || exit 1
"""


async def fetch_commits(host: Host, copy: str, repository: Repository, *, base: str, tip: str, ref: str) -> str:
    """Fetch a commit of a copy as `ref` and return it; "" if it adds nothing to the base or the copy is gone."""
    if tip == base:
        return ""
    words = (checked_revision(tip), checked_revision(base))
    packed = await _run_in_copy(host, copy, _LOOK + _BUNDLE_SCRIPT, *words)
    if packed is None or packed.code == _NOTHING:
        return ""
    folder = _checked(host, packed, f"cannot pack the commits up to {tip[:12]}").text.strip()
    if not _BUNDLE_FOLDER.fullmatch(folder):
        raise AdapterError(f"invalid path of a bundle on {host.name}: {plain(folder, 80)!r}")
    try:
        with tempfile.TemporaryDirectory(prefix="swarm-bundle-") as target_folder:
            target = Path(target_folder) / _BUNDLE
            await host.fetch_file(f"{folder}/{_BUNDLE}", target, limit=BUNDLE_LIMIT)
            return await finish_in_thread(partial(fetch_bundle, repository, target, branch=_FETCHED, into=ref))
    finally:
        await host.run(["rm", "-rf", "--", folder])


async def uncommitted_paths(host: Host, copy: str, *, without: str) -> tuple[str, ...]:
    """Return the uncommitted files of a copy outside the folder `without`; nothing if the copy is gone."""
    status = await _run_in_copy(host, copy, _LOOK + _STATUS_SCRIPT, without)
    if status is None:
        return ()
    fields = _checked(host, status, "git status failed").stdout.decode("utf-8", "surrogateescape").split("\0")
    return tuple(field[3:] for field in fields if field)


async def uncommitted_patch(host: Host, copy: str, *, without: str, limit: int) -> bytes:
    """Return the uncommitted work of a copy outside the folder `without`, as one patch.

    Raise SwarmError if the changed files or the patch are larger than `limit` bytes.
    """
    script = _LOOK + _PATCH_SCRIPT
    return _patch(host, copy, await _run_in_copy(host, copy, script, without, str(limit), output_limit=limit))


async def patch_without_git(
    host: Host, copy: str, repository: Repository, *, base: str, without: str, limit: int
) -> bytes:
    """Return the difference between a commit and a copy on this machine whose `.git` was deleted, as one patch."""
    where = (copy, str(repository.common_directory.absolute()), repository.object_format, base)
    script = VIEW_SCRIPT + _LOOK_WITHOUT_GIT + _PATCH_SCRIPT
    words = ["sh", "-c", script, "patch", without, str(limit), *where]
    finished = await host.run(words, timeout=_GIT_TIMEOUT, output_limit=limit)
    return _patch(host, copy, None if finished.code == _GONE else finished)


def _patch(host: Host, copy: str, finished: Finished | None) -> bytes:
    if finished is None:
        return b""
    if finished.code == _TOO_LARGE or finished.is_truncated:
        raise SwarmError("the uncommitted work is too large to be copied", f"it stays in {copy} on {host.name}")
    return _checked(host, finished, "cannot compare the files").stdout


async def _run_in_copy(
    host: Host, copy: str, script: str, *words: str, output_limit: int = OUTPUT_LIMIT
) -> Finished | None:
    """Run a script in a copy, with a view of it; return None if the copy is gone."""
    if not copy:
        return None
    # With a short timeout: git waits forever for a settings file that is a pipe.
    check = await host.run(["sh", "-c", _CHECK_SCRIPT, "check", copy], timeout=_CHECK_TIMEOUT)
    if check.code == _GONE:
        return None
    if check.code != 0:
        raise SwarmError(f"not a git repository any more: {copy}", "its files are still there")
    called = ["sh", "-c", VIEW_SCRIPT + script, "copy", *words]
    finished = await host.run(called, cwd=copy, timeout=_GIT_TIMEOUT, output_limit=output_limit)
    return None if finished.code == _GONE else finished


def _checked(host: Host, finished: Finished, problem: str) -> Finished:
    if finished.code != 0:
        reason = plain(finished.error_text, 300)
        raise shortage_in_words(reason) or AdapterError(f"{problem} on {host.name}: {reason}")
    return finished

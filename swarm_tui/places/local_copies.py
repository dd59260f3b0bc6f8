"""Takes commits and uncommitted work out of an agent's copy of the repository on this machine."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.names import branch_ref, checked_ref
from swarm_tui.errors import SwarmError


def fetch_from_copy(repository: Repository, copy: Path, *, base: str, branch: str, ref: str) -> str:
    """Fetch a branch of a copy as `ref`; return its tip, or "" when it has no commit of its own or the copy is gone."""
    if not (copy / ".git").exists():
        return ""
    tip = _open_copy(copy).ref(branch_ref(branch))
    if tip is None or tip == base:
        return ""
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
    source = f"+{branch_ref(branch)}:{checked_ref(ref)}"
    repository.run("-c", "fetch.fsckObjects=true", "fetch", *options, str(copy.absolute()), source, timeout=600)
    return repository.ref(ref) or ""


def uncommitted_paths(copy: Path, without: str) -> tuple[str, ...]:
    """Return what a copy holds beyond its last commit, outside one folder; nothing when the copy is gone."""
    if not (copy / ".git").exists():
        return ()
    dirty = _open_copy(copy).dirty_paths()
    return tuple(path for path in dirty if path.split("/")[0] != without)


def uncommitted_patch(copy: Path, without: str, limit: int) -> bytes:
    """Return the same as one patch; SwarmError when there is too much for one."""
    paths = uncommitted_paths(copy, without)
    if not paths:
        return b""
    if _is_larger(copy, paths, limit):
        raise SwarmError(f"it is larger than {limit // 1_000_000} MB", f"it stays in {copy}")
    return _with_copied_index(_open_copy(copy), lambda repository: _whole_difference(repository, without))


def _open_copy(copy: Path) -> Repository:
    """Open a copy; where its `.git` is broken, git would go up and find another repository."""
    repository = Repository.open(copy)
    if repository.root.resolve() != copy.resolve():
        raise SwarmError(f"{copy} is no git repository any more", "its files are still there")
    return repository


def _whole_difference(repository: Repository, without: str) -> bytes:
    repository.run("add", "--all", "--", ".", timeout=600)
    repository.run("rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", without)
    words = ("diff", "--cached", "--binary", "--no-ext-diff", "--no-textconv", "HEAD")
    return repository.run(*words, timeout=600).stdout


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


def _with_copied_index(repository: Repository, work: Callable[[Repository], bytes]) -> bytes:
    """Work on a copy of the index: the agent's own stays as the agent left it."""
    with tempfile.TemporaryDirectory(prefix="swarm-index-") as folder:
        index = Path(folder) / "index"
        own = repository.git_directory / "index"
        if own.exists():
            shutil.copyfile(own, index)
        return work(repository.with_environment({"GIT_INDEX_FILE": str(index)}, repository.root))

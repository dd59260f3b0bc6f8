"""Takes commits and uncommitted work out of an agent's copy of the repository on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.copy_view import view_of_copy
from swarm_tui.adapters.git.names import branch_ref, checked_ref
from swarm_tui.errors import SwarmError


def fetch_from_copy(repository: Repository, copy: Path, *, base: str, branch: str, ref: str) -> str:
    """Fetch a branch of a copy as `ref`; return its tip, or "" when it has no commit of its own or the copy is gone."""
    if not (copy / ".git").exists():
        return ""
    source = branch_ref(branch)
    with view_of_copy(copy, source) as (view, tip):
        if not tip or tip == base:
            return ""
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
        wanted = (str(view.git_directory), f"+{source}:{checked_ref(ref)}")
        repository.run("-c", "fetch.fsckObjects=true", "fetch", *options, *wanted, timeout=600)
    return repository.ref(ref) or ""


def uncommitted_paths(copy: Path, without: str) -> tuple[str, ...]:
    """Return what a copy holds beyond its last commit, outside one folder; nothing when the copy is gone."""
    if not (copy / ".git").exists():
        return ()
    with view_of_copy(copy) as (view, _):
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
    with view_of_copy(copy) as (view, _):
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
    words = ("diff", "--cached", "--binary", "--no-ext-diff", "--no-textconv", "--submodule=short", "HEAD")
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

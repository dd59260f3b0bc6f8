"""Brings an agent's commits into the user's repository under a ref of ours, and keeps uncommitted work as a patch."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import NoSpaceForGit, Repository, fetch_bundle
from swarm_tui.adapters.git.names import branch_ref, checked_ref
from swarm_tui.agents.contract import OUTPUT_FOLDER
from swarm_tui.agents.judging import CommitSummary
from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import write_beside

PATCH_LIMIT: Final = 32_000_000
COMMIT_LIMIT: Final = 200


@dataclass(frozen=True, slots=True)
class Brought:
    """The commits of one agent, now in the user's repository."""

    tip: str = ""
    commits: tuple[CommitSummary, ...] = ()
    problem: str = ""


def bring_commits(
    repository: Repository, *, base: str, branch: str, ref: str, bundle: Path | None, copy: Path | None
) -> Brought:
    """Fetch an agent's commits from its bundle, else from its copy; what went wrong with the bundle is told.

    NoSpaceForGit says nothing about the agent: then the fetch is to be repeated.
    """
    problem = ""
    if bundle is not None:
        try:
            return _look_at(repository, base, fetch_bundle(repository, bundle, branch=branch, into=ref))
        except NoSpaceForGit:
            raise
        except SwarmError as error:
            problem = str(error)
    if copy is None or not (copy / ".git").exists():
        return Brought(problem=problem)
    try:
        tip = _fetch_from_copy(repository, copy, base, branch, ref)
        brought = _look_at(repository, base, tip) if tip else Brought()
    except NoSpaceForGit:
        raise
    except SwarmError as error:
        return Brought(problem=problem or str(error))
    return Brought(brought.tip, brought.commits, problem)


def _fetch_from_copy(repository: Repository, copy: Path, base: str, branch: str, ref: str) -> str:
    """Fetch a branch out of an agent's copy; nothing when it holds no commit of its own."""
    tip = _open_copy(copy).ref(branch_ref(branch))
    if tip is None or tip == base:
        return ""
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance")
    source = f"+{branch_ref(branch)}:{checked_ref(ref)}"
    repository.run("-c", "fetch.fsckObjects=true", "fetch", *options, str(copy.absolute()), source, timeout=600)
    return repository.ref(ref) or ""


def _open_copy(copy: Path) -> Repository:
    """Open an agent's copy; where its `.git` is broken, git would go up and find somebody else's repository."""
    repository = Repository.open(copy)
    if repository.root.resolve() != copy.resolve():
        raise SwarmError(f"{copy} is no git repository any more", "its files are still there")
    return repository


def _look_at(repository: Repository, base: str, tip: str) -> Brought:
    limit = f"--max-count={COMMIT_LIMIT}"
    rows = repository.run("log", "-z", "--reverse", limit, "--format=%H %s", tip, f"^{base}", "--").fields
    commits = tuple(CommitSummary(commit, subject) for commit, _, subject in (row.partition(" ") for row in rows))
    return Brought(tip, commits)


def uncommitted_paths(copy: Path) -> tuple[str, ...]:
    """Return what a copy holds beyond its last commit, its test output aside; nothing when it is no copy any more."""
    if not (copy / ".git").exists():
        return ()
    dirty = _open_copy(copy).dirty_paths()
    return tuple(path for path in dirty if path.split("/")[0] != OUTPUT_FOLDER)


def keep_uncommitted(copy: Path, patch: Path) -> bool:
    """Write what a copy holds beyond its last commit as a patch; False when there is nothing.

    A patch is either whole or not written: where there is too much for one, SwarmError says that it stays in the copy.
    """
    paths = uncommitted_paths(copy)
    if not paths:
        return False
    if _is_larger(copy, paths, PATCH_LIMIT):
        raise SwarmError(f"it is larger than {PATCH_LIMIT // 1_000_000} MB", f"it stays in {copy}")
    content = _with_own_index(_open_copy(copy), _whole_difference)
    if not content:
        return False
    write_beside(patch, content)
    return True


def _whole_difference(repository: Repository) -> bytes:
    repository.run("add", "--all", "--", ".", timeout=600)
    repository.run("rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", OUTPUT_FOLDER)
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


def _with_own_index(repository: Repository, work: Callable[[Repository], bytes]) -> bytes:
    """Work on a copy of the index, so that the agent's own stays as the agent left it."""
    with tempfile.TemporaryDirectory(prefix="swarm-index-") as folder:
        index = Path(folder) / "index"
        own = repository.git_directory / "index"
        if own.exists():
            shutil.copyfile(own, index)
        return work(repository.with_environment({"GIT_INDEX_FILE": str(index)}, repository.root))

"""Copies of a repository on disk for agents, rankings and test runs; the user's own checkout is never one of them."""

from __future__ import annotations

import shutil
from pathlib import Path

from swarm_tui.doors.git.names import branch_ref, checked_branch, checked_revision
from swarm_tui.doors.git.repository import Repository
from swarm_tui.errors import UsageError


def clone_into(
    repository: Repository, folder: Path, *, commit: str, branch: str | None = None, is_shared: bool = True
) -> Repository:
    """Make a clone with `commit` checked out, on a new branch or detached, and without any remote.

    A shared clone borrows the objects of the first one: quick and small, and not for longer than that one lives.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", "give a folder that does not exist yet")
    commit = repository.resolve(commit)
    shared = ("--shared",) if is_shared else ("--no-hardlinks",)
    source = str(repository.common_directory.absolute())
    arguments = ("clone", "--quiet", "--no-checkout", "--no-tags", *shared, "--", source, str(folder.absolute()))
    repository.run(*arguments, timeout=600)
    clone = Repository.open(folder)
    clone.run("remote", "remove", "origin")
    if branch is None:
        clone.run("checkout", "--quiet", "--detach", commit, timeout=600)
    else:
        clone.run("checkout", "--quiet", "-B", checked_branch(branch), commit, timeout=600)
    return clone


def add_worktree(repository: Repository, folder: Path, *, commit: str, branch: str | None = None) -> Repository:
    """Add a worktree with `commit` checked out, on a new branch or detached."""
    commit = repository.resolve(commit)
    where = ("-b", checked_branch(branch)) if branch is not None else ("--detach",)
    repository.run("worktree", "add", "--quiet", *where, str(folder.absolute()), commit, timeout=600)
    return Repository.open(folder)


def remove_worktree(repository: Repository, folder: Path) -> None:
    """Remove a worktree that we added, with all that lies in it."""
    repository.run("worktree", "remove", "--force", str(folder.absolute()), codes=(0, 128), timeout=600)
    shutil.rmtree(folder, ignore_errors=True)
    repository.run("worktree", "prune")


def switch_to(repository: Repository, branch: str) -> None:
    """Check a branch out in the user's own checkout. Only ever after the person has said yes to just this."""
    branch_ref(branch)
    repository.run("switch", "--quiet", "--no-guess", checked_revision(branch), timeout=600)

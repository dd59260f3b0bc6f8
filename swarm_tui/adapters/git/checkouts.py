"""Makes copies of a repository on disk, for agents, rankings and test runs, and new repositories."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.command import GitError
from swarm_tui.adapters.git.names import checked_branch
from swarm_tui.adapters.git.objects import ObjectSpace, write_alternates
from swarm_tui.adapters.git.repository import Repository, import_gitpython
from swarm_tui.errors import UsageError
from swarm_tui.regular_file import read_regular

NOTHING_IS_CONVERTED: Final = "* -text -eol -filter -ident -working-tree-encoding\n"
"""Attributes by which files are read and written as they are stored, and no filter runs."""

_SETTING_FILES: Final = ("config", "config.worktree", "commondir", "info/attributes")


def clone_into(repository: Repository, folder: Path, *, commit: str, branch: str | None = None) -> Repository:
    """Make a clone with `commit` checked out, on a new branch or detached, without any remote or other ref.

    It borrows the objects of the first one, which makes it quick and small, and valid only while that one is there.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", "give a folder that does not exist yet")
    commit = repository.resolve(commit)
    clone = borrow_objects(repository, folder, [repository.common_directory.absolute() / "objects"])
    if branch is None:
        clone.run("checkout", "--quiet", "--detach", commit, timeout=600)
    else:
        clone.run("checkout", "--quiet", "-B", checked_branch(branch), commit, timeout=600)
    return clone


def check_out_tree(
    space: ObjectSpace, tree: str, folder: Path, *, parent: str, is_verbatim: bool = False
) -> Repository:
    """Make a repository whose checkout is this tree, committed on top of `parent`; it is valid as long as the space.

    With `is_verbatim`, files are written as they are stored: no line ending is converted, and no filter runs.
    """
    scratch = borrow_objects(space.original, folder, space.object_folders)
    if is_verbatim:
        (folder / ".git/info").mkdir(exist_ok=True)
        (folder / ".git/info/attributes").write_text(NOTHING_IS_CONVERTED)
    # Versions of a project are often found by its tags.
    tags = space.original.refs("refs/tags")
    if tags:
        commands = "".join(f"create {name} {target}\n" for name, target in tags.items())
        scratch.run("update-ref", "--stdin", stdin=os.fsencode(commands))
    change_tree(space, scratch, tree, parent=parent)
    return scratch


def borrow_objects(repository: Repository, folder: Path, object_folders: Sequence[Path]) -> Repository:
    """Make a repository that has all the commits of another one, and none of its refs and settings.

    `git clone --shared` would apply the user's settings for clones, and does not share a shallow history.
    """
    folder.mkdir(parents=True, exist_ok=True)
    form = f"--object-format={repository.object_format}"
    init = ("-c", "init.defaultBranch=scratch", "init", "--quiet", "--template=", form, "--", str(folder.absolute()))
    repository.run(*init)
    objects = folder / ".git/objects"
    (objects / "info").mkdir(exist_ok=True)
    write_alternates(objects, object_folders)
    if repository.is_shallow:
        shutil.copyfile(repository.common_directory / "shallow", folder / ".git/shallow")
    return Repository.open(folder)


def change_tree(space: ObjectSpace, scratch: Repository, tree: str, *, parent: str, is_cleaned: bool = True) -> None:
    """Check another tree out in a scratch repository; what git ignores stays, other new files go if `is_cleaned`."""
    commit = space.synthetic_commit(tree, parent)
    scratch.run("checkout", "--quiet", "--force", "--detach", commit, timeout=600)
    if is_cleaned:
        scratch.run("clean", "--quiet", "-ffd", timeout=600)


def settings_of(scratch: Repository) -> dict[str, bytes]:
    """Return the files of a scratch repository that choose what git runs in it, for `restore_settings`."""
    git = scratch.root / ".git"
    return {name: read_regular(git / name) for name in _SETTING_FILES if (git / name).is_file()}


def restore_settings(scratch: Repository, settings: Mapping[str, bytes]) -> None:
    """Put these files back as they were: tests that ran there may have named filters, which git would run for us."""
    git = scratch.root / ".git"
    try:
        if git.is_symlink() or not git.is_dir() or (git / "info").is_symlink():
            raise GitError(f"{scratch.root} is no git repository any more", "the tests that ran there have replaced it")
        for name in _SETTING_FILES:
            path = git / name
            if path.is_symlink() or path.exists():
                path.unlink()
            if name in settings:
                path.write_bytes(settings[name])
    except OSError as error:
        raise GitError(f"{git} cannot be written", error.strerror or str(error)) from error


def init_repository(folder: Path, *, branch: str, identity: tuple[str, str]) -> Repository:
    """Make a new repository in a folder, with the identity for commits in its own configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    # `Repo.init` always expands a `$NAME` in the path.
    import_gitpython().GitCommandWrapperType(folder).init(initial_branch=checked_branch(branch))
    repository = Repository.open(folder)
    for name, value in zip(("user.name", "user.email"), identity, strict=True):
        repository.run("config", "--local", name, value)
    return repository

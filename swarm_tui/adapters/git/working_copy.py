"""Reads the state of an agent's copy without running anything of it: no hook, no filter, none of its settings."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Final, Self

from swarm_tui.adapters.git.checkouts import NOTHING_IS_CONVERTED, borrow_objects
from swarm_tui.adapters.git.command import GitError
from swarm_tui.adapters.git.copy_view import LITTER, write_exclude
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.adapters.scratch import ScratchFolder

_SNAPSHOT_TIMEOUT: Final = 120.0


class WorkingCopy:
    """A copy of a repository in which somebody works. Close it, or use it in a `with`."""

    def __init__(self, repository: Repository, folder: Path, *, hidden: str) -> None:
        """`hidden` is a folder in the copy that is not part of the work."""
        copy = Repository.open(folder)
        self.folder = folder
        self._copy = copy
        self._scratch = ScratchFolder("swarm-changes-")
        objects = (copy.common_directory.absolute() / "objects", repository.common_directory.absolute() / "objects")
        made = borrow_objects(repository, self._scratch.path / "own", objects)
        git = made.git_directory.absolute()
        (git / "info").mkdir(exist_ok=True)
        (git / "info/attributes").write_text(NOTHING_IS_CONVERTED)
        write_exclude(copy.common_directory, git, f"/{hidden}/", LITTER)
        self._git = git
        self.object_folders = (git / "objects", *objects)
        """Where the objects of the copy, and those of its snapshots, are."""
        self._own = made.with_environment({"GIT_DIR": str(git), "GIT_WORK_TREE": str(folder.absolute())}, folder)

    def close(self) -> None:
        self._scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def head(self) -> str:
        """Return the last commit of the copy."""
        return self._copy.resolve("HEAD")

    def snapshot(self) -> str:
        """Return the tree of the files as they are, with what is not committed and not ignored."""
        with contextlib.suppress(OSError):
            # It says which files are as they were, so that only the others are read.
            shutil.copyfile(self._copy.git_directory / "index", self._git / "index")
        add = ("add", "--all", "--ignore-errors", "--", ".")
        try:
            self._own.run(*add, timeout=_SNAPSHOT_TIMEOUT)
        except GitError:
            (self._git / "index").unlink(missing_ok=True)
            self._own.run("read-tree", self.head())
            # 1: a file could not be read.
            self._own.run(*add, timeout=_SNAPSHOT_TIMEOUT, codes=(0, 1))
        return self._own.run("write-tree").text

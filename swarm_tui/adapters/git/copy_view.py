"""Read an agent's copy without acting on its settings."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Final, Self

from swarm_tui.adapters.git.checkouts import NOTHING_IS_CONVERTED, borrow_objects
from swarm_tui.adapters.git.command import GitError
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.files import read_regular

LITTER: Final = "__pycache__/"
"""Python leaves these folders in every copy. They are not work, even if the project's .gitignore does not name them."""

VIEW_SCRIPT: Final = r"""
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
view=$(mktemp -d "${TMPDIR:-/tmp}/swarm-view.XXXXXXXXXX") || exit 1
trap 'rm -rf "$view"' EXIT
git() { command git -c core.fsmonitor=false -c core.quotePath=false -c core.hooksPath=/dev/null "$@"; }
# look_into COPY: let git work on a copy, for the rest of this script. Fail if the copy is gone or not a repository any
# more: git would go up and find another one.
look_into() {
  unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
  cd "$1" 2>/dev/null && [ -e .git ] || return 1
  # Neither of these reads an object, so that none is fetched.
  tip=$(git rev-parse --verify --quiet HEAD) || tip=
  { IFS= read -r top; IFS= read -r own; IFS= read -r common; IFS= read -r form; } <<END
$(git rev-parse --show-toplevel --absolute-git-dir --git-common-dir --show-object-format 2>/dev/null)
END
  [ "$top" = "$(pwd -P)" ] && [ -d "$common/objects" ] || return 1
  make_view "$common" "$form" "$tip" || return 1
  for file in "$common/shallow" "$own"/sharedindex.*; do is_file "$file" && cp "$file" "$view/git/"; done
  # With its time: files that are as old as the index are compared by their content.
  is_file "$own/index" && cp -p "$own/index" "$view/index"
  export GIT_DIR="$view/git" GIT_WORK_TREE="$PWD" GIT_INDEX_FILE="$view/index"
}
# make_view GIT FORMAT COMMIT: create a git directory with the objects of another one.
make_view() {
  rm -rf "$view/git" "$view/index"
  git -c init.defaultBranch=none init --quiet --bare --template= --object-format="$2" "$view/git" || return 1
  printf '%s\n' "$(cd "$1" && pwd)/objects" > "$view/git/objects/info/alternates"
  mkdir -p "$view/git/info"
  { is_file "$1/info/exclude" && cat "$1/info/exclude"; printf '\n%s\n' 'LITTER'; } > "$view/git/info/exclude"
  [ -z "$3" ] || printf '%s\n' "$3" > "$view/git/HEAD"
  export GIT_NO_LAZY_FETCH=1
}
is_file() { [ -f "$1" ] && [ ! -L "$1" ]; }
""".replace("LITTER", LITTER)
"""Functions for a shell on any host that let git read a copy without acting on the copy's settings."""


def write_exclude(common_directory: Path, git_directory: Path, *patterns: str) -> None:
    """Write the `info/exclude` of a copy and more patterns into our own git directory."""
    excluded = b""
    with contextlib.suppress(OSError):
        excluded = read_regular(common_directory / "info/exclude")
    (git_directory / "info").mkdir(exist_ok=True)
    (git_directory / "info/exclude").write_bytes(excluded + "\n{}\n".format("\n".join(patterns)).encode())


_SNAPSHOT_TIMEOUT: Final = 120.0


class WorkingCopy:
    """Take snapshots of an agent's copy. Close it, or use it in a `with`."""

    def __init__(self, repository: Repository, folder: Path, *, hidden: str) -> None:
        """Leave out `hidden`, a folder in the copy that is not part of the work."""
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
        """The object folders of the copy and of its snapshots."""
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
        """Return a tree of all files as they are now, except ignored ones."""
        with contextlib.suppress(OSError):
            # With the index, git reads only files that changed.
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

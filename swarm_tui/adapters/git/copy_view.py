"""Read an agent's copy without acting on its settings."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from swarm_tui.adapters.git.checkouts import NOTHING_IS_CONVERTED, borrow_objects
from swarm_tui.adapters.git.command import GitError, finish_git, start_git
from swarm_tui.adapters.git.objects import write_alternates
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.errors import SwarmError
from swarm_tui.files import read_regular

_INDEX_LIMIT: Final = 1 << 30
_TIMEOUT: Final = 30.0

LITTER: Final = "__pycache__/"
"""What Python leaves in every copy, and nobody's work, also where a project's .gitignore does not name it."""

VIEW_SCRIPT: Final = r"""
view=$(mktemp -d) || exit 1
trap 'rm -rf "$view"' EXIT
# look_into COPY: let git work on a copy, for the rest of this script.
look_into() {
  unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
  cd "$1" 2>/dev/null && [ -d .git/objects ] || return 1
  # Neither of these reads an object, so that none is fetched.
  tip=$(git rev-parse --verify --quiet HEAD) || tip=
  form=$(git rev-parse --show-object-format) || return 1
  rm -rf "$view/git" "$view/index"
  git -c init.defaultBranch=none init --quiet --bare --template= --object-format="$form" "$view/git" || return 1
  printf '%s\n' "$PWD/.git/objects" > "$view/git/objects/info/alternates"
  mkdir -p "$view/git/info"
  { [ -f .git/info/exclude ] && cat .git/info/exclude; printf '\n%s\n' 'LITTER'; } > "$view/git/info/exclude"
  for file in .git/shallow .git/sharedindex.*; do [ -f "$file" ] && cp "$file" "$view/git/"; done
  # With its time: files that are as old as the index are compared by their content.
  [ -f .git/index ] && cp -p .git/index "$view/index"
  [ -n "$tip" ] && printf '%s\n' "$tip" > "$view/git/HEAD"
  export GIT_DIR="$view/git" GIT_WORK_TREE="$PWD" GIT_INDEX_FILE="$view/index" GIT_NO_LAZY_FETCH=1
}
""".replace("LITTER", LITTER)
"""The same for a shell on any host, with one view for all copies that are looked into."""


@contextlib.contextmanager
def view_of_copy(copy: Path) -> Iterator[Repository]:
    """Yield a view of a copy.

    SwarmError where the copy's `.git` is broken: git would go up and find another repository.
    """
    own = _find_git(copy)
    # This reads no object: a partial clone would fetch it by a command that the copy names.
    head = _ask(copy, "rev-parse", "--verify", "--quiet", "HEAD")
    with tempfile.TemporaryDirectory(prefix="swarm-view-") as folder:
        place = Path(folder)
        view = _make_view(place, copy, own.object_format, own.common_directory)
        _copy_files(own, place)
        if head:
            (place / ".git/HEAD").write_text(f"{head}\n")
        yield view


@contextlib.contextmanager
def view_without_git(repository: Repository, copy: Path, base: str) -> Iterator[Repository]:
    """Yield a view of a copy whose `.git` was deleted, as if a commit of the user's repository were checked out."""
    with tempfile.TemporaryDirectory(prefix="swarm-view-") as folder:
        place, common = Path(folder), repository.common_directory.absolute()
        view = _make_view(place, copy, repository.object_format, common)
        write_exclude(common, place / ".git", LITTER)
        (place / ".git/HEAD").write_text(f"{base}\n")
        view.run("read-tree", base)
        yield view


def _make_view(place: Path, copy: Path, object_format: str, common_directory: Path) -> Repository:
    """Make a git directory of ours in a folder, with the objects of another one, and return it with a copy's files."""
    form = f"--object-format={object_format}"
    _ask(place, "-c", "init.defaultBranch=none", "init", "--quiet", "--template=", form, "--", str(place))
    view = Repository.open(place)
    write_alternates(place / ".git/objects", [common_directory / "objects"])
    variables = {
        "GIT_DIR": str(place / ".git"),
        "GIT_WORK_TREE": str(copy.absolute()),
        "GIT_INDEX_FILE": str(place / "index"),
    }
    looking = view.with_environment(variables, copy)
    looking.root = copy
    return looking


@dataclass(frozen=True, slots=True)
class _GitFolders:
    """Where the git directory of a copy is, and what it is like."""

    git_directory: Path
    common_directory: Path
    object_format: str


def _find_git(copy: Path) -> _GitFolders:
    words = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-object-format")
    lines = _ask(copy, "rev-parse", *words).split("\n")
    if len(lines) != len(words) or Path(lines[0]).resolve() != copy.resolve():
        raise SwarmError(f"{copy} is no git repository any more", "its files are still there")
    return _GitFolders(Path(lines[1]), (copy / lines[2]).absolute(), lines[3])


def _ask(folder: Path, *words: str) -> str:
    """Return what git prints, "" when it fails; bounded, since what is read may be a pipe that nobody writes to."""
    answer = finish_git(start_git("git", words, folder, {}, subprocess.DEVNULL), None, _TIMEOUT, words)
    return answer.text if answer.code == 0 else ""


def _copy_files(own: _GitFolders, place: Path) -> None:
    """Copy the index, which says what has changed, and what it needs; no pipe or device is opened."""
    wanted = [(path, place / ".git" / path.name) for path in own.git_directory.glob("sharedindex.*")]
    wanted += [
        (own.git_directory / "index", place / "index"),
        (own.common_directory / "shallow", place / ".git/shallow"),
    ]
    for path, target in wanted:
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _INDEX_LIMIT:
            target.parent.mkdir(exist_ok=True)
            # With its time: files that are as old as the index are compared by their content.
            shutil.copy2(path, target)
    write_exclude(own.common_directory, place / ".git", LITTER)


def write_exclude(common_directory: Path, git_directory: Path, *patterns: str) -> None:
    """Write the `info/exclude` of a copy, and these patterns, into a git directory of ours."""
    excluded = b""
    with contextlib.suppress(OSError):
        excluded = read_regular(common_directory / "info/exclude")
    (git_directory / "info").mkdir(exist_ok=True)
    (git_directory / "info/exclude").write_bytes(excluded + "\n{}\n".format("\n".join(patterns)).encode())


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

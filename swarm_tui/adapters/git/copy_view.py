"""Looks into an agent's copy through a git directory of our own, so that nothing that is set in the copy can act.

Git runs commands that a repository's settings name: filters, fsmonitor, textconv, the remote of a partial clone. A view
has the copy's objects, HEAD and index, and none of its settings, attributes, hooks and remotes.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.command import finish_git, start_git
from swarm_tui.adapters.git.names import checked_ref
from swarm_tui.adapters.git.objects import write_alternates
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.errors import SwarmError
from swarm_tui.regular_file import read_regular

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
def view_of_copy(copy: Path, ref: str = "") -> Iterator[tuple[Repository, str]]:
    """Yield a view of a copy, and the tip of that full ref name of it, "" when it is not there.

    SwarmError where the copy's `.git` is broken: git would go up and find another repository.
    """
    own = _find_git(copy)
    # None of these reads an object: a partial clone would fetch it by a command that the copy names.
    head, tip = (_ask(copy, "rev-parse", "--verify", "--quiet", name) if name else "" for name in ("HEAD", ref))
    with tempfile.TemporaryDirectory(prefix="swarm-view-") as folder:
        place = Path(folder)
        form = f"--object-format={own.object_format}"
        _ask(place, "-c", "init.defaultBranch=none", "init", "--quiet", "--template=", form, "--", str(place))
        view = Repository.open(place)
        write_alternates(place / ".git/objects", [own.common_directory / "objects"])
        _copy_files(own, place)
        if head:
            (place / ".git/HEAD").write_text(f"{head}\n")
        if tip:
            view.update_ref(checked_ref(ref), tip, old=None)
        variables = {
            "GIT_DIR": str(place / ".git"),
            "GIT_WORK_TREE": str(copy.absolute()),
            "GIT_INDEX_FILE": str(place / "index"),
        }
        looking = view.with_environment(variables, copy)
        looking.root = copy
        yield looking, tip


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
    answer = finish_git(start_git("git", words, folder, {}, has_stdin=False), None, _TIMEOUT, words)
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

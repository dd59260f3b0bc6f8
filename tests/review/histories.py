"""Generated histories for property tests: overlapping edits, renames, deletions, modes, links, submodules, chains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from hypothesis import strategies as st

from tests.git_project import GitProject

Files = dict[str, tuple[str, bytes]]
"""The files of a commit: mode and content by path."""

NAMES: Final = ("a.txt", "b.txt", "lib/a.txt", "lib/b.txt", "lib/deep/c.txt", "new/d.txt")
# git's name for a file next to a link or folder with the same name.
_KEPT_BESIDE: Final = re.compile(r"~(?:HEAD|parent of .*)$")
BINARY: Final = bytes(range(256))
SUBMODULE: Final = "160000"


def first_files() -> Files:
    """Return the files of the base commit, long enough for separate and for overlapping edits."""
    return {name: ("100644", _text(name, 12)) for name in NAMES[:5]}


def _text(name: str, lines: int) -> bytes:
    return "".join(f"{name} line {number}\n" for number in range(lines)).encode()


def _other_commit(how: int) -> bytes:
    """Return a commit of another repository, for a submodule."""
    return f"{how + 1:040x}".encode()


Edit = tuple[str, int, int, int]
"""A kind of change, and three numbers that select place and content."""

KINDS: Final = (
    *("edit",) * 4,
    "chain",
    "insert",
    "cut",
    "rename",
    "rename and edit",
    "rename folder",
    "file to folder",
    "folder to file",
    "delete",
    "add",
    "mode",
    "link",
    "submodule",
    "binary",
    "take back",
    "attributes",
    "nothing",
)

changes = st.tuples(st.sampled_from(KINDS), st.integers(0, 7), st.integers(0, 11), st.integers(0, 2))
directory_renames = st.sampled_from(("conflict", "true", "false"))
"""Values of git's setting merge.directoryRenames."""
histories = st.lists(st.lists(changes, min_size=1, max_size=2), min_size=2, max_size=7)


def apply_change(history: list[Files], files: Files, change: Edit) -> Files:
    """Return the files after a change; an impossible change changes nothing."""
    kind, which, place, how = change
    files = dict(files)
    names = sorted(files)
    if kind == "take back" and len(history) > 1:
        return dict(history[which % len(history)])
    if kind == "add":
        files[NAMES[which % len(NAMES)]] = ("100644", _text(f"added {how}", 8))
        return files
    if kind == "attributes":
        files[("", "lib/")[which % 2] + ".gitattributes"] = (
            "100644",
            (b"*.txt merge=union\n", b"*.txt -merge\n", b"*.txt text\n")[how],
        )
        return files
    if not names or kind in ("nothing", "take back"):
        return files
    name = names[which % len(names)]
    mode, content = files[name]
    if mode == SUBMODULE and kind not in ("delete", "rename"):
        files[name] = (mode, _other_commit(how)) if kind in ("edit", "submodule") else ("100644", _text(name, 12))
        return files
    if mode == "120000" and kind not in ("delete", "rename"):
        files[name] = (mode, f"elsewhere {how}".encode()) if kind == "edit" else ("100644", _text(name, 12))
        return files
    lines = content.split(b"\n")
    spot = place % len(lines)
    match kind:
        case "edit":
            lines[spot] = lines[spot] + f" edited {how}".encode()
            files[name] = (mode, b"\n".join(lines))
        case "chain":
            # Always the same line, so that these commits depend on each other.
            mode, content = files[names[0]]
            if mode not in ("120000", SUBMODULE):
                beginning, _, rest = content.partition(b"\n")
                files[names[0]] = (mode, beginning + f" link {how}".encode() + b"\n" + rest)
        case "insert":
            files[name] = (mode, b"\n".join([*lines[:spot], f"inserted {how}".encode(), *lines[spot:]]))
        case "cut":
            files[name] = (mode, b"\n".join(lines[:spot] + lines[spot + 1 + how :]))
        case "rename" | "rename and edit":
            del files[name]
            if kind == "rename and edit":
                lines[spot] = b"edited on the way"
            files[NAMES[place % len(NAMES)]] = (mode, b"\n".join(lines))
        case "rename folder":
            files = {path.replace("lib/", ("src/", "new/", "lib/deep/")[how], 1): held for path, held in files.items()}
        case "file to folder":
            files[f"{name}/inner.txt"] = files.pop(name)
        case "folder to file":
            folder = name.rpartition("/")[0] or name
            inner = {path: held for path, held in files.items() if path.startswith(f"{folder}/")}
            files = {path: held for path, held in files.items() if path not in inner}
            # Also move one of its files, so that git detects a rename.
            files |= {folder: ("100644", _text(folder, 8)), NAMES[place % len(NAMES)]: (mode, content)}
        case "delete":
            del files[name]
        case "mode":
            files[name] = ("100755" if mode == "100644" else "100644", content)
        case "link":
            files[name] = ("120000", b"elsewhere")
        case "submodule":
            files[name] = (SUBMODULE, _other_commit(how))
        case "binary":
            files[name] = (mode, BINARY + bytes([how]))
    return files


def without_clashes(files: Files) -> Files:
    """Drop a file if another one needs a folder with its name."""
    return {path: held for path, held in files.items() if not any(other.startswith(f"{path}/") for other in files)}


def play(history: list[list[Edit]]) -> list[Files]:
    """Return the files of every commit, starting with the base."""
    states = [first_files()]
    for commit in history:
        files = states[-1]
        for change in commit:
            files = without_clashes(apply_change(states, files, change))
        states.append(files)
    return states


def import_of(files: Files) -> bytes:
    """Return the `git fast-import` commands that set a commit's files to exactly these."""
    words = bytearray(b"deleteall\n")
    for path, (mode, content) in files.items():
        if mode == SUBMODULE:
            words += f"M {mode} ".encode() + content + f" {path}\n".encode()
        else:
            words += f"M {mode} inline {path}\ndata {len(content)}\n".encode() + content + b"\n"
    return bytes(words + b"\n")


def write_history(project: GitProject, states: list[Files]) -> list[str]:
    """Commit all states on main with one process, and return the commits, starting with the base."""
    stream = bytearray()
    for number, files in enumerate(states):
        stream += b"commit refs/heads/main\n"
        stream += f"mark :{number + 1}\n".encode()
        stream += f"committer Ada Lovelace <ada@example.org> {1_700_000_000 + number} +0000\n".encode()
        message = f"[FIX_IMPL] change {number}\n".encode()
        stream += f"data {len(message)}\n".encode() + message
        stream += import_of(files)
    project.git("fast-import", "--quiet", "--date-format=raw", stdin=bytes(stream))
    return project.git("rev-list", "--reverse", "--topo-order", "main").split("\n")


def revert_for_real(
    scratch: Path, project: GitProject, newest_first: list[str], directory_renames: str
) -> tuple[str, dict[str, set[str]]]:
    """Revert in the work tree of a clone, skipping conflicts. Return the tree, and the unmerged paths of each conflict.

    git also stops without an unmerged path if the rename of a folder is ambiguous. If a file is renamed onto another
    one and both have changed, git commits conflict markers; that counts as a conflict, and so does a crash of git.
    """
    project.git("clone", "--quiet", "--shared", ".", str(scratch))
    clone = GitProject(scratch)
    clone.git("config", "merge.directoryRenames", directory_renames)
    conflicts: dict[str, set[str]] = {}
    for commit in newest_first:
        done = clone.run("revert", "--no-edit", commit)
        if not done.returncode and b"CONFLICT" in done.stdout.replace(b"CONFLICT (file/directory)", b""):
            conflicts[commit] = set()
            clone.git("reset", "--quiet", "--hard", "HEAD~1")
        elif done.returncode:
            if done.returncode != 1:
                # Some versions cannot write the result of a file that is in the way of a renamed folder.
                conflicts[commit] = set()
                (scratch / ".git/index.lock").unlink(missing_ok=True)
            elif b"error: could not revert" in done.stderr:
                unmerged = clone.git("diff", "--name-only", "--diff-filter=U", "-z").split("\0")
                conflicts[commit] = {_KEPT_BESIDE.sub("", path) for path in unmerged if path}
            clone.git("revert", "--skip", codes=None)
            clone.git("reset", "--quiet", "--hard")
            clone.git("clean", "--quiet", "-fdx")
    return clone.git("rev-parse", "HEAD^{tree}"), conflicts

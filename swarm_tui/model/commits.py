"""Commit, file change, safe diff."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    pass


_DOC_SUFFIXES: Final = frozenset({".md", ".rst", ".adoc", ".txt"})
_DOC_FOLDERS: Final = frozenset({"doc", "docs", "tutorial", "tutorials"})
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__snapshots__"})


def is_test_or_doc(path: str, test_files: Collection[str] = (), tutorial: str = "") -> bool:
    """Return whether a file is a test, a test support file, or documentation."""
    place = PurePosixPath(path)
    folders = {part.lower() for part in place.parts[:-1]}
    is_tutorial = path == tutorial or place.stem.lower() == "tutorial"
    is_doc = is_tutorial or place.suffix.lower() in _DOC_SUFFIXES or bool(folders & _DOC_FOLDERS)
    return is_doc or is_test(path, test_files)


def is_test(path: str, test_files: Collection[str] = ()) -> bool:
    """Return whether a file is a test or a test support file."""
    place = PurePosixPath(path)
    return (
        path in test_files
        or place.name == "conftest.py"
        or place.name.startswith("test_")
        or place.stem.endswith("_test")
        or bool({part.lower() for part in place.parts[:-1]} & _TEST_FOLDERS)
    )


_START: Final = re.compile(r"^(?:diff --git .*|@@ .*)$", re.MULTILINE)
# Control characters and characters that hide or reorder text, except newline and tab.
_UNSAFE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_CONTROL_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F


@dataclass(frozen=True, slots=True)
class DiffFile:
    """One file of a diff."""

    path: str
    old_path: str
    """Differs from `path` if the file was renamed."""
    start: int
    """The index of its first line in `Diff.lines`."""
    end: int
    hunks: tuple[int, ...]
    """The indices of the first lines of its hunks."""
    added: int
    removed: int
    is_binary: bool
    mode_change: str = ""
    """Such as "100644 -> 100755"."""


@dataclass(frozen=True, slots=True)
class Diff:
    lines: tuple[str, ...]
    files: tuple[DiffFile, ...]
    is_truncated: bool = False


def visible(text: str) -> str:
    """Return the text with control characters replaced by visible symbols, so that a reviewer can see them."""
    return _UNSAFE.sub(_symbol, text).expandtabs(4)


def _symbol(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return "\u2421" if code == _DELETE else "\ufffd"


def parse_diff(raw: bytes, *, is_truncated: bool = False) -> Diff:
    """Parse the output of `git diff` or `git show`."""
    # Split at "\n" only: otherwise a "\r" in a file could start a line that looks like a header of git.
    text = visible(raw.decode("utf-8", "replace")).removesuffix("\n")
    if not text:
        return Diff((), (), is_truncated)
    lines = tuple(text.split("\n"))
    starts: list[int] = []
    hunks: list[list[int]] = []
    number, place = 0, 0
    for match in _START.finditer(text):
        number += text.count("\n", place, match.start())
        place = match.start()
        if match[0].startswith("diff"):
            starts.append(number)
            hunks.append([])
        elif hunks:
            hunks[-1].append(number)
    ends = [*starts[1:], len(lines)]
    files = (_file(lines, start, end, tuple(own)) for start, end, own in zip(starts, ends, hunks, strict=True))
    return Diff(lines, tuple(files), is_truncated)


def _file(lines: tuple[str, ...], start: int, end: int, hunks: tuple[int, ...]) -> DiffFile:
    header = lines[start : hunks[0] if hunks else end]
    body = lines[hunks[0] : end] if hunks else ()
    values = {word: line.removeprefix(word) for line in header for word in _HEADER_WORDS if line.startswith(word)}
    path, old_path = _paths(header[0], values)
    modes = (values.get("old mode "), values.get("new mode "))
    return DiffFile(
        path=path,
        old_path=old_path,
        start=start,
        end=end,
        hunks=hunks,
        added=sum(line.startswith("+") for line in body),
        removed=sum(line.startswith("-") for line in body),
        is_binary="Binary files " in values or "GIT binary patch" in values,
        mode_change=f"{modes[0]} -> {modes[1]}" if all(modes) else "",
    )


_HEADER_WORDS: Final = (
    "old mode ",
    "new mode ",
    "rename from ",
    "rename to ",
    "copy from ",
    "copy to ",
    "--- ",
    "+++ ",
    "Binary files ",
    "GIT binary patch",
)


def _paths(first: str, values: dict[str, str]) -> tuple[str, str]:
    """Return the new and the old path. A path that git quoted stays quoted."""
    if "rename to " in values:
        return values["rename to "], values.get("rename from ", "")
    old, new = (_without_side(values.get(word, "")) for word in ("--- ", "+++ "))
    if new and new != "/dev/null":
        return new, old if old != "/dev/null" else new
    if old:
        return old, old
    # A mode change or a binary file has neither, and both names are the same: "diff --git a/x b/x".
    names = first.removeprefix("diff --git ")
    half = _without_side(names[: len(names) // 2])
    return half, half


def _without_side(name: str) -> str:
    name = name.rstrip("\t ") if not name.startswith('"') else name
    if name.startswith(('"a/', '"b/')):
        return '"' + name[3:]
    return name[2:] if name.startswith(("a/", "b/")) else name


FIX_PREFIX: Final = "[FIX_IMPL]"


@dataclass(frozen=True, slots=True)
class FileChange:
    """The change of one path in a commit. A rename is a deleted and an added path."""

    path: str
    status: str
    """A added, M modified, D deleted, T type changed."""
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str
    added: int | None = None
    """The number of lines; None for a binary file."""
    removed: int | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a linear branch."""

    id: str
    parent: str
    tree: str
    parent_tree: str
    author_name: str
    author_email: str
    authored: str
    """Author date in git's raw format: seconds and time zone, such as "1763445120 +0100"."""
    message: str
    changes: tuple[FileChange, ...] = ()
    shown_lines: tuple[int, int] | None = None
    """The number of added and removed lines in the displayed diff, which detects renames."""

    @property
    def subject(self) -> str:
        """The first line of the message. Agents write it, so it may contain control characters."""
        return self.message.partition("\n")[0]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(change.path for change in self.changes)

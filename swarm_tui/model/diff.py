"""A diff as lines that are harmless to show, and where its files and hunks begin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_START: Final = re.compile(r"^(?:diff --git .*|@@ .*)$", re.MULTILINE)
# Everything that a terminal could act on, and what hides or reorders text, but newline and tab.
_ACTING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_CONTROL_PICTURES: Final = 0x2400
_DELETE: Final = 0x7F


@dataclass(frozen=True, slots=True)
class DiffFile:
    """One file of a diff."""

    path: str
    old_path: str
    """Differs from `path` when the file was renamed."""
    start: int
    """Its first line in `Diff.lines`."""
    end: int
    hunks: tuple[int, ...]
    """The lines where its hunks begin."""
    added: int
    removed: int
    is_binary: bool
    mode_change: str = ""
    """Such as "100644 -> 100755"."""


@dataclass(frozen=True, slots=True)
class Diff:
    """A whole diff."""

    lines: tuple[str, ...]
    files: tuple[DiffFile, ...]
    is_truncated: bool = False


def visible(text: str) -> str:
    """Return the text with control characters replaced by visible signs: a reviewer must see what a file contains."""
    return _ACTING.sub(_visible_sign, text).expandtabs(4)


def _visible_sign(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(_CONTROL_PICTURES + code)
    return "\u2421" if code == _DELETE else "\ufffd"


def parse_diff(raw: bytes, *, is_truncated: bool = False) -> Diff:
    """Return the diff in the output of `git diff` or `git show`."""
    # Only "\n" ends a line: a file's "\r" would otherwise begin a line that looks like git's own.
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
    """Return the new and the old path; a name with odd characters stays quoted as git quotes it."""
    if "rename to " in values:
        return values["rename to "], values.get("rename from ", "")
    old, new = (_without_side(values.get(word, "")) for word in ("--- ", "+++ "))
    if new and new != "/dev/null":
        return new, old if old != "/dev/null" else new
    if old:
        return old, old
    # Neither: a mode change or a binary file, where both names are the same: "diff --git a/x b/x".
    names = first.removeprefix("diff --git ")
    half = _without_side(names[: len(names) // 2])
    return half, half


def _without_side(name: str) -> str:
    name = name.rstrip("\t ") if not name.startswith('"') else name
    if name.startswith(('"a/', '"b/')):
        return '"' + name[3:]
    return name[2:] if name.startswith(("a/", "b/")) else name

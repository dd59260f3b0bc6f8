"""Splits a commit into its hunks, each as a change from one tree to the next."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import FILE_MODES, TreeEntry
from swarm_tui.model.fixes import Commit, FileChange

CONTEXT: Final = 3
"""Lines between two hunks that git shows with each; changes that are nearer are one hunk."""
LINES_LIMIT: Final = 5_000
"""A longer file is one hunk: comparing its lines would be felt."""
_DEFINITION: Final = re.compile(rb"\s*(?:async )?(?:def|class) +(\w+)")


@dataclass(frozen=True, slots=True)
class HunkPick:
    """One hunk, with the trees before and after it where all hunks before it are in."""

    path: str
    title: str
    key: bytes
    """The same for the same lines, wherever they are."""
    before: str
    after: str
    change: FileChange


def hunk_picks(space: ObjectSpace, commit: Commit) -> Iterator[HunkPick]:
    """Return the hunks of a commit; what is no change of lines (a new file, a mode, a binary) is one for its path."""
    tree = commit.parent_tree
    for change in commit.changes:
        is_text = change.status == "M" and change.added is not None and change.old_mode == change.new_mode
        if is_text and change.new_mode in FILE_MODES:
            old, new = (space.read(blob)[1].splitlines(keepends=True) for blob in (change.old_id, change.new_id))
            hunks = _hunks(old, new)
        else:
            old, new, hunks = [], [], []
        if len(hunks) < 2:
            entry = None if change.status == "D" else TreeEntry(change.new_mode, change.new_id)
            after = space.with_entries(tree, {change.path: entry})
            yield HunkPick(change.path, _title(change, new, hunks), _key(change, old, new, hunks), tree, after, change)
            tree = after
            continue
        for place, hunk in enumerate(hunks):
            content = b"".join(_with_hunks(old, new, hunks[: place + 1]))
            after = space.with_entries(tree, {change.path: TreeEntry(change.new_mode, space.write("blob", content))})
            added, removed = (sum(side[1] - side[0] for side in sides) for sides in _sides(hunk))
            own = replace(change, added=added, removed=removed)
            yield HunkPick(change.path, _title(change, new, [hunk]), _key(change, old, new, [hunk]), tree, after, own)
            tree = after


_Hunk = Sequence[tuple[str, int, int, int, int]]


def _hunks(old: Sequence[bytes], new: Sequence[bytes]) -> list[_Hunk]:
    if len(old) + len(new) > LINES_LIMIT:
        return []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [[code for code in group if code[0] != "equal"] for group in matcher.get_grouped_opcodes(CONTEXT)]


def _sides(hunk: _Hunk) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return which lines a hunk adds, and which it removes."""
    return [(code[3], code[4]) for code in hunk], [(code[1], code[2]) for code in hunk]


def _with_hunks(old: Sequence[bytes], new: Sequence[bytes], hunks: Sequence[_Hunk]) -> Iterator[bytes]:
    """Return the old lines with some of the hunks applied."""
    at = 0
    for _, first, last, new_first, new_last in (code for hunk in hunks for code in hunk):
        yield from old[at:first]
        yield from new[new_first:new_last]
        at = last
    yield from old[at:]


def _key(change: FileChange, old: Sequence[bytes], new: Sequence[bytes], hunks: Sequence[_Hunk]) -> bytes:
    if not hunks:
        words = (change.path, change.status, change.new_mode, change.old_id, change.new_id)
        return "\0".join(words).encode("utf-8", "surrogateescape")
    sides = (
        sign + line
        for hunk in hunks
        for _, first, last, new_first, new_last in hunk
        for sign, lines in ((b"-", old[first:last]), (b"+", new[new_first:new_last]))
        for line in lines
    )
    return change.path.encode("utf-8", "surrogateescape") + b"\0" + b"".join(sides)


def _title(change: FileChange, new: Sequence[bytes], hunks: Sequence[_Hunk]) -> str:
    """Return where a hunk is: the file, and the function in it."""
    if not hunks:
        word = {"A": "new file ", "D": "without "}.get(change.status, "")
        return f"{word}{change.path}"
    first = hunks[0][0][3]
    for line in reversed(new[: first + 1]):
        found = _DEFINITION.match(line)
        if found:
            return f"{change.path}::{found[1].decode('utf-8', 'replace')}"
    return f"{change.path}:{first + 1}"

"""Splits a commit into the hunks of `git diff`, and builds trees with some of them.

A change that is not a change of lines (a new file, a mode, a binary file, a rename) is one hunk, and so is a file
with more than `HUNKS_LIMIT` changed places.

Invariant: a plan that reverts some hunks of a fix is equal to a plan on a branch that has two commits in place of the
fix, first one with the kept hunks and then one with the others, where the second commit is reverted.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final, NamedTuple

from swarm_tui.adapters.git.history import DiffReader
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import FILE_MODES, TreeEntry
from swarm_tui.model.commits import Commit, FileChange
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Change, IntegratedBranch, Kind

HUNK_PREFIX: Final = "hunk-"
HUNKS_LIMIT: Final = 200
_KEY_LENGTH: Final = 35
_COMMIT_LENGTH: Final = 20
_VERSIONS: Final = re.compile(rb"index ([0-9a-f]+)\.\.([0-9a-f]+)(?: [0-7]+)?")
_HEADER: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_DEFINITION: Final = re.compile(rb"\s*(?:async )?(?:def|class) +(\w+)")
_LINE: Final = re.compile(rb"[^\n]*\n|[^\n]+")


class LineRange(NamedTuple):
    """The lines of a hunk before and after it, as half-open ranges, counted from 0."""

    old_first: int
    old_last: int
    new_first: int
    new_last: int


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk of a commit."""

    key: str
    """Identical for the same lines of the same file, regardless of position and of other changes in the commit."""
    title: str
    """The place of the hunk: the file, and the function in it."""
    changes: tuple[FileChange, ...]
    """The change of its file, with the lines of this hunk if the file has several hunks."""
    span: LineRange | None = None
    """None if the hunk is the complete change of its files."""


@dataclass(frozen=True, slots=True)
class CommitHunks:
    """The hunks of one commit, in the order of its diff."""

    commit: Commit
    hunks: tuple[Hunk, ...]

    @classmethod
    def read(cls, space: ObjectSpace, diffs: DiffReader, commit: Commit) -> CommitHunks:
        """Split a commit into hunks."""
        raw, is_truncated = diffs.raw_diff(commit.parent_tree, commit.tree)
        shown = {} if is_truncated else _shown_hunks(raw)
        seen: dict[str, Iterator[int]] = {}
        hunks = []
        for changes in _grouped(commit.changes, shown):
            for hunk in _hunks_of(space, changes, shown.get((changes[0].old_id, changes[0].new_id), [])):
                # A file may contain the same change of the same lines twice.
                number = next(seen.setdefault(hunk.key, count()))
                hunks.append(replace(hunk, key=_digest(f"{hunk.key} {number}".encode())) if number else hunk)
        return cls(commit, tuple(hunks))

    def named(self, names: Collection[str]) -> tuple[Hunk, ...]:
        """Return the hunks with these ids."""
        return tuple(hunk for hunk in self.hunks if self.id_of(hunk) in names)

    def id_of(self, hunk: Hunk) -> str:
        """Return the id of a hunk of this commit."""
        return f"{HUNK_PREFIX}{self.commit.id[:_COMMIT_LENGTH]}-{hunk.key}"

    def reverted(self, space: ObjectSpace, reverted: Collection[Hunk]) -> Commit:
        """Return a commit with only these hunks, on top of a commit with the others."""
        entries: dict[str, TreeEntry | None] = {}
        changes: list[FileChange] = []
        for group in self._files_of(reverted):
            rest = [hunk for hunk in group if hunk not in reverted]
            before = self.entries(space, group, rest)
            entries |= before
            changes += _changes_since([hunk for hunk in group if hunk in reverted], before)
        tree = space.with_entries(self.commit.tree, entries)
        return replace(self.commit, parent_tree=tree, changes=tuple(changes), shown_lines=None)

    def entries(self, space: ObjectSpace, group: Sequence[Hunk], kept: Sequence[Hunk]) -> dict[str, TreeEntry | None]:
        """Return the entries of the files of `group`, all hunks of some files, with only the `kept` hunks applied."""
        first = group[0].changes[0]
        if group[0].span is None:
            is_applied = bool(kept)
            return {change.path: _entry(change, is_new=is_applied) for change in group[0].changes}
        old, new = (_lines(space, blob) for blob in (first.old_id, first.new_id))
        content = b"".join(_with_spans(old, new, [hunk.span for hunk in kept if hunk.span is not None]))
        return {first.path: TreeEntry(first.new_mode, space.write("blob", content))}

    def _files_of(self, hunks: Collection[Hunk]) -> list[list[Hunk]]:
        """Return all hunks of each file that has some of these hunks."""
        paths = {hunk.changes[0].path for hunk in hunks}
        groups: dict[str, list[Hunk]] = {}
        for hunk in self.hunks:
            if hunk.changes[0].path in paths:
                groups.setdefault(hunk.changes[0].path, []).append(hunk)
        return list(groups.values())

    def step_by_step(self, space: ObjectSpace) -> Iterator[tuple[Hunk, str, str]]:
        """Return each hunk with the trees before and after it, where all previous hunks are applied."""
        tree = self.commit.parent_tree
        done: list[Hunk] = []
        for hunk in self.hunks:
            done.append(hunk)
            group = next(iter(self._files_of([hunk])))
            after = space.with_entries(tree, self.entries(space, group, [other for other in group if other in done]))
            yield hunk, tree, after
            tree = after


def hunks_as_rows(space: ObjectSpace, fix: Change, hunks: CommitHunks) -> tuple[Change, ...]:
    """Return each hunk of a fix as an item for verdicts. Reverting the commit of the item reverts only that hunk."""
    rows = []
    for number, hunk in enumerate(hunks.hunks):
        commit = hunks.reverted(space, [hunk])
        rows.append(
            replace(
                fix,
                commit=replace(commit, id=hunks.id_of(hunk), changes=hunk.changes),
                position=number,
                title=plain(hunk.title, 300),
                hunk_of=fix.id,
                kind=Kind.HUNK,
            )
        )
    return tuple(rows)


class HunksOfFixes:
    """The hunks of all commits that were split so far, and the remaining hunks of a commit in a plan."""

    def __init__(self, space: ObjectSpace) -> None:
        self._space = space
        self._hunks: dict[str, CommitHunks] = {}
        self._parts: dict[tuple[str, tuple[Hunk, ...]], Commit] = {}

    def add(self, hunks: CommitHunks) -> None:
        self._hunks[hunks.commit.id] = hunks

    def reverted_commits(self, branch: IntegratedBranch, reverted: Collection[str]) -> tuple[str, ...]:
        """Return the completely reverted commits of a plan, newest first."""
        return tuple(each.id for each in reversed(branch.commits) if self.kept_part(each, reverted) is None)

    def reverted_hunks(self, branch: IntegratedBranch, reverted: Collection[str]) -> tuple[str, ...]:
        """Return the reverted hunks of partly reverted commits, those of the newest commits first."""
        found: list[str] = []
        for commit in reversed(branch.commits):
            hunks = self._hunks.get(commit.id)
            if hunks is not None and self.kept_part(commit, reverted) is not None:
                found += [hunks.id_of(hunk) for hunk in hunks.named(reverted)]
        return tuple(found)

    def reverted_part(self, commit: Commit, reverted: Collection[str]) -> Commit | None:
        """Return the reverted part of a commit: all of it, a commit of some hunks on top of the others, or None."""
        if commit.id in reverted:
            return commit
        hunks = self._hunks.get(commit.id)
        chosen = hunks.named(reverted) if hunks is not None else ()
        if hunks is None or not chosen:
            return None
        if len(chosen) == len(hunks.hunks):
            return commit
        part = self._parts.get((commit.id, chosen))
        if part is None:
            part = self._parts[commit.id, chosen] = hunks.reverted(self._space, chosen)
        return part

    def kept_part(self, commit: Commit, reverted: Collection[str]) -> Commit | None:
        """Return the kept part of a commit: all of it, a commit of some hunks, or None."""
        out = self.reverted_part(commit, reverted)
        if out is None:
            return commit
        if out.parent_tree == commit.parent_tree:
            return None
        # A merge finds the files that differ.
        return replace(commit, tree=out.parent_tree, changes=(), shown_lines=None)

    def taken_part(self, commit: Commit, chosen: Collection[str]) -> tuple[Commit | None, tuple[str, ...]]:
        """Return the included part of a left-out commit, and the hunks that are not included."""
        hunks = self._hunks.get(commit.id)
        left = tuple(hunks.id_of(hunk) for hunk in hunks.named(chosen)) if hunks is not None else ()
        return self.kept_part(commit, left), left


def content_of(hunk: str) -> str:
    """Return the part of a hunk id that is the same for equal hunks of different commits."""
    return HUNK_PREFIX + hunk.rpartition("-")[2]


def is_of(hunk: str, commit: str) -> bool:
    """Return whether an id names a hunk of this commit."""
    return hunk.startswith(f"{HUNK_PREFIX}{commit[:_COMMIT_LENGTH]}-")


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:_KEY_LENGTH]


class _Shown(NamedTuple):
    """One hunk in a diff."""

    span: LineRange
    signed: tuple[bytes, ...]
    """The lines that it removes and adds, with their prefixes."""
    context: int
    """The unchanged lines before the first of them."""


def _shown_hunks(raw: bytes) -> dict[tuple[str, str], list[_Shown]]:
    """Return all hunks in a diff by the two versions of their file."""
    found: dict[tuple[str, str], list[_Shown]] = {}
    own: list[_Shown] = []
    lines = iter(raw.split(b"\n"))
    for line in lines:
        if versions := _VERSIONS.fullmatch(line):
            own = found[versions[1].decode(), versions[2].decode()] = []
        elif header := _HEADER.match(line):
            old_first, old_size, new_first, new_size = (int(number) if number else 1 for number in header.groups())
            # For a side without lines, git gives the number of the line before it.
            old_first, new_first = old_first - bool(old_size), new_first - bool(new_size)
            span = LineRange(old_first, old_first + old_size, new_first, new_first + new_size)
            body = tuple(_body(lines, old_size, new_size))
            context = next((number for number, row in enumerate(body) if row[:1] != b" "), 0)
            own.append(_Shown(span, tuple(row for row in body if row[:1] != b" "), context))
    return found


def _body(lines: Iterator[bytes], old_size: int, new_size: int) -> Iterator[bytes]:
    """Return the lines of one hunk. The next line after a hunk does not begin with a prefix."""
    while (old_size or new_size) and (line := next(lines, None)) is not None:
        old_size -= line[:1] in (b" ", b"-", b"")
        new_size -= line[:1] in (b" ", b"+", b"")
        yield line or b" "


def _grouped(changes: Sequence[FileChange], renamed: Collection[tuple[str, str]]) -> list[tuple[FileChange, ...]]:
    """Return groups of changes that belong together: a renamed file, and a folder that replaces a file."""
    groups: list[list[FileChange]] = []
    for change in changes:
        near = [group for group in groups if any(_belong_together(change, other, renamed) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([*(other for group in near for other in group), change])
    place = {change.path: number for number, change in enumerate(changes)}
    return sorted((tuple(group) for group in groups), key=lambda group: place[group[0].path])


def _belong_together(one: FileChange, other: FileChange, renamed: Collection[tuple[str, str]]) -> bool:
    if one.path.startswith(f"{other.path}/") or other.path.startswith(f"{one.path}/"):
        return True
    gone, come = (one, other) if one.status == "D" else (other, one)
    is_move = (gone.status, come.status) == ("D", "A")
    return is_move and (gone.old_id == come.new_id or (gone.old_id, come.new_id) in renamed)


def _hunks_of(space: ObjectSpace, changes: tuple[FileChange, ...], shown: Sequence[_Shown]) -> Iterator[Hunk]:
    first = changes[0]
    is_text = first.status == "M" and first.added is not None and first.old_mode == first.new_mode in FILE_MODES
    if len(changes) > 1 or not is_text or not 2 <= len(shown) <= HUNKS_LIMIT:
        title, signed = _title_of_whole(changes), tuple([repr(changes).encode()])
        if len(changes) == 1 and is_text and len(shown) == 1:
            title, signed = _title(first.path, _lines(space, first.new_id), shown[0]), shown[0].signed
        yield Hunk(_digest(_key_text(first.path, signed)), title, changes)
        return
    new = _lines(space, first.new_id)
    for hunk in shown:
        added, removed = (sum(line[:1] == sign for line in hunk.signed) for sign in (b"+", b"-"))
        own = replace(first, added=added, removed=removed)
        yield Hunk(_digest(_key_text(first.path, hunk.signed)), _title(first.path, new, hunk), (own,), hunk.span)


def _key_text(path: str, signed: Sequence[bytes]) -> bytes:
    return b"\n".join([path.encode("utf-8", "surrogateescape"), *signed])


def _lines(space: ObjectSpace, blob: str) -> list[bytes]:
    # As in git, "\r" does not end a line.
    return _LINE.findall(space.read(blob)[1])


def _with_spans(old: Sequence[bytes], new: Sequence[bytes], spans: Sequence[LineRange]) -> Iterator[bytes]:
    """Return the old lines with some of the hunks applied."""
    at = 0
    for span in spans:
        yield from old[at : span.old_first]
        yield from new[span.new_first : span.new_last]
        at = span.old_last
    yield from old[at:]


def _entry(change: FileChange, *, is_new: bool) -> TreeEntry | None:
    missing = "D" if is_new else "A"
    mode, blob = (change.new_mode, change.new_id) if is_new else (change.old_mode, change.old_id)
    return None if change.status == missing else TreeEntry(mode, blob)


def _changes_since(reverted: Sequence[Hunk], before: dict[str, TreeEntry | None]) -> tuple[FileChange, ...]:
    """Return the changes of some hunks of a file on top of all its other hunks."""
    change = reverted[0].changes[0]
    entry = before[change.path]
    if reverted[0].span is None or entry is None:
        return reverted[0].changes
    added, removed = (sum(getattr(hunk.changes[0], side) or 0 for hunk in reverted) for side in ("added", "removed"))
    return (replace(change, old_id=entry.id, added=added, removed=removed),)


def _title_of_whole(changes: Sequence[FileChange]) -> str:
    """Return a title for files that are one hunk."""
    if len(changes) > 1:
        gone = next((change.path for change in changes if change.status == "D"), changes[0].path)
        come = next((change.path for change in changes if change.status == "A"), changes[-1].path)
        return f"{gone} → {come}"
    change = changes[0]
    if change.status in ("A", "D"):
        return f"{'new file' if change.status == 'A' else 'deleted'} {change.path}"
    if change.old_mode != change.new_mode:
        return f"{change.path}, including its mode"
    return change.path if change.added is not None else f"{change.path}, binary"


def _title(path: str, new: Sequence[bytes], hunk: _Shown) -> str:
    first = hunk.span.new_first + hunk.context
    for line in reversed(new[: first + 1]):
        found = _DEFINITION.match(line)
        if found:
            return f"{path}::{found[1].decode('utf-8', 'replace')}"
    return f"{path}:{first + 1}"

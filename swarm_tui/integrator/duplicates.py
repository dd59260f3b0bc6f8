"""Finds the same fix by several agents: identical patches, or patches with only insignificant differences."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from swarm_tui.integrator.branches import AgentCommit

MIN_SIMILARITY: Final = 0.9
MAX_TOKENS: Final = 2_000
MAX_LINES_APART: Final = 3
"""How many lines a change may be shifted by comments or blank lines before it."""

_TOKEN: Final = re.compile(
    r"""(?P<text>[rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))"""
    r"""|(?P<name>[^\W\d]\w*)"""
    r"""|(?P<number>\d[\w.]*)"""
    r"""|(?P<sign>\S)"""
)
_HUNK: Final = re.compile(r"@@ -(\d+)")
_COMMENT: Final = re.compile(r"^\s*(?:#|//|\*|/\*|--|;|\"\"\")")
_TRAILING_COMMENT: Final = re.compile(r"\s(?:#|//)\s.*$")
_KEYWORDS: Final = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "True", "False", "None", "true", "false", "null"}
)


class ChangedLine(NamedTuple):
    """A line that a patch removes or adds."""

    text: str
    indent: str
    line_number: int
    """Its line number in the old file."""


class FileChanges(NamedTuple):
    """The changes of a patch to one file, without blank lines and comments."""

    path: str
    removed: tuple[ChangedLine, ...]
    added: tuple[ChangedLine, ...]


@dataclass(frozen=True, slots=True)
class DistinctFix:
    """One change to the program, and all commits that make it; the first one is integrated.

    A commit that only an integrator created has no agent, branch or test.
    """

    commits: tuple[AgentCommit, ...]
    why_same: str = field(default="", compare=False)

    @property
    def chosen(self) -> AgentCommit:
        return self.commits[0]

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(commit.source.agent for commit in self.commits if commit.source.agent))

    @property
    def branches(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(commit.source.branch for commit in self.commits if commit.source.branch))

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(commit.source.test for commit in self.commits if commit.source.test))


def distinct_fixes(commits: Sequence[AgentCommit]) -> list[DistinctFix]:
    """Return one fix for all commits with the same change, in the order of their first commits."""
    groups: list[tuple[list[AgentCommit], tuple[FileChanges, ...]]] = []
    for commit in commits:
        changes = changes_of(commit.patch)
        for group, group_changes in groups:
            # The patch id is not sufficient: it ignores white space and the position in the file.
            if (changes == group_changes and commit.patch_id == group[0].patch_id) or are_nearly_equal(
                changes, group_changes
            ):
                group.append(commit)
                break
        else:
            groups.append(([commit], changes))
    return [_fix_of(group) for group, _ in groups]


def earlier_on_its_branch(fix: DistinctFix, fixes: Sequence[DistinctFix]) -> list[AgentCommit]:
    """Return the earlier fixes of a fix's agent, in order."""
    branch, place = fix.chosen.source.branch, fix.chosen.place
    earlier = (commit for other in fixes for commit in other.commits)
    return sorted(
        (commit for commit in earlier if commit.source.branch == branch and commit.place < place),
        key=lambda commit: commit.place,
    )


def _fix_of(group: list[AgentCommit]) -> DistinctFix:
    # Use the patch that most agents wrote; in a tie, the shortest.
    votes = Counter(commit.patch_id for commit in group)
    ordered = sorted(group, key=lambda commit: (-votes[commit.patch_id], commit.lines))
    same = "nearly the same hunks" if len(votes) > 1 else "the same patch"
    return DistinctFix(tuple(ordered), why_same=same if len({commit.source.agent for commit in group}) > 1 else "")


def changes_of(patch: str) -> tuple[FileChanges, ...]:
    """Return the changes of a patch to each file, without blank lines and comments."""
    found: list[FileChanges] = []
    path, removed, added = "", list[ChangedLine](), list[ChangedLine]()
    is_in_hunk, at = False, 0
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            if path:
                found.append(FileChanges(path, tuple(removed), tuple(added)))
            path, removed, added, is_in_hunk = line.rpartition(" b/")[2], [], [], False
        elif hunk := _HUNK.match(line):
            is_in_hunk, at = True, int(hunk[1])
        elif not is_in_hunk and path and line:
            # Modes, renames and ids of binary files are all significant.
            if not line.startswith(("index ", "--- ", "+++ ")) or "Binary" in line:
                added.append(ChangedLine(line, "", 0))
        elif is_in_hunk:
            if line.startswith(("+", "-")) and not _is_blank_or_comment(line[1:]):
                (added if line[0] == "+" else removed).append(_changed_line(line[1:], at))
            at += line.startswith(("-", " "))
    if path:
        found.append(FileChanges(path, tuple(removed), tuple(added)))
    return tuple(sorted(found))


def _changed_line(text: str, line_number: int) -> ChangedLine:
    indent = text[: len(text) - len(text.lstrip())]
    return ChangedLine(_TRAILING_COMMENT.sub("", text).strip(), indent, line_number)


def _is_blank_or_comment(line: str) -> bool:
    return not line.strip() or _COMMENT.match(line) is not None


def are_nearly_equal(first: Sequence[FileChanges], second: Sequence[FileChanges]) -> bool:
    """Return whether two patches remove the same lines and add nearly the same lines at the same places.

    Names and texts may differ slightly. A different number, operator or indentation is a different fix.
    """
    if not first or [change.path for change in first] != [change.path for change in second]:
        return False
    return all(
        _texts(one.removed) == _texts(other.removed)
        and _are_close(one.removed, other.removed)
        and _are_close(one.added, other.added)
        and _are_similar(one.added, other.added)
        for one, other in zip(first, second, strict=True)
    )


def _texts(lines: Sequence[ChangedLine]) -> tuple[str, ...]:
    return tuple(line.text for line in lines)


def _are_close(first: Sequence[ChangedLine], second: Sequence[ChangedLine]) -> bool:
    """Return whether lines were changed at about the same places."""
    if len(first) == len(second):
        return all(
            abs(one.line_number - other.line_number) <= MAX_LINES_APART
            for one, other in zip(first, second, strict=True)
        )
    if not first or not second:
        # One side has only comments and blank lines, so the other side decides.
        return True
    return all(abs(first[end].line_number - second[end].line_number) <= MAX_LINES_APART for end in (0, -1))


def _are_similar(first: Sequence[ChangedLine], second: Sequence[ChangedLine]) -> bool:
    if len(first) == len(second) and [line.indent for line in first] != [line.indent for line in second]:
        return False
    if _texts(first) == _texts(second):
        return True
    one, other = _tokens(_texts(first)), _tokens(_texts(second))
    if max(len(one), len(other)) > MAX_TOKENS or not one or not other:
        return False
    if Counter(filter(_must_be_equal, one)) != Counter(filter(_must_be_equal, other)):
        return False
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= MIN_SIMILARITY


def _tokens(lines: tuple[str, ...]) -> list[tuple[str, str]]:
    found = []
    for match in _TOKEN.finditer("\n".join(lines)):
        kind = match.lastgroup or "sign"
        text = match.group()
        if kind == "text":
            # The kind of quote is insignificant.
            text = text.strip("rbfuRBFU").strip("\"'")
        found.append((kind, text))
    return found


def _must_be_equal(token: tuple[str, str]) -> bool:
    kind, text = token
    return kind in ("number", "sign") or (kind == "name" and text in _KEYWORDS)

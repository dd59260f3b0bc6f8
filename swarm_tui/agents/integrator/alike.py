"""Finds the same fix made by several agents: the same patch, or patches that differ in nothing that matters."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from swarm_tui.agents.integrator.branches import AgentCommit

ALIKE_RATIO: Final = 0.9
TOKENS_COMPARED: Final = 2_000

_TOKEN: Final = re.compile(
    r"""(?P<text>[rbfuRBFU]{0,2}(?:"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'))"""
    r"""|(?P<name>[^\W\d]\w*)"""
    r"""|(?P<number>\d[\w.]*)"""
    r"""|(?P<sign>\S)"""
)
_COMMENT: Final = re.compile(r"^\s*(?:#|//|\*|/\*|--|;|\"\"\")")
_TRAILING_COMMENT: Final = re.compile(r"\s(?:#|//)\s.*$")
_KEYWORDS: Final = frozenset(
    {"and", "or", "not", "in", "is", "if", "else", "True", "False", "None", "true", "false", "null"}
)


class Changed(NamedTuple):
    """What a patch does to one file, without blank lines, comments and the way it is laid out."""

    path: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FoldedFix:
    """One change to the code under test, and everybody who made it; the first commit is the one that is taken."""

    commits: tuple[AgentCommit, ...]
    why_same: str = field(default="", compare=False)

    @property
    def chosen(self) -> AgentCommit:
        return self.commits[0]

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(commit.source.agent for commit in self.commits))

    @property
    def branches(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(commit.source.branch for commit in self.commits))

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(commit.source.test for commit in self.commits))


def fold_same_fixes(commits: Sequence[AgentCommit]) -> list[FoldedFix]:
    """Fold commits that make the same change into one fix each; the order of the first ones is kept."""
    groups: dict[str, list[AgentCommit]] = {}
    for commit in commits:
        groups.setdefault(commit.patch_id, []).append(commit)
    folded: list[tuple[list[AgentCommit], tuple[Changed, ...], bool]] = []
    for group in groups.values():
        changes = changes_of(group[0].patch)
        for others, other_changes, _ in folded:
            if are_nearly_equal(changes, other_changes):
                others += group
                folded[[entry[0] is others for entry in folded].index(True)] = (others, other_changes, True)
                break
        else:
            folded.append((group, changes, False))
    return [_fix_of(group, is_near) for group, _, is_near in folded]


def _fix_of(group: list[AgentCommit], is_near: bool) -> FoldedFix:
    # The patch that most agents wrote stands for all; among equals the shortest.
    votes = Counter(commit.patch_id for commit in group)
    ordered = sorted(group, key=lambda commit: (-votes[commit.patch_id], commit.lines))
    same = "nearly the same hunks" if is_near else "the same patch"
    return FoldedFix(tuple(ordered), why_same=same if len({commit.source.agent for commit in group}) > 1 else "")


def changes_of(patch: str) -> tuple[Changed, ...]:
    """Give what a patch does to each file, as far as it matters."""
    found: list[Changed] = []
    path, removed, added = "", list[str](), list[str]()
    is_in_hunk = False
    for line in patch.split("\n"):
        if line.startswith("diff --git "):
            if path:
                found.append(Changed(path, tuple(removed), tuple(added)))
            path, removed, added, is_in_hunk = line.rpartition(" b/")[2], [], [], False
        elif line.startswith("@@"):
            is_in_hunk = True
        elif not is_in_hunk and path and line:
            # Modes, renames and ids of binary files: all of it matters.
            if not line.startswith(("index ", "--- ", "+++ ")) or "Binary" in line:
                added.append(line)
        elif line.startswith(("+", "-")) and not _is_idle(line[1:]):
            (added if line[0] == "+" else removed).append(_TRAILING_COMMENT.sub("", line[1:]).strip())
    if path:
        found.append(Changed(path, tuple(removed), tuple(added)))
    return tuple(sorted(found))


def _is_idle(line: str) -> bool:
    return not line.strip() or _COMMENT.match(line) is not None


def are_nearly_equal(first: Sequence[Changed], second: Sequence[Changed]) -> bool:
    """Whether two patches take away the same and add nearly the same.

    Names and texts may differ a little; a number or an operator that differs makes another fix.
    """
    if not first or [change.path for change in first] != [change.path for change in second]:
        return False
    return all(
        one.removed == other.removed and _are_alike(one.added, other.added)
        for one, other in zip(first, second, strict=True)
    )


def _are_alike(first: tuple[str, ...], second: tuple[str, ...]) -> bool:
    if first == second:
        return True
    one, other = _tokens(first), _tokens(second)
    if max(len(one), len(other)) > TOKENS_COMPARED or not one or not other:
        return False
    if Counter(filter(_is_hard, one)) != Counter(filter(_is_hard, other)):
        return False
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= ALIKE_RATIO


def _tokens(lines: tuple[str, ...]) -> list[tuple[str, str]]:
    found = []
    for match in _TOKEN.finditer("\n".join(lines)):
        kind = match.lastgroup or "sign"
        text = match.group()
        if kind == "text":
            # One quote is as good as the other.
            text = text.strip("rbfuRBFU").strip("\"'")
        found.append((kind, text))
    return found


def _is_hard(token: tuple[str, str]) -> bool:
    kind, text = token
    return kind in ("number", "sign") or (kind == "name" and text in _KEYWORDS)

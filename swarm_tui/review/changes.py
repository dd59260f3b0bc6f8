"""The changes of an integrated branch that a review decides on, and what a plan of decisions results in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from swarm_tui.model.commits import Commit

if TYPE_CHECKING:
    from swarm_tui.model.commit_messages import TestWork


class Kind(StrEnum):
    """The kind of a change."""

    FIX = "fix"
    """A commit of the branch."""
    TEST_CHANGE = "test change"
    """The work of one or more agents in the commit of test and doc fixes, or one hunk of that commit."""
    HUNK = "hunk"
    """A hunk of a fix."""
    LEFT_OUT = "left-out fix"
    """An agent's commit that the integrator left out, and that the user can include."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change that the user keeps or removes."""

    commit: Commit
    """The two trees that it is between, its author and its message."""
    position: int
    """The index on the branch: 0 is the oldest commit after the base."""
    rank: int
    """The order of review, starting at 1."""
    title: str
    """The subject without its prefix, safe to print."""
    branch: str = ""
    """The agent's branch with the original commit; empty if unknown."""
    branches: tuple[str, ...] = ()
    """All branches with the same fix, merged into this one."""
    agents: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    """The tests whose agents committed the fix, if known without the records of the sweep."""
    hunk_of: str = ""
    """For a hunk, the commit of its fix; otherwise ""."""
    kind: Kind = Kind.FIX
    by_integrator: str = ""
    """How an integrating agent changed or added the commit, such as "no agent created this commit"; otherwise ""."""

    @property
    def id(self) -> str:
        return self.commit.id

    @property
    def origin(self) -> str:
        """A label for a commit that the integrator changed or created; otherwise ""."""
        if not self.by_integrator:
            return ""
        return "changed by the integrator" if self.agents else "by the integrator"

    @property
    def added(self) -> int:
        shown = self.commit.shown_lines
        return shown[0] if shown is not None else sum(change.added or 0 for change in self.commit.changes)

    @property
    def removed(self) -> int:
        shown = self.commit.shown_lines
        return shown[1] if shown is not None else sum(change.removed or 0 for change in self.commit.changes)

    @property
    def change_without_lines(self) -> str:
        """The kind of a change without added or removed lines: binary, mode, moved or empty; otherwise ""."""
        changes = self.commit.changes
        if self.added or self.removed or not changes:
            return ""
        if any(change.added is None for change in changes):
            return "binary"
        is_mode = any(change.status == "M" and change.old_mode != change.new_mode for change in changes)
        return "mode" if is_mode else "moved" if any(change.status == "D" for change in changes) else "empty"


@dataclass(frozen=True, slots=True)
class IntegratedBranch:
    """An integrated branch: its commits after the base, oldest first, and its fixes in order of rank."""

    base: str
    base_tree: str
    tip: str
    tip_tree: str
    commits: tuple[Commit, ...]
    fixes: tuple[Change, ...]
    squashed: str | None = None
    """The id of the commit with all test and doc fixes."""
    tests: Change | None = None
    """The commit with all test and doc fixes as row 0 of the list, if it has a separate row."""
    doubts: tuple[str, ...] = ()
    """Sentences about differences between the integrator's report and the branch."""
    risks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sentences about risky files in a commit (`review/review.py`), by commit id."""
    not_measured: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Sentences on how a commit could falsify test results, which is why it is not measured, by commit id."""

    def risks_of(self, commit: str) -> tuple[str, ...]:
        """Return sentences on what to check in a commit before keeping it."""
        doubts = tuple(f"not measured: {doubt}" for doubt in self.not_measured.get(commit, ()))
        return (*self.risks.get(commit, ()), *doubts)

    @property
    def risk_lines(self) -> tuple[str, ...]:
        """The risks of all commits, each with the rank or id of its commit; safe to print."""
        ranks = {fix.id: f"#{fix.rank}" for fix in self.fixes}
        return tuple(
            f"{ranks.get(commit.id, commit.id[:9])}: {risk}"
            for commit in self.commits
            for risk in self.risks_of(commit.id)
        )

    @property
    def unlisted(self) -> int:
        """The number of commits that no list shows: neither fixes nor the commit of test and doc fixes."""
        listed = {fix.id for fix in self.fixes} | {self.squashed}
        return sum(commit.id not in listed for commit in self.commits)

    def find(self, commit: str) -> Change | None:
        """Return the fix with this commit id, or None."""
        return next((fix for fix in self.fixes if fix.id == commit), None)


@dataclass(frozen=True, slots=True)
class AgentBranch:
    """One agent's branch in the sweep."""

    branch: str
    agent: str
    test: str
    tip: str
    is_weaker: bool = False
    """Whether the source of its test shows that it became weaker."""


@dataclass(frozen=True, slots=True)
class TestChanges:
    """The test changes that make up the commit of all test and doc fixes."""

    parts: tuple[Change, ...] = ()
    picks: tuple[Commit, ...] = ()
    """The commits of all test changes, with their ids, in the order that leads to the tree of the squashed commit."""
    are_hunks: bool = False
    """Whether each test change is one hunk, because the integrator merged the agents' work into one change."""
    works: Mapping[str, tuple[TestWork, ...]] = field(default_factory=dict)
    """The agents' commits of each test change; empty if they are hunks."""

    def find(self, part: str) -> Change | None:
        return next((change for change in self.parts if change.id == part), None)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A revert that conflicts with later commits."""

    commit: str
    opponents: tuple[str, ...]
    """Later commits that are kept and changed the same lines, oldest first."""
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """The resulting tree of a plan, or its conflicts."""

    reverted: tuple[str, ...]
    """Newest first, in the order of the reverts."""
    tree: str | None
    """The resulting tree; None if there are conflicts."""
    conflicts: tuple[Conflict, ...] = ()
    unchanging: tuple[str, ...] = ()
    """Reverts without an effect."""
    resolved: tuple[str, ...] = ()
    """Reverts with a conflict that the user resolved."""
    left_out: tuple[str, ...] = ()
    """Test changes that the plan removes."""
    taken: tuple[str, ...] = ()
    """Fixes that the integrator left out and the plan includes."""
    hunks: tuple[str, ...] = ()
    """Hunks that the plan reverts in fixes that it keeps."""

    @property
    def chosen(self) -> frozenset[str]:
        """The ids of all changes that the plan reverts, removes or includes."""
        return frozenset((*self.reverted, *self.left_out, *self.taken, *self.hunks))

    @property
    def is_clean(self) -> bool:
        return self.tree is not None

    @property
    def changes_something(self) -> bool:
        """Whether the plan differs from the branch."""
        return bool(self.chosen)

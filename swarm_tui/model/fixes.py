"""An integrated branch, its fixes, and the preview of a plan of verdicts on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FIX_PREFIX: Final = "[FIX_IMPL]"


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a commit does to one path. A rename is a deleted and an added path."""

    path: str
    status: str
    """A added, M modified, D deleted, T made another type."""
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str
    added: int | None = None
    """Lines, or None for a binary file."""
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
    """As git writes it: seconds and zone, such as "1763445120 +0100"."""
    message: str
    changes: tuple[FileChange, ...] = ()
    shown_lines: tuple[int, int] | None = None
    """The added and removed lines that its diff shows, where a renamed file counts by what was changed in it."""

    @property
    def subject(self) -> str:
        """The first line of the message; unchecked text of an agent."""
        return self.message.partition("\n")[0]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(change.path for change in self.changes)


@dataclass(frozen=True, slots=True)
class Fix:
    """One commit that a person keeps or reverts."""

    commit: Commit
    position: int
    """Its index on the branch: 0 is the oldest commit after the base."""
    rank: int
    """1 is looked at first."""
    title: str
    """The subject without its prefix, harmless to show."""
    branch: str = ""
    """The agent's branch that it comes from; empty when it is not known."""
    branches: tuple[str, ...] = ()
    """All branches that were folded into it."""
    agents: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    """The tests whose agents made it, where that is known without the sweep's records."""
    hunk_of: str = ""
    """The commit of the fix that this is one hunk of; "" of whole fixes and of parts."""

    @property
    def id(self) -> str:
        return self.commit.id

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
        """What it does where it neither adds nor removes a line: binary, mode, moved; else ""."""
        changes = self.commit.changes
        if self.added or self.removed or not changes:
            return ""
        if any(change.added is None for change in changes):
            return "binary"
        is_mode = any(change.status == "M" and change.old_mode != change.new_mode for change in changes)
        return "mode" if is_mode else "moved" if any(change.status == "D" for change in changes) else "empty"


@dataclass(frozen=True, slots=True)
class IntegratedBranch:
    """The commits between a base and a tip, oldest first, and which of them are fixes, rank 1 first."""

    base: str
    base_tree: str
    tip: str
    tip_tree: str
    commits: tuple[Commit, ...]
    fixes: tuple[Fix, ...]
    squashed: str | None = None
    """The commit that holds all test and doc fixes."""
    tests: Fix | None = None
    """The commit of all test and doc fixes as row 0 of the list, where it has a row of its own."""
    doubts: tuple[str, ...] = ()
    """Sentences about differences between the integrator's report and the branch."""
    risks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What is risky about the files of a commit (`triage/risky_files.py`), by its id."""

    @property
    def risk_lines(self) -> tuple[str, ...]:
        """The risks of all commits, each with the name of its commit; harmless to show."""
        ranks = {fix.id: f"#{fix.rank}" for fix in self.fixes}
        return tuple(
            f"{ranks.get(commit.id, commit.id[:9])}: {risk}"
            for commit in self.commits
            for risk in self.risks.get(commit.id, ())
        )

    @property
    def unlisted(self) -> int:
        """How many commits are neither a fix nor the one of tests and docs: no list shows them."""
        listed = {fix.id for fix in self.fixes} | {self.squashed}
        return sum(commit.id not in listed for commit in self.commits)

    def find(self, commit: str) -> Fix | None:
        """Return the fix that is this commit, or None for a commit that is no fix."""
        return next((fix for fix in self.fixes if fix.id == commit), None)


@dataclass(frozen=True, slots=True)
class Pick:
    """One change that is picked when the branch is made anew, from one tree to another."""

    owner: str
    """The part or commit that it belongs to."""
    before: str
    after: str
    changes: tuple[FileChange, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitParts:
    """What the commit of all test and doc fixes was made of."""

    parts: tuple[Fix, ...] = ()
    picks: tuple[Pick, ...] = ()
    """All of them, in the order in which they lead from the tree before that commit to its own."""
    are_hunks: bool = False
    """Its integrator wove the agents' work into one, so that a part is a hunk."""

    def find(self, part: str) -> Fix | None:
        return next((known for known in self.parts if known.id == part), None)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A revert that git could not do by itself."""

    commit: str
    opponents: tuple[str, ...]
    """Later commits that stay and changed the same places, oldest first."""
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """The tree that a plan leads to, or its conflicts."""

    reverted: tuple[str, ...]
    """Newest first, as they are applied."""
    tree: str | None
    """The resulting tree; None when there are conflicts."""
    conflicts: tuple[Conflict, ...] = ()
    unchanging: tuple[str, ...] = ()
    """Reverts that change nothing any more."""
    resolved: tuple[str, ...] = ()
    """Reverts whose conflict a person has resolved."""
    left_out: tuple[str, ...] = ()
    """Parts of the commit of all test and doc fixes that the plan is without."""
    taken: tuple[str, ...] = ()
    """Fixes that the integrator left out and the plan takes in."""
    hunks: tuple[str, ...] = ()
    """Hunks that are reverted of fixes that stay otherwise."""

    @property
    def chosen(self) -> frozenset[str]:
        """All that the plan names; the preview of it is this one."""
        return frozenset((*self.reverted, *self.left_out, *self.taken, *self.hunks))

    @property
    def is_clean(self) -> bool:
        return self.tree is not None

    @property
    def changes_something(self) -> bool:
        """Whether the plan is anything but the branch as it stands."""
        return bool(self.chosen)

"""Makes the integrated branch in the object store: one commit of all test and doc fixes, then one for each fix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.adapters.git import Identity
from swarm_tui.adapters.git.merging import MergeResult
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.agents.integrator.branches import AgentCommit
from swarm_tui.agents.integrator.classify import SQUASH_PREFIX
from swarm_tui.agents.integrator.duplicates import DistinctFix
from swarm_tui.agents.integrator.inputs import IntegratorInputs
from swarm_tui.agents.integrator.ranking import RankedFix
from swarm_tui.model.commit_kinds import kinds_of, without_marks
from swarm_tui.model.fixes import FIX_PREFIX
from swarm_tui.model.outcome import ChangeKind
from swarm_tui.model.text import plain, plain_lines

KIND_NAMES: Final = {
    ChangeKind.IMPROVE_TEST: ("better test", "better tests"),
    ChangeKind.FIX_TEST: ("test fix", "test fixes"),
    ChangeKind.FIX_TUTORIAL: ("tutorial fix", "tutorial fixes"),
}
MESSAGE_LIMIT: Final = 20_000
WEAKER_KIND: Final = ("weaker test", "weaker tests")
OTHER_KIND: Final = ("other change", "other changes")
_TRAILERS: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]*: [^\n]+\n?)+")


@dataclass(frozen=True, slots=True)
class RejectedCommit:
    """A commit that is not on the branch, and why."""

    commit: AgentCommit
    reason: str


@dataclass(frozen=True, slots=True)
class Tip:
    """The last commit of a branch, and its tree."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class FixOnBranch:
    """A fix and its commit on the branch."""

    ranked: RankedFix
    tip: Tip

    @property
    def fix(self) -> DistinctFix:
        return self.ranked.fix

    @property
    def commit(self) -> str:
        return self.tip.commit


@dataclass(slots=True)
class BranchFixes:
    """Which fixes are on the branch, in its order, and which are left out, each with the reason."""

    picked: list[FixOnBranch] = field(default_factory=list)
    left_out: list[tuple[RankedFix, str]] = field(default_factory=list)


class BranchBuilder:
    """Puts commits of agents on top of each other by three-way merges of trees."""

    def __init__(self, space: ObjectSpace, inputs: IntegratorInputs) -> None:
        self._space = space
        self._inputs = inputs
        self._committer = Identity(inputs.committer.name, inputs.committer.email)

    def squash(self, base: Tip, commits: Sequence[AgentCommit]) -> tuple[Tip, list[AgentCommit], list[RejectedCommit]]:
        """Put all test and doc commits into one; those that do not fit with the ones before them are left out."""
        tree, squashed, rejected = base.tree, list[AgentCommit](), list[RejectedCommit]()
        for commit in commits:
            merge = self._merge(tree, commit)
            if merge.is_clean:
                tree = merge.tree
                squashed.append(commit)
            else:
                others = [other for other in squashed if set(other.paths) & set(merge.conflict_paths)]
                rejected.append(RejectedCommit(commit, conflict_reason(merge.conflict_paths, others)))
        if tree == base.tree:
            return base, squashed, rejected
        message = squash_message(squashed, self._inputs.sweep)
        authors = {commit.author.email: commit.author for commit in squashed}
        author = next(iter(authors.values())) if len(authors) == 1 else self._committer
        made = self._space.commit(tree, [base.commit], message.encode(), author=author)
        return Tip(made, tree), squashed, rejected

    def tree_with(self, tree: str, commits: Sequence[AgentCommit]) -> str | None:
        """Return a tree with these commits picked on it, or None when one of them conflicts there."""
        for commit in commits:
            merge = self._merge(tree, commit)
            if not merge.is_clean:
                return None
            tree = merge.tree
        return tree

    def add_fixes(self, start: Tip, ranked: Sequence[RankedFix]) -> tuple[Tip, BranchFixes]:
        """Pick the fixes in their order; what conflicts is tried again after the others, then left out."""
        tip, fixes = start, BranchFixes()
        waiting = list(ranked)
        while waiting:
            conflicting = []
            for entry in waiting:
                next_tip = self._pick(tip, entry)
                if next_tip is None:
                    conflicting.append(entry)
                    continue
                tip = next_tip
                fixes.picked.append(FixOnBranch(entry, tip))
            if len(conflicting) == len(waiting):
                break
            waiting = conflicting
        for entry in waiting:
            fixes.left_out.append((entry, self._reason_left_out(start, tip, entry.fix.chosen, fixes)))
        return tip, fixes

    def _merge(self, tree: str, commit: AgentCommit) -> MergeResult:
        return self._space.merge(base=commit.parent_tree, ours=tree, theirs=commit.tree)

    def _pick(self, tip: Tip, entry: RankedFix) -> Tip | None:
        chosen = entry.fix.chosen
        merge = self._merge(tip.tree, chosen)
        if not merge.is_clean or merge.tree == tip.tree:
            return None
        message = fix_message(entry, self._inputs.sweep).encode()
        made = self._space.commit(
            merge.tree, [tip.commit], message, author=chosen.author, authored=f"@{chosen.authored}"
        )
        return Tip(made, merge.tree)

    def _reason_left_out(self, start: Tip, tip: Tip, commit: AgentCommit, fixes: BranchFixes) -> str:
        merge = self._merge(tip.tree, commit)
        if merge.is_clean:
            return "it brings nothing that is not on the branch already"
        paths = set(merge.conflict_paths)
        on_branch = (entry.fix.chosen for entry in fixes.picked)
        opponents = [
            other for other in on_branch if paths & set(other.paths) and self._do_conflict(start, other, commit)
        ]
        return conflict_reason(merge.conflict_paths, opponents)

    def _do_conflict(self, start: Tip, first: AgentCommit, second: AgentCommit) -> bool:
        """Return whether the second commit conflicts when only the first one is on top of `start`."""
        alone = self._merge(start.tree, first)
        return not alone.is_clean or not self._merge(alone.tree, second).is_clean


def conflict_reason(paths: Sequence[str], opponents: Sequence[AgentCommit]) -> str:
    """Return in words where a commit conflicts, and with what."""
    places = ", ".join(plain(path, 100) for path in paths[:3])
    if not opponents:
        return f"conflicts in {places}"
    sides = " and ".join(f"{other.subject!r} of {other.source.agent}" for other in opponents[:3])
    return f"conflicts in {places} with {sides}"


def squash_message(commits: Sequence[AgentCommit], sweep: str) -> str:
    """Compose the message of the one commit of all test and doc fixes."""
    counts: dict[tuple[str, str], int] = {}
    lines = []
    for commit in commits:
        name = _kind_name(commit)
        counts[name] = counts.get(name, 0) + 1
        lines.append(f"* {without_marks(commit.subject)}\n  {plain(commit.source.test, 300)}")
    found = ((name, counts[name]) for name in (*KIND_NAMES.values(), WEAKER_KIND, OTHER_KIND) if name in counts)
    title = ", ".join(f"{count} {many if count > 1 else one}" for (one, many), count in found)
    authors = dict.fromkeys(str(commit.author) for commit in commits)
    trailers = [f"Co-authored-by: {author}" for author in authors] if len(authors) > 1 else []
    trailers += [f"Agent: {agent}" for agent in dict.fromkeys(commit.source.agent for commit in commits)]
    body = "\n".join(lines)
    return f"{SQUASH_PREFIX} {title}\n\n{body}\n\n" + "\n".join([*trailers, f"Sweep: {sweep}"]) + "\n"


def _kind_name(commit: AgentCommit) -> tuple[str, str]:
    kinds = kinds_of(commit.message)
    if kinds == (ChangeKind.IMPROVE_TEST,) and commit.source.weaker:
        return WEAKER_KIND
    return KIND_NAMES.get(kinds[0], OTHER_KIND) if len(kinds) == 1 else OTHER_KIND


def fix_message(entry: RankedFix, sweep: str) -> str:
    """Return the message of a fix as its agent wrote it, marked as a fix, with trailers naming its origin."""
    subject, _, body = plain_lines(entry.fix.chosen.message[:MESSAGE_LIMIT]).partition("\n")
    if kinds_of(subject) != (ChangeKind.FIX_IMPL,):
        subject = f"{FIX_PREFIX} {without_marks(subject)}"
    trailers = [f"Agent: {agent}" for agent in entry.fix.agents]
    trailers += [f"Test: {plain(test, 300)}" for test in entry.fix.tests]
    trailers.append(f"Sweep: {sweep}")
    body, ending = body.strip(), "\n".join(trailers)
    last = body.rpartition("\n\n")[2]
    if _TRAILERS.fullmatch(last):
        # git reads one block of trailers, the last one.
        body, ending = body.removesuffix(last).rstrip(), f"{last.rstrip()}\n{ending}"
    return "\n\n".join(part for part in (subject.strip(), body, ending) if part) + "\n"

"""One integration: the work of all agents, and the branch that the built-in integrator builds and measures."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.integrator.branches import AgentCommit
from swarm_tui.integrator.build import BranchFixes, FixTree, RejectedCommit, Tip, add_fixes, squash
from swarm_tui.integrator.duplicates import DistinctFix, distinct_fixes, earlier_on_its_branch
from swarm_tui.integrator.inputs import IntegratorInputs
from swarm_tui.integrator.measure import FixMeasurement, Progress
from swarm_tui.integrator.progress import Meter
from swarm_tui.integrator.report import IntegrationResult, passed_before, rank_fixes, reported_effect
from swarm_tui.integrator.tip import Before, TipRun, files_with_markers, run_tip
from swarm_tui.model.formatting import counted
from swarm_tui.review.picking import tree_with
from swarm_tui.review.ranking import Effect
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.measuring_files import ChangedFiles, why_not_measured


@dataclass(frozen=True, slots=True)
class Work:
    """The agents' commits."""

    commits: tuple[AgentCommit, ...]
    refused: Mapping[str, str]
    """Unusable branches, with the reasons."""
    fixes: tuple[DistinctFix, ...]
    tests_and_docs: tuple[AgentCommit, ...]

    @classmethod
    def sort(cls, commits: Sequence[AgentCommit], refused: Mapping[str, str]) -> Work:
        fixes = distinct_fixes([commit for commit in commits if commit.classification.is_fix])
        others = tuple(commit for commit in commits if not commit.classification.is_fix)
        return cls(tuple(commits), refused, tuple(fixes), others)


class Integrator:
    """The work of the agents, and the copies for running tests."""

    def __init__(
        self,
        space: ObjectSpace,
        copies: TestCopies,
        inputs: IntegratorInputs,
        work: Work,
        progress: Progress,
        meter: Meter,
    ) -> None:
        self.space = space
        self.copies = copies
        self.inputs = inputs
        self.work = work
        self.progress = progress
        self.meter = meter
        self.base = Tip(inputs.base, space.original.tree_of(inputs.base))

    async def build(self) -> IntegrationResult:
        """Build a branch with the fixes in the order of their measured effects."""
        fixes, others = self.work.fixes, self.work.tests_and_docs
        self.meter.begin(f"combining {counted(len(others), 'test and doc commit')}")
        start, squashed, rejected = await asyncio.to_thread(squash, self.space, self.inputs, self.base, others)
        self.progress(f"{len(squashed)} test and doc commits squashed, {len(fixes)} different fixes to rank")
        trees, effects = await asyncio.to_thread(_trees_with_one_fix, self.space, start, fixes)
        measurement = self.measurement(start.tree, trees)
        effects |= await measurement.measure()
        tip, on_branch, final = await self._add_in_order(start, squashed, rejected, effects)
        updated = await measurement.add_breakages(effects, final.regressed if final else (), on_branch.picked)
        if updated != effects:
            # Tests that a fix breaks lower its rank. The branch gets the same commits in another order.
            tip, on_branch, final = await self._add_in_order(start, squashed, rejected, updated)
        return IntegrationResult(
            self.base.commit,
            start.commit,
            tip.commit,
            tuple(squashed),
            tuple(rejected),
            on_branch,
            self.work.refused,
            final,
            updated,
            await asyncio.to_thread(files_with_markers, self.space, self.base.tree, tip.tree),
        )

    async def _add_in_order(
        self,
        start: Tip,
        squashed: Sequence[AgentCommit],
        rejected: Sequence[RejectedCommit],
        effects: Mapping[str, Effect],
    ) -> tuple[Tip, BranchFixes, TipRun | None]:
        """Add the fixes, best first, and run all tests at the tip."""
        self.meter.begin("ranking the fixes")
        ranked = rank_fixes(self.work.fixes, effects)
        tip, on_branch = await asyncio.to_thread(add_fixes, self.space, self.inputs, start, ranked)
        commits = [*squashed, *(entry.fix.chosen for entry in on_branch.picked)]
        branches = {branch for entry in on_branch.picked for branch in entry.fix.branches}
        branches |= {commit.source.branch for commit in squashed}
        left_out = {branch for fix, _ in on_branch.left_out for branch in fix.branches}
        left_out |= {entry.commit.source.branch for entry in rejected}
        return tip, on_branch, await self.run_at_tip(tip, commits, branches, left_out)

    def measurement(self, tree_before: str, trees: Sequence[FixTree]) -> FixMeasurement:
        return FixMeasurement(self.space, self.copies, self.inputs, tree_before, trees, self.progress, self.meter)

    def doubts(self, commits: Sequence[AgentCommit]) -> list[str]:
        """Return sentences about commits that may tamper with test results."""
        changed = [ChangedFiles(commit.changes, commit.classification.is_fix) for commit in commits]
        found = zip(commits, why_not_measured(self.space.repository, changed), strict=True)
        return [f"{commit.subject!r} {doubt}" for commit, doubts in found for doubt in doubts]

    async def run_at_tip(
        self, tip: Tip, commits: Sequence[AgentCommit], branches: Collection[str], left_out: Collection[str]
    ) -> TipRun | None:
        """Run all tests at a tip that contains these branches; those in `left_out` only partly.

        `commits` are the changes up to the tip. Return None if measuring is disabled.
        """
        inputs, tests = self.inputs, [test.test for test in self.inputs.tests]
        if inputs.measure_seconds <= 0 or not inputs.python or not tests or tip.commit == inputs.base:
            return None
        before = Before(self.base.commit, passed_before(inputs, branches, left_out), self.space.repository.tree_of)
        self.meter.expect(len(tests))
        run = await run_tip(self.copies, tip.tree, tests, before, max(inputs.measure_seconds, 60.0), self.meter)
        self.progress(f"{len(run.passed)} of {len(tests)} tests pass on the integrated branch")
        return replace(run, doubts=tuple(await asyncio.to_thread(self.doubts, commits)))


def _trees_with_one_fix(
    space: ObjectSpace, start: Tip, fixes: Sequence[DistinctFix]
) -> tuple[list[FixTree], dict[str, Effect]]:
    """Return a tree with each fix. For fixes that fit neither alone nor on their branch, return the reported effect."""
    trees, effects = [], {}
    for fix in fixes:
        if (alone := tree_with(space, start.tree, [fix.chosen])) is not None:
            trees.append(FixTree(fix, alone))
            continue
        earlier = earlier_on_its_branch(fix, fixes)
        before = tree_with(space, start.tree, earlier)
        tree = tree_with(space, before, [fix.chosen]) if earlier and before is not None else None
        if before is not None and tree is not None:
            trees.append(FixTree(fix, tree, before, builds_on=earlier[-1].subject))
        else:
            effects[fix.chosen.id] = reported_effect(fix, "it conflicts with the test and doc fixes")
    return trees, effects

"""The program of the built-in integrator: reads its input, builds and measures the branch, publishes its report."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.git import Repository, create_bundle
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.agents.contract import BUNDLE_FILE, OUTPUT_FOLDER
from swarm_tui.agents.submit import Presence, publish_archive, write_report
from swarm_tui.errors import SwarmError
from swarm_tui.integrator.branches import AgentCommit, read_branches
from swarm_tui.integrator.build import BranchFixes, FixTree, RejectedCommit, Tip, add_fixes, squash
from swarm_tui.integrator.duplicates import DistinctFix, distinct_fixes, earlier_on_its_branch
from swarm_tui.integrator.inputs import IntegratorInputs, Submission, read_inputs
from swarm_tui.integrator.measure import FixMeasurement, Progress
from swarm_tui.integrator.report import IntegrationResult, compose_outcome, passed_before, rank_fixes, reported_effect
from swarm_tui.integrator.submission import (
    MeasuredSubmission,
    is_all_there,
    measure_submission,
    why_unusable,
    why_worse,
)
from swarm_tui.integrator.tip import Before, Meter, TipRun, files_with_markers, run_tip
from swarm_tui.journal.progress_file import PROGRESS_FILE, ProgressFile
from swarm_tui.model.formatting import counted
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE
from swarm_tui.model.report import IntegratorReport
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


@dataclass(slots=True)
class Integrator:
    """The work of the agents, and the copies for running tests."""

    space: ObjectSpace
    copies: TestCopies
    inputs: IntegratorInputs
    work: Work
    progress: Progress
    meter: Meter
    base: Tip = field(init=False)

    def __post_init__(self) -> None:
        self.base = Tip(self.inputs.base, self.space.original.tree_of(self.inputs.base))

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


COPIES: Final = 4


async def integrate(
    repository: Repository,
    inputs: IntegratorInputs,
    progress: Progress,
    scratch: Path | None = None,
    meter: Meter | None = None,
) -> IntegratorReport:
    """Build the integrated branch in the integrator's own repository, and return the report.

    A branch that a coding agent submitted is measured. It is used unless the branch that is built here is better. Tests
    run in copies below `scratch`, or in the system's temporary folder. `progress` receives sentences for the
    transcript, and `meter` receives the progress in tests.
    """
    meter = meter or Meter()
    meter.begin(f"reading {counted(len(inputs.branches), 'branch', 'branches')}")
    commits, refused = await asyncio.to_thread(read_branches, repository, inputs)
    progress(f"{len(inputs.branches)} branches, {len(commits)} commits")
    work = Work.sort(commits, refused)
    results = Path(inputs.cache) if inputs.cache else None
    with ObjectSpace(repository) as space:
        async with TestCopies(
            space, inputs.test_settings, base=inputs.base, results=results, count=COPIES, parent_folder=scratch
        ) as copies:
            copies.on_tests = meter.count
            copies.arguments.update((test.test, test.argument) for test in inputs.tests if test.argument)
            integrator = Integrator(space, copies, inputs, work, progress, meter)
            outcome, tip = await _choose(integrator)
        if tip != inputs.base:
            space.copy_to_repository(tip, known=[inputs.base])
            repository.run("update-ref", f"refs/heads/{inputs.branch}", tip)
    return outcome


async def _choose(integrator: Integrator) -> tuple[IntegratorReport, str]:
    """Return the report and the last commit of the better branch: the submitted one or the one that is built here."""
    inputs, submission = integrator.inputs, integrator.inputs.submission
    submitted, reason = None, ""
    if submission is not None:
        reason = why_unusable(integrator.space.original, inputs, integrator.work)
        if not reason:
            submitted = await measure_submission(integrator, submission.report, submission.tip)
            if is_all_there(integrator, submitted):
                return _outcome_of_submission(inputs, submission, submitted)
    built = await integrator.build()
    if submission is not None and submitted is not None:
        reason = await why_worse(integrator, submitted, built)
        if not reason:
            return _outcome_of_submission(inputs, submission, submitted)
    refusal = {"refused": reason, "refused_tip": submission.tip} if submission is not None else {}
    if submission is not None and submission.tip:
        refusal["refused_branch"] = inputs.branch
    return compose_outcome(inputs, built).model_copy(update={"by": "builtin", **refusal}), built.tip


def _outcome_of_submission(
    inputs: IntegratorInputs, submission: Submission, submitted: MeasuredSubmission
) -> tuple[IntegratorReport, str]:
    outcome, report = compose_outcome(inputs, submitted.result), submission.report
    more = {
        "by": "agent",
        "normalizations": (*outcome.normalizations, *report.normalizations),
        "escalations": (*outcome.escalations, *report.escalations),
    }
    return outcome.model_copy(update=more), submitted.result.tip


def main() -> None:
    inputs_file = Path(sys.argv[1])
    inputs = read_inputs(inputs_file)
    meter = Meter(ProgressFile(inputs_file.with_name(PROGRESS_FILE)).write)
    state_folder = Path(os.environ["MNGR_AGENT_STATE_DIR"])
    presence = Presence(state_folder, Path(os.environ["MNGR_HOST_DIR"]))
    presence.set_working(True)
    work = Path(os.environ["MNGR_AGENT_WORK_DIR"])
    try:
        outcome, bundle = asyncio.run(_work(inputs, work, state_folder, presence, meter))
    except (SwarmError, OSError) as error:
        presence.write_message(f"I cannot integrate: {error}")
        sys.exit(1)
    finally:
        presence.set_working(False)
    write_report(work / OUTPUT_FOLDER / INTEGRATOR_OUTCOME_FILE, outcome, "")
    presence.write_message("Done. The branch is submitted.")
    publish_archive(state_folder, work / OUTPUT_FOLDER, bundle, "")


async def _work(
    inputs: IntegratorInputs, work: Path, state_folder: Path, presence: Presence, meter: Meter
) -> tuple[dict[str, Any], Path | None]:
    repository = Repository.open(work)
    for name, value in (("user.name", inputs.committer.name), ("user.email", inputs.committer.email)):
        repository.run("config", "--local", name, value)
    _fetch_branches(repository, inputs)
    outcome = await integrate(repository, inputs, presence.write_message, state_folder, meter)
    bundle = state_folder / BUNDLE_FILE
    is_made = repository.ref(f"refs/heads/{inputs.branch}") not in (None, inputs.base)
    if is_made:
        create_bundle(repository, bundle, base=inputs.base, branch=inputs.branch)
        repository.run("checkout", "--quiet", "--force", inputs.branch)
    return outcome.model_dump(mode="json"), bundle if is_made else None


def _fetch_branches(repository: Repository, inputs: IntegratorInputs) -> None:
    refs = [f"refs/swarm/{inputs.sweep}/*"]
    if inputs.submission is not None and inputs.submission.tip and not inputs.submission.problem:
        refs.append(inputs.submission.ref)
    refspecs = [f"+{ref}:{ref}" for ref in refs]
    repository.run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", inputs.repository, *refspecs, timeout=600)


if __name__ == "__main__":
    main()

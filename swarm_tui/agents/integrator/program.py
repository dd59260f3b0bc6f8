"""The program that mngr runs as the built-in integrator: reads its inputs, makes the branch, publishes its outcome."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.git import Repository, create_bundle
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.agents.contract import BUNDLE_FILE, OUTPUT_FOLDER
from swarm_tui.agents.integrator.branches import read_branches
from swarm_tui.agents.integrator.build_branch import BranchBuilder, Tip
from swarm_tui.agents.integrator.duplicates import DistinctFix, distinct_fixes, earlier_on_its_branch
from swarm_tui.agents.integrator.inputs import IntegratorInputs, read_inputs
from swarm_tui.agents.integrator.measure import FixMeasurement, FixTree, Progress
from swarm_tui.agents.integrator.meter import TESTS, Meter
from swarm_tui.agents.integrator.ranking import Effect, rank_fixes, reported_effect
from swarm_tui.agents.integrator.report import FinalRun, IntegrationResult, broken_tests, compose_outcome
from swarm_tui.agents.offline.handing_in import publish_archive, write_outcome
from swarm_tui.agents.offline.presence import Presence
from swarm_tui.errors import SwarmError
from swarm_tui.journal.progress_file import PROGRESS_FILE, ProgressFile
from swarm_tui.model.formatting import counted
from swarm_tui.model.outcome import INTEGRATOR_OUTCOME_FILE, IntegratorOutcome
from swarm_tui.model.text import plain
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.results import ResultCache

COPIES: Final = 4


async def integrate(
    repository: Repository,
    inputs: IntegratorInputs,
    progress: Progress,
    scratch: Path | None = None,
    meter: Meter | None = None,
) -> IntegratorOutcome:
    """Make the integrated branch in a repository of the integrator's own, and return the outcome.

    Tests are run in copies below `scratch`, or in the system's temporary folder. `progress` gets sentences for the
    transcript, `meter` how far it is.
    """
    meter = meter or Meter()
    meter.begin(f"reading {counted(len(inputs.branches), 'branch', 'branches')}")
    commits, refused = await asyncio.to_thread(read_branches, repository, inputs)
    progress(f"{len(inputs.branches)} branches, {len(commits)} commits")
    base = Tip(inputs.base, repository.tree_of(inputs.base))
    fixes = distinct_fixes([commit for commit in commits if commit.classification.is_fix])
    cache = ResultCache(Path(inputs.cache) if inputs.cache else None, inputs.test_settings.key)
    with ObjectSpace(repository) as space:
        builder = BranchBuilder(space, inputs)
        others = [commit for commit in commits if not commit.classification.is_fix]
        meter.begin(f"putting {counted(len(others), 'test and doc commit')} together")
        start, squashed, rejected = await asyncio.to_thread(builder.squash, base, others)
        progress(f"{len(squashed)} test and doc commits squashed, {len(fixes)} different fixes to rank")
        trees, effects = await asyncio.to_thread(_trees_with_one_fix, builder, start, fixes)
        async with TestCopies(
            space, inputs.test_settings, cache, base=base.commit, count=COPIES, parent_folder=scratch
        ) as copies:
            copies.on_tests = meter.count
            copies.arguments.update((test.test, test.argument) for test in inputs.tests if test.argument)
            measurement = FixMeasurement(space, copies, inputs, start.tree, trees, progress, meter)
            effects |= await measurement.measure()
            meter.begin("putting the fixes in their order")
            tip, on_branch = await asyncio.to_thread(builder.add_fixes, start, rank_fixes(fixes, effects))
            final = await _run_all(copies, inputs, tip, progress, meter)
            steps = [FixTree(entry.fix, entry.tip.tree) for entry in on_branch.picked]
            broken = broken_tests(inputs, squashed, on_branch, final)
            updated = await measurement.add_breakages(effects, broken, steps)
            if updated != effects:
                # What a fix breaks costs it its place. The same commits come onto the branch, in another order.
                tip, on_branch = await asyncio.to_thread(builder.add_fixes, start, rank_fixes(fixes, updated))
                final = await _run_all(copies, inputs, tip, progress, meter)
        if tip.commit != base.commit:
            space.copy_to_repository(tip.commit, known=[base.commit])
    if tip.commit != base.commit:
        repository.run("update-ref", f"refs/heads/{inputs.branch}", tip.commit)
    made = IntegrationResult(
        base.commit, start.commit, tip.commit, tuple(squashed), tuple(rejected), on_branch, refused, final
    )
    return compose_outcome(inputs, made)


def _trees_with_one_fix(
    builder: BranchBuilder, start: Tip, fixes: Sequence[DistinctFix]
) -> tuple[list[FixTree], dict[str, Effect]]:
    """Return a tree with each fix, and the reported effects of those that fit neither alone nor on their own branch."""
    trees, effects = [], {}
    for fix in fixes:
        if (alone := builder.tree_with(start.tree, [fix.chosen])) is not None:
            trees.append(FixTree(fix, alone))
            continue
        earlier = earlier_on_its_branch(fix, fixes)
        before = builder.tree_with(start.tree, earlier)
        tree = builder.tree_with(before, [fix.chosen]) if earlier and before is not None else None
        if before is not None and tree is not None:
            trees.append(FixTree(fix, tree, before, builds_on=earlier[-1].subject))
        else:
            effects[fix.chosen.commit] = reported_effect(fix, "alone it conflicts with the test and doc fixes")
    return trees, effects


async def _run_all(
    copies: TestCopies, inputs: IntegratorInputs, tip: Tip, progress: Progress, meter: Meter
) -> FinalRun | None:
    tests = [test.test for test in inputs.tests]
    if inputs.measure_seconds <= 0 or not inputs.python or not tests or tip.commit == inputs.base:
        return None
    meter.expect(len(tests))
    meter.begin("running all tests on the branch", len(tests), TESTS)
    try:
        run = await copies.run(tip.tree, tests, max(inputs.measure_seconds, 60.0))
    except SwarmError as error:
        return FinalRun({}, plain(str(error), 300))
    passed = sum(run.is_green(test) for test in tests)
    progress(f"on the integrated branch {passed} of {len(tests)} tests pass")
    return FinalRun(run.outcomes, run.complaint)


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
    write_outcome(work / OUTPUT_FOLDER / INTEGRATOR_OUTCOME_FILE, outcome, "")
    presence.write_message("Done; the branch is handed in.")
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
    refs = f"refs/swarm/{inputs.sweep}/*"
    repository.run(
        "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", inputs.repository, f"+{refs}:{refs}", timeout=600
    )


if __name__ == "__main__":
    main()

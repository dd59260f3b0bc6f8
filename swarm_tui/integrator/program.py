"""The program of the built-in integrator: reads its input, builds the branch and publishes its report."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.git import Repository, create_bundle
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.agents.contract import BUNDLE_FILE, OUTPUT_FOLDER
from swarm_tui.agents.submit import Presence, publish_archive, write_report
from swarm_tui.errors import SwarmError
from swarm_tui.integrator.branches import read_branches
from swarm_tui.integrator.inputs import IntegratorInputs, Submission, read_inputs
from swarm_tui.integrator.integrator import Integrator, Work
from swarm_tui.integrator.measure import Progress
from swarm_tui.integrator.progress import Meter
from swarm_tui.integrator.report import compose_outcome
from swarm_tui.integrator.submission import (
    MeasuredSubmission,
    is_all_there,
    measure_submission,
    why_unusable,
    why_worse,
)
from swarm_tui.journal.progress_file import PROGRESS_FILE, ProgressFile
from swarm_tui.model.formatting import counted
from swarm_tui.model.report import INTEGRATOR_OUTCOME_FILE, IntegratorReport
from swarm_tui.testing.copies import TestCopies

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

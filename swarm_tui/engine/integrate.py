"""What an integrator is given, the checks by which its branch is accepted, and what every integration ends with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.pytest import pytest_argument
from swarm_tui.agents.contract import BUNDLE_FILE
from swarm_tui.agents.integrator.inputs import (
    INPUTS_FILE,
    BranchInput,
    ExcludedBranch,
    IntegratorInputs,
    PersonInput,
    TestInput,
    reason_excluded,
)
from swarm_tui.engine.commits import FetchedCommits
from swarm_tui.engine.context import EngineContext
from swarm_tui.errors import SwarmError
from swarm_tui.insight.findings import group_findings
from swarm_tui.journal.folder import make_own_folder, write_beside
from swarm_tui.model.events import Integrated
from swarm_tui.model.fixes import FIX_PREFIX
from swarm_tui.model.outcome import (
    INTEGRATOR_OUTCOME_FILE,
    IntegratorOutcome,
    LeftOut,
    parse_integrator_outcome,
)
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import PULLED_RESULTS, Result, State
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.triage.store import review_of_sweep

_FINDINGS_NAMED: Final = 50


class IntegratorFailed(SwarmError):
    """An integrator handed in nothing that can be used; the message says why."""


def compose_inputs(context: EngineContext) -> IntegratorInputs:
    """Compose what an integrator needs to know, and write it into the sweep folder."""
    spec, records = context.spec, list(context.state.tests())
    with_commits = [record for record in records if record.harvest.tip and record.agent]
    reasons = {record.test: reason_excluded(record) for record in with_commits}
    name, email = spec.identity
    if not name or not email:
        identity = context.repository.identity()
        name, email = identity.name, identity.email
    inputs = IntegratorInputs(
        sweep=spec.sweep,
        repository=spec.repository,
        base=spec.base,
        branch=f"swarm/{spec.sweep}/integrator",
        committer=PersonInput(name=name, email=email),
        branches=tuple(_branch_input(context, record) for record in with_commits if reasons[record.test] is None),
        not_taken=tuple(
            ExcludedBranch(branch=record.branch, reason=reason)
            for record in with_commits
            if (reason := reasons[record.test]) is not None
        ),
        tests=tuple(_test_input(spec, record) for record in records),
        tutorial=os.path.relpath(spec.tutorial, spec.repository) if spec.tutorial else "",
        python=spec.python,
        folder=spec.folder,
        import_roots=spec.import_roots or (".",),
        pytest_options=spec.run_options,
        setup=spec.setup or "",
        fill=spec.fill,
        limits=spec.run_limits,
        cache=str(review_of_sweep(context.folder.root).results.absolute()),
    )
    make_own_folder(context.folder.integrator)
    write_beside(context.folder.integrator / INPUTS_FILE, inputs.model_dump_json(indent=1).encode())
    return inputs


def _branch_input(context: EngineContext, record: TestRecord) -> BranchInput:
    bundle = context.folder.agent(record.agent) / BUNDLE_FILE
    return BranchInput(
        agent=record.agent,
        test=record.test,
        branch=record.branch,
        tip=record.harvest.tip,
        bundle=str(bundle.absolute()) if bundle.is_file() else "",
        summary=record.harvest.summary,
        is_passing_after=record.harvest.passing_after,
        weaker=record.harvest.weaker,
        revised_after=record.revision.first_tip if record.revision is not None else "",
    )


def _test_input(spec: SweepSpec, record: TestRecord) -> TestInput:
    return TestInput(
        test=record.test,
        argument=pytest_argument(record.test, record.file, spec.folder),
        file=record.file,
        result=record.result.value if record.result else "",
        reason=record.reason,
        has_foreign_imports=bool(record.foreign_imports),
    )


def accept_branch(
    context: EngineContext, inputs: IntegratorInputs, raw: bytes, commits: FetchedCommits
) -> IntegratorOutcome:
    """Compare a fetched branch with what its integrator reports of it, and set the integrated branch to it.

    IntegratorFailed when it is not to be used.
    """
    try:
        outcome = parse_integrator_outcome(raw)
    except ValueError as error:
        raise IntegratorFailed(plain(str(error), 300)) from error
    if commits.problem:
        raise IntegratorFailed(plain(commits.problem, 300))
    if not commits.tip:
        if outcome.impl_commit_hashes or outcome.squashed_commit_hash:
            raise IntegratorFailed("it names commits, but handed in none")
        return outcome
    try:
        problem = what_is_wrong(context.repository, inputs, outcome, commits.tip)
        if problem:
            raise IntegratorFailed(problem)
        set_branch(context.repository, context.spec, commits.tip)
    except IntegratorFailed:
        raise
    except SwarmError as error:
        raise IntegratorFailed(plain(str(error), 300)) from error
    return outcome


def what_is_wrong(repository: Repository, inputs: IntegratorInputs, outcome: IntegratorOutcome, tip: str) -> str:
    """Return what on a branch is not as its integrator reports, or nothing."""
    if not repository.is_ancestor(inputs.base, tip):
        return "the branch does not build on the commit that the sweep began with"
    if repository.run("rev-list", "--min-parents=2", "--max-count=1", tip, f"^{inputs.base}", "--").text:
        return "the branch is not linear: it holds a merge"
    commits = set(repository.list_commits(inputs.base, tip))
    known = {source.branch for source in inputs.branches}
    named = dict(outcome.impl_commit_hashes)
    strangers = [branch for branch in named if branch not in known]
    if strangers:
        return f"it names the branch {plain(strangers[0], 100)}, which is none of this sweep's"
    if outcome.squashed_commit_hash:
        named["the squashed commit"] = outcome.squashed_commit_hash
    for branch, commit in named.items():
        if commit not in commits:
            return f"{plain(commit, 50)}, named for {plain(branch, 100)}, is not on the branch"
    # An agent may have made several fixes, and only one of them can be named for its branch.
    others = [commit for commit in commits - set(named.values()) if not _is_fix(repository, commit)]
    return f"{others[0][:12]} is on the branch, and is neither a fix nor the squashed commit" if others else ""


def _is_fix(repository: Repository, commit: str) -> bool:
    return repository.run("log", "-1", "--format=%s", commit, "--").text.startswith(FIX_PREFIX)


def count_fixes(context: EngineContext, tip: str) -> int:
    """Return how many fixes an integrated branch has; an agent may have made several."""
    if not tip:
        return 0
    subjects = context.repository.run("log", "--format=%s", f"{context.spec.base}..{tip}", "--").text.splitlines()
    return sum(subject.startswith(FIX_PREFIX) for subject in subjects)


def record_branch(context: EngineContext, outcome: IntegratorOutcome, tip: str, fixes: int) -> None:
    """Write down what the integrator reports, and record the integrated branch; "" for a tip is no branch."""
    records = list(context.state.tests())
    outcome = with_open_tests(outcome, records)
    write_outcome(context, outcome)
    context.record(
        Integrated(
            branch=integrated_branch(context.spec) if tip else None,
            tip=tip,
            fixes=fixes,
            left_out=len(outcome.failed),
            detail=_summary(outcome, fixes) if tip else "nothing of the agents' work could be put together",
        )
    )


def record_no_branch(context: EngineContext, inputs: IntegratorInputs) -> None:
    left_out = tuple(LeftOut(branch=entry.branch, reason=entry.reason) for entry in inputs.not_taken)
    write_outcome(context, with_open_tests(IntegratorOutcome(failed=left_out), list(context.state.tests())))
    context.record(Integrated(branch=None, left_out=len(left_out), detail="no agent made a change that may be taken"))


def _summary(outcome: IntegratorOutcome, fixes: int) -> str:
    words = [f"{fixes} fixes" if fixes != 1 else "1 fix"]
    if outcome.squashed_commit_hash:
        count = len(outcome.squashed_branches)
        words.append(f"test and doc work of {count} {'agents' if count != 1 else 'agent'} in one commit")
    final = (outcome.model_extra or {}).get("final_run")
    if isinstance(final, dict) and isinstance(final.get("passed"), int):
        failed = final.get("failed")
        words.append(f"{final['passed']} tests pass on it, {len(failed) if isinstance(failed, list) else 0} fail")
    return ", ".join(words)


def set_branch(repository: Repository, spec: SweepSpec, tip: str) -> None:
    name = integrated_branch(spec)
    if name in repository.checked_out_branches():
        raise SwarmError(
            f"{name} is checked out, and a checkout is never changed",
            "check out another branch, then `swarm-tui integrate`",
        )
    repository.update_ref(f"refs/heads/{name}", tip, old=repository.ref(f"refs/heads/{name}"), reason="integrated")


def integrated_branch(spec: SweepSpec) -> str:
    return f"swarm/{spec.sweep}/integrated"


def write_outcome(context: EngineContext, outcome: IntegratorOutcome) -> None:
    make_own_folder(context.folder.integrator)
    content = outcome.model_dump_json(indent=1).encode() + b"\n"
    write_beside(context.folder.integrator / INTEGRATOR_OUTCOME_FILE, content)


def with_open_tests(outcome: IntegratorOutcome, records: Sequence[TestRecord]) -> IntegratorOutcome:
    """Add what no commit speaks of: the tests that are still open, and what agents escalate, each problem once."""
    still_open = [
        {"test": record.test, "result": record.mark, "reason": record.reason}
        for record in records
        if record.state is not State.DONE or (record.result not in PULLED_RESULTS and record.result is not Result.CLEAN)
    ]
    findings = tuple(finding.as_escalation for finding in group_findings(records)[:_FINDINGS_NAMED])
    update: dict[str, Any] = {"open": still_open, "escalations": (*outcome.escalations, *findings)}
    return outcome.model_copy(update=update)

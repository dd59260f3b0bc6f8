"""Compose the integrator's inputs; accept and record its branch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec import structs

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.pytest import pytest_argument
from swarm_tui.agents.contract import BUNDLE_FILE
from swarm_tui.errors import SwarmError
from swarm_tui.failures.causes import cause_of_text
from swarm_tui.integrator.events import Integrated
from swarm_tui.integrator.inputs import (
    INPUTS_FILE,
    BranchInput,
    ExcludedBranch,
    IntegratorInputs,
    PersonInput,
    TestInput,
    reason_excluded,
)
from swarm_tui.journal.folder import make_own_folder, write_beside
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.commits import FIX_PREFIX
from swarm_tui.model.formatting import counted
from swarm_tui.model.pulled import BLOCKING_KINDS, INTEGRATOR_OUTCOME_FILE, Escalation, EscalationKind, Location
from swarm_tui.model.report import IntegratorReport, LeftOut, parse_integrator_report
from swarm_tui.model.results import PULLED_RESULTS, Result, State
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.review.ranking import read_measured_effects
from swarm_tui.review.verdicts import review_of_sweep
from swarm_tui.sweep.context import SweepContext

LINES_APART: Final = 3
"""Escalations whose lines are at most this far apart are about the same place."""
TESTS_NAMED: Final = 50
LOCATIONS_NAMED: Final = 20
_SAME_KIND: Final = {
    EscalationKind.BLOCKER.value: EscalationKind.HARNESS_DEFECT.value,
    EscalationKind.SHARED_PATTERN.value: EscalationKind.SUITE_DUPLICATION.value,
}
"""Older names of kinds."""


@dataclass(slots=True)
class Finding:
    """One problem with all tests whose agents escalated it. The text is from the first escalation."""

    escalation: Escalation
    tests: dict[str, None]
    locations: dict[str, Location]

    @property
    def as_escalation(self) -> Escalation:
        """The finding as one escalation that lists the tests."""
        title = plain(self.escalation.title, 300) or "(no title)"
        tests = [f"* {plain(test, 300)}" for test in self.tests]
        if len(tests) > TESTS_NAMED:
            tests = [*tests[:TESTS_NAMED], f"* … and {len(tests) - TESTS_NAMED} more"]
        text = [self.escalation.detail_markdown.strip(), "\n".join(tests)]
        return Escalation(
            kind=self.escalation.kind,
            title=f"{title} ({counted(len(self.tests), 'test')})" if len(self.tests) > 1 else title,
            detail_markdown="\n\n".join(filter(None, text)),
            locations=tuple(self.locations.values())[:LOCATIONS_NAMED],
        )


def group_findings(records: Iterable[TestRecord]) -> list[Finding]:
    """Return the grouped escalations of these tests: blocking ones first, then those of the most tests.

    Two escalations are about the same problem if they have the same kind, and either the same title except for values
    or a nearby location.
    """
    findings: dict[int, Finding] = {}
    by_title: dict[tuple[str, str], int] = {}
    by_place: dict[tuple[str, str, int], int] = {}
    for record in records:
        for escalation in record.pulled.escalations:
            kind = _SAME_KIND.get(escalation.kind, escalation.kind)
            title = escalation.title or record.reason
            title_key = (kind, cause_of_text(title).casefold())
            places = [(kind, where.path, where.line) for where in escalation.locations if where.line is not None]
            near = (
                by_place[kind, path, line + apart]
                for _, path, line in places
                for apart in range(-LINES_APART, LINES_APART + 1)
                if (kind, path, line + apart) in by_place
            )
            number = by_title.get(title_key)
            number = next(near, len(findings)) if number is None else number
            shown = escalation if escalation.title else structs.replace(escalation, title=record.reason)
            finding = findings.setdefault(number, Finding(shown, {}, {}))
            finding.tests[record.test] = None
            finding.locations |= {
                str(where): where for where in escalation.locations if str(where) not in finding.locations
            }
            by_title.setdefault(title_key, number)
            for place in places:
                by_place.setdefault(place, number)
    return sorted(
        findings.values(),
        key=lambda each: (each.escalation.kind not in BLOCKING_KINDS, -len(each.tests), each.escalation.title),
    )


_FINDINGS_NAMED: Final = 50


class IntegratorFailed(SwarmError):
    """An integrator submitted nothing usable; the message is the reason."""


def compose_inputs(context: SweepContext) -> IntegratorInputs:
    """Compose the inputs of an integrator, and write them into the sweep folder."""
    spec, records = context.spec, list(context.state.tests())
    with_commits = [(record, reason_excluded(record)) for record in records if record.pulled.tip and record.agent]
    name, email = spec.identity
    if not name or not email:
        identity = context.repository.identity()
        name, email = identity.name, identity.email
    inputs = IntegratorInputs(
        sweep=spec.sweep,
        repository=spec.repository,
        base=spec.base,
        branch=submitted_branch(spec),
        committer=PersonInput(name=name, email=email),
        branches=tuple(_branch_input(context, record) for record, reason in with_commits if reason is None),
        not_taken=tuple(
            ExcludedBranch(branch=record.branch, reason=reason) for record, reason in with_commits if reason is not None
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


def _branch_input(context: SweepContext, record: TestRecord) -> BranchInput:
    bundle = context.folder.agent(record.agent) / BUNDLE_FILE
    return BranchInput(
        agent=record.agent,
        test=record.test,
        branch=record.branch,
        tip=record.pulled.tip,
        bundle=str(bundle.absolute()) if bundle.is_file() else "",
        summary=record.pulled.summary,
        is_passing_after=record.pulled.passing_after,
        weaker=record.pulled.weaker,
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


def accept_branch(context: SweepContext, raw: bytes, tip: str) -> IntegratorReport:
    """Set the integrated branch to the built-in integrator's result. Raise IntegratorFailed if that is unusable."""
    try:
        outcome = parse_integrator_report(raw)
    except ValueError as error:
        raise IntegratorFailed(plain(str(error), 300)) from error
    if not tip:
        if outcome.impl_commit_hashes or outcome.squashed_commit_hash:
            raise IntegratorFailed("its report names commits, but it submitted none")
        return outcome
    try:
        if not context.repository.is_ancestor(context.spec.base, tip):
            raise IntegratorFailed("its branch does not build on the commit that the sweep started from")
        set_branch(context.repository, context.spec, tip)
    except IntegratorFailed:
        raise
    except SwarmError as error:
        raise IntegratorFailed(plain(str(error), 300)) from error
    return outcome


def count_fixes(context: SweepContext, outcome: IntegratorReport, tip: str) -> int:
    """Return how many commits of an integrated branch are reviewed one by one."""
    if not tip:
        return 0
    commits = context.repository.run("log", "--format=%H %s", f"{context.spec.base}..{tip}", "--").text.splitlines()
    ranked = read_measured_effects(outcome)
    rows = (line.partition(" ") for line in commits)
    return sum(commit in ranked or subject.startswith(FIX_PREFIX) for commit, _, subject in rows)


def record_branch(context: SweepContext, outcome: IntegratorReport, tip: str, fixes: int) -> None:
    """Write the report, and record the integrated branch. An empty tip means that there is none."""
    records = list(context.state.tests())
    outcome = with_open_tests(outcome, records)
    write_outcome(context, outcome)
    measured = outcome.model_extra or {}
    context.record(
        Integrated(
            branch=integrated_branch(context.spec) if tip else None,
            tip=tip,
            fixes=fixes,
            left_out=len(outcome.failed),
            detail=_summary(outcome, fixes) if tip else "none of the agents' work could be integrated",
            by=str(measured.get("by") or ""),
            refused=plain(str(measured.get("refused") or ""), 500),
            problems=tuple(plain(str(problem), 500) for problem in measured.get("problems") or ()),
        )
    )


def record_no_branch(context: SweepContext, inputs: IntegratorInputs) -> None:
    left_out = tuple(LeftOut(branch=entry.branch, reason=entry.reason) for entry in inputs.not_taken)
    write_outcome(context, with_open_tests(IntegratorReport(failed=left_out), list(context.state.tests())))
    context.record(Integrated(branch=None, left_out=len(left_out), detail="no agent has a change to integrate"))


def _summary(outcome: IntegratorReport, fixes: int) -> str:
    words = [counted(fixes, "fix", "fixes")]
    if outcome.squashed_commit_hash:
        words.append(f"test and doc work of {counted(len(outcome.squashed_branches), 'agent')} in one commit")
    final = (outcome.model_extra or {}).get("final_run")
    if isinstance(final, dict) and isinstance(final.get("passed"), int):
        failed = final.get("failed")
        words.append(f"{final['passed']} tests pass on it, {len(failed) if isinstance(failed, list) else 0} fail")
    return ", ".join(words)


def submitted_branch(spec: SweepSpec) -> str:
    """Return the branch that keeps the work of a coding agent that is not used as the integrated branch."""
    return f"swarm/{spec.sweep}/integrator"


def keep_submitted(context: SweepContext, tip: str) -> None:
    """Keep the unused branch of a coding agent under its own name."""
    name = f"refs/heads/{submitted_branch(context.spec)}"
    try:
        if submitted_branch(context.spec) in context.repository.checked_out_branches():
            raise SwarmError("it is checked out")
        context.repository.update_ref(name, tip, old=context.repository.ref(name), reason="integrator")
    except SwarmError as error:
        context.note(f"{tip[:12]}, the branch of the coding agent, cannot be kept as {name}: {error}", level="warning")


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


def write_outcome(context: SweepContext, outcome: IntegratorReport) -> None:
    make_own_folder(context.folder.integrator)
    content = outcome.model_dump_json(indent=1).encode() + b"\n"
    write_beside(context.folder.integrator / INTEGRATOR_OUTCOME_FILE, content)


def with_open_tests(outcome: IntegratorReport, records: Sequence[TestRecord]) -> IntegratorReport:
    """Add what no commit contains: open tests and agents' escalations, each problem once."""
    still_open = [
        {"test": record.test, "result": record.mark, "reason": record.reason}
        for record in records
        if record.state is not State.DONE or (record.result not in PULLED_RESULTS and record.result is not Result.CLEAN)
    ]
    findings = tuple(finding.as_escalation for finding in group_findings(records)[:_FINDINGS_NAMED])
    update: dict[str, Any] = {"open": still_open, "escalations": (*outcome.escalations, *findings)}
    return outcome.model_copy(update=update)

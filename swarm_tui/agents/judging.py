"""Determines the result of a test from its agent's work. Pure; claims of the agent are checked where possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal

from msgspec import structs

from swarm_tui.journal.work_events import Try
from swarm_tui.model.pulled import ChangeKind, ChangeStatus, ClaimCheck, EscalationKind
from swarm_tui.model.report import AgentReport
from swarm_tui.model.results import CLAIMS, MARKS, Result
from swarm_tui.model.text import plain

REASON_LIMIT: Final = 300
GONE: Final = "gone"
"""The outcome of a test that does not exist on the submitted commit."""


class AgentEnd(StrEnum):
    """The end of an agent's work."""

    ARCHIVE = "archive"
    TIMEOUT = "timeout"
    CRASH = "crash"
    GONE = "gone"
    CLOSED = "closed"
    NO_ANSWER = "no answer"
    OVER_BUDGET = "over budget"
    NOT_LAUNCHED = "not launched"
    UNREADABLE = "unreadable"
    """The submitted work could not be processed."""
    OUT_OF_RESOURCES = "out of resources"
    """This machine ran out of disk space, memory, processes or open files. `resume` runs the test again."""


ENDED_BY_ITSELF: Final = frozenset({AgentEnd.CRASH, AgentEnd.CLOSED, AgentEnd.GONE})

_WITHOUT_ARCHIVE: Final = {
    AgentEnd.ARCHIVE: "its archive is unreadable",
    AgentEnd.TIMEOUT: "it did not submit its work within the time limit",
    AgentEnd.CRASH: "its process exited before it submitted its work",
    AgentEnd.GONE: "the agent no longer exists in mngr",
    AgentEnd.CLOSED: "its terminal was closed before it submitted its work",
    AgentEnd.NO_ANSWER: "no answer",
    AgentEnd.OVER_BUDGET: "it reached its budget and did not submit its work when asked to",
    AgentEnd.NOT_LAUNCHED: "it could not be launched",
    AgentEnd.UNREADABLE: "its work could not be processed",
    AgentEnd.OUT_OF_RESOURCES: "this machine ran out of resources",
}

_RESULT_OF: Final = (
    (ChangeKind.FIX_IMPL, Result.IMPL_FIX),
    (ChangeKind.FIX_TUTORIAL, Result.TUTORIAL_FIX),
    (ChangeKind.FIX_TEST, Result.TEST_FIX),
    (ChangeKind.IMPROVE_TEST, Result.BETTER),
)


@dataclass(frozen=True, slots=True)
class CommitSummary:
    """A commit of an agent. Its subject begins with its kind."""

    commit: str
    subject: str

    @property
    def kind(self) -> ChangeKind | None:
        """The kind in the subject, or None."""
        return next((kind for kind in ChangeKind if self.subject.startswith(f"[{kind.value}]")), None)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All information about an agent's work."""

    end: AgentEnd
    report: AgentReport | None = None
    problem: str = ""
    """Why the report is unreadable, although the agent submitted its work."""
    commits: Sequence[CommitSummary] = field(default=())
    commits_problem: str = ""
    """Why the submitted commits are unavailable."""
    last_try: Try | None = None
    """The last result that pytest itself reported for the test; None if there is none."""
    foreign_imports: Sequence[str] = ()
    """Modules that the test imported from the user's checkout."""
    weaker: str = ""
    """How the agent's test became weaker, according to its source."""
    remarks: Sequence[str] = ()
    """Notes for the user about its commits, such as commits that are not on its branch."""
    is_verified: bool = False
    """Whether swarm-tui will run the test itself. The tries are then ignored."""


@dataclass(frozen=True, slots=True)
class OwnRuns:
    """The results of swarm-tui's own runs of a test on the commit that its agent submitted."""

    outcomes: tuple[str, ...] = ()
    """passed, failed, skipped, missing (pytest cannot run the test) or GONE, for each run."""
    failure: str = ""
    """Why the test failed, was skipped or is missing, in a line."""
    impossible: str = ""
    """Why the test could not be run, if the agent did not cause this."""
    doubts: tuple[str, ...] = ()
    """The changes of the agent that affect how tests are run."""
    has_uncommitted: bool = False
    """Whether the agent left uncommitted changes."""
    is_other_code: bool = False
    """Whether the runs may have used other code than the commit's, because pytest loads it before the tests."""


@dataclass(frozen=True, slots=True)
class JudgedResult:
    """The result of a test, and the reason."""

    result: Result
    reason: str = ""


def judge(evidence: Evidence) -> JudgedResult:
    """Return the result of a test from all information about its agent's work."""
    judgement = _judge(evidence)
    remarks = plain(". ".join(evidence.remarks), REASON_LIMIT)
    if not remarks or remarks in judgement.reason:
        return judgement
    reason = plain(judgement.reason, max(40, REASON_LIMIT - len(remarks)))
    return JudgedResult(judgement.result, ". ".join(filter(None, (reason, remarks))))


def lacks_commits(report: AgentReport, commits: Sequence[CommitSummary]) -> bool:
    """Return whether an agent reports a change as successful but has no commit of that kind."""
    succeeded = {kind for kind, change in report.changes.items() if change.status is ChangeStatus.SUCCEEDED}
    return bool(succeeded - {commit.kind for commit in commits})


def _judge(evidence: Evidence) -> JudgedResult:
    report = evidence.report
    if report is None:
        reason = evidence.problem or _WITHOUT_ARCHIVE[evidence.end]
        return _judged(Result.BLOCKED if evidence.end is AgentEnd.NO_ANSWER else Result.ERROR, reason)
    if report.errored:
        return _judged(Result.ERROR, report.summary_markdown or "the agent reports that it could not do its work")
    succeeded = [kind for kind, change in report.changes.items() if change.status is ChangeStatus.SUCCEEDED]
    blocked = _why_blocked(report)
    if blocked is not None and not succeeded:
        return _judged(Result.BLOCKED, blocked)
    doubt = _why_not_believed(evidence, report, succeeded)
    if doubt:
        return _judged(Result.UNRESOLVED, doubt)
    for kind, result in _RESULT_OF:
        if kind in succeeded:
            # A weaker test is not a better one, whatever its agent reports.
            is_praised = result is Result.BETTER and evidence.weaker
            reason = f"its test became weaker: {evidence.weaker}" if evidence.weaker else ""
            return _judged(Result.TEST_FIX if is_praised else result, reason)
    if report.unknown_changes:
        return _judged(Result.UNRESOLVED, f"it reports a change of an unknown kind: {report.unknown_changes[0]}")
    last = evidence.last_try
    if not report.changes and last is not None and last.word == "skipped":
        return _judged(Result.SKIPPED, last.failure)
    if not report.changes and (report.tests_passing_after or (last is not None and last.passed)):
        return _judged(Result.CLEAN, "" if evidence.is_verified and last is None else _doubt_of_clean(last))
    failed = [change.summary_markdown for change in report.changes.values() if change.summary_markdown]
    undecided = [each.title for each in report.escalations if each.kind == EscalationKind.FIX_DIRECTION_AMBIGUOUS]
    reasons = [*undecided, *failed, report.summary_markdown, "the test does not pass"]
    return _judged(Result.UNRESOLVED, next(filter(None, reasons)))


def claim_of(judgement: JudgedResult) -> ClaimCheck | None:
    """Return the claim to check; None if the result does not say that the test passes."""
    if judgement.result not in CLAIMS:
        return None
    return ClaimCheck(claim=judgement.result.value, claim_reason=judgement.reason)


def judge_claim(claim: ClaimCheck, runs: OwnRuns) -> tuple[JudgedResult, ClaimCheck]:
    """Return the result of a test and the verdict on the agent's claim, according to our own runs."""
    claimed = Result(claim.claim)
    # The reason for a skip does not matter if the test was not skipped here.
    known = "" if claimed is Result.SKIPPED and "passed" in runs.outcomes else claim.claim_reason

    def judged(
        verdict: Literal["confirmed", "flaky", "refuted", "impossible", "unmeasured"], result: Result, reason: str
    ) -> tuple[JudgedResult, ClaimCheck]:
        reason = ". ".join(filter(None, (reason, known)))
        return _judged(result, reason), structs.replace(claim, verdict=verdict, runs=runs.outcomes)

    words = MARKS[claimed].word
    if runs.impossible:
        return judged("impossible", Result.CLAIMED, f"{words}; swarm-tui cannot run the test: {runs.impossible}")
    last = runs.outcomes[-1]
    if "passed" in runs.outcomes or (last == "skipped" and claimed in (Result.CLEAN, Result.SKIPPED)):
        if runs.doubts:
            return judged("unmeasured", Result.CLAIMED, f"{words}; not measured: {', '.join(runs.doubts)}")
        if last == "skipped":
            return judged("confirmed", Result.SKIPPED, "" if known else runs.failure)
        passed, count = runs.outcomes.count("passed"), len(runs.outcomes)
        result = Result.CLEAN if claimed is Result.SKIPPED else claimed
        if passed < count:
            reason = f"flaky: passed in {passed} of {count} runs on the submitted commit; {runs.failure}"
            return judged("flaky", result, reason)
        return judged("confirmed", result, "")
    if last == "failed" and runs.is_other_code:
        return judged("unmeasured", Result.CLAIMED, f"{words}; not measured: {', '.join(runs.doubts)}")
    if last == GONE and claimed in (Result.TEST_FIX, Result.BETTER, Result.TUTORIAL_FIX):
        # It may have been renamed or split for a good reason.
        return judged("unmeasured", Result.CLAIMED, f"{words}; not measured: {runs.failure}")
    what = {"failed": "fails", "skipped": "is skipped"}.get(last, "cannot be run")
    uncommitted = ", which lacks the agent's uncommitted changes" if runs.has_uncommitted else ""
    reason = f"{words} claimed, but the test {what} on the submitted commit{uncommitted}: {runs.failure}"
    return judged("refuted", Result.UNRESOLVED, reason)


def _why_blocked(report: AgentReport) -> str | None:
    for change in report.changes.values():
        if change.status is ChangeStatus.BLOCKED:
            return change.summary_markdown or "the agent reports that it is blocked"
    for escalation in report.escalations:
        # An agent may report a harness defect although its test passes. A blocker contradicts a passing test.
        is_harness = escalation.kind == EscalationKind.HARNESS_DEFECT and not report.tests_passing_after
        if escalation.kind == EscalationKind.BLOCKER or is_harness:
            return escalation.title or escalation.detail_markdown or "the agent reports that it is blocked"
    return None


def _why_not_believed(evidence: Evidence, report: AgentReport, succeeded: Sequence[ChangeKind]) -> str:
    """Return why the report is not credible, or ""."""
    committed = {commit.kind for commit in evidence.commits}
    missing = [kind.value for kind in succeeded if kind not in committed]
    if missing and evidence.commits_problem:
        return f"its commits are unavailable: {evidence.commits_problem}"
    if missing:
        return f"it reports {missing[0]} as succeeded, but there is no commit of that kind"
    last = None if evidence.is_verified else evidence.last_try
    if last is not None and (succeeded or report.tests_passing_after):
        claim = "it reports the test as passing, but " if report.tests_passing_after else ""
        if last.word == "runs":
            return f"{claim}pytest's last run of it did not finish, so the result is unknown"
        if last.word == "failed":
            return f"{claim}pytest's last run of it failed: {last.failure}"
        if last.word == "skipped" and succeeded:
            return f"{claim}pytest's last run of it was {last.failure}"
    if ChangeKind.FIX_IMPL in succeeded and evidence.foreign_imports:
        modules = ", ".join(evidence.foreign_imports[:3])
        return f"the test imported {modules} from your checkout instead of the agent's copy"
    if report.tests_passing_before and report.tests_passing_after is False:
        return "the test passed before and fails now"
    if succeeded and report.tests_passing_after is False:
        return "the test still fails"
    if evidence.commits and not report.changes:
        return f"it has {len(evidence.commits)} commits that its report does not mention"
    return ""


def _doubt_of_clean(last: Try | None) -> str:
    """Return a caveat about a test that is clean, or ""."""
    if last is None:
        return "according to the agent; pytest's own report is missing"
    if last.outcome == "xfailed":
        return f"it fails as expected: {last.failure}" if last.failure else "it fails as expected"
    if last.reruns:
        return f"it passed only after reruns ({last.reruns})"
    return ""


def _judged(result: Result, reason: str) -> JudgedResult:
    return JudgedResult(result, plain(reason, REASON_LIMIT))

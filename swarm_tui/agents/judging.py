"""From what an agent handed in to its result: a pure function, which believes nothing that can be checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from swarm_tui.model.outcome import ChangeKind, ChangeStatus, EscalationKind, Outcome
from swarm_tui.model.state import Try
from swarm_tui.model.states import Result
from swarm_tui.model.text import plain

REASON_LIMIT: Final = 300


class End(StrEnum):
    """How an agent's work came to its end."""

    ARCHIVE = "archive"
    TIMEOUT = "timeout"
    CRASH = "crash"
    GONE = "gone"
    CLOSED = "closed"
    NO_ANSWER = "no answer"
    OVER_BUDGET = "over budget"
    NOT_LAUNCHED = "not launched"


ENDED_BY_ITSELF: Final = frozenset({End.CRASH, End.CLOSED, End.GONE})

_WITHOUT_ARCHIVE: Final = {
    End.ARCHIVE: "its archive cannot be read",
    End.TIMEOUT: "it had not handed in its work when its time was over",
    End.CRASH: "its process ended before it handed in its work",
    End.GONE: "mngr does not know this agent any more",
    End.CLOSED: "its terminal was closed before it handed in its work",
    End.NO_ANSWER: "no answer",
    End.OVER_BUDGET: "it had used up its budget, and did not hand in its work when it was asked to",
    End.NOT_LAUNCHED: "it could not be launched",
}

_RESULT_OF: Final = (
    (ChangeKind.FIX_IMPL, Result.IMPL_FIX),
    (ChangeKind.FIX_TUTORIAL, Result.TUTORIAL_FIX),
    (ChangeKind.FIX_TEST, Result.TEST_FIX),
    (ChangeKind.IMPROVE_TEST, Result.BETTER),
)


@dataclass(frozen=True, slots=True)
class CommitSummary:
    """A commit that an agent made; its subject begins with its kind."""

    commit: str
    subject: str

    @property
    def kind(self) -> ChangeKind | None:
        """The kind that the subject names, or None."""
        return next((kind for kind in ChangeKind if self.subject.startswith(f"[{kind.value}]")), None)


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known of an agent's work."""

    end: End
    outcome: Outcome | None = None
    problem: str = ""
    """Why there is no outcome to read, although the agent handed something in."""
    commits: Sequence[CommitSummary] = field(default=())
    commits_problem: str = ""
    """Why the commits it handed in cannot be had."""
    last_try: Try | None = None
    """What pytest itself said last of the test; None when it said nothing."""
    foreign_imports: Sequence[str] = ()
    """Modules of the user's checkout that the test ran against."""
    weaker: str = ""
    """How its test became weaker, as far as the source tells."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a test ended with, and why."""

    result: Result
    reason: str = ""


def judge(evidence: Evidence) -> Judgement:
    """Return the result of a test from everything that is known of its agent's work."""
    outcome = evidence.outcome
    if outcome is None:
        reason = evidence.problem or _WITHOUT_ARCHIVE[evidence.end]
        return _judged(Result.BLOCKED if evidence.end is End.NO_ANSWER else Result.FAILED, reason)
    if outcome.errored:
        return _judged(Result.FAILED, outcome.summary_markdown or "the agent reports that it could not do its work")
    succeeded = [kind for kind, change in outcome.changes.items() if change.status is ChangeStatus.SUCCEEDED]
    blocked = _why_blocked(outcome)
    if blocked is not None and not succeeded:
        return _judged(Result.BLOCKED, blocked)
    doubt = _why_not_believed(evidence, outcome, succeeded)
    if doubt:
        return _judged(Result.UNRESOLVED, doubt)
    for kind, result in _RESULT_OF:
        if kind in succeeded:
            # A weaker test is no better one, whatever its agent says.
            is_praised = result is Result.BETTER and evidence.weaker
            reason = f"its test became weaker: {evidence.weaker}" if evidence.weaker else ""
            return _judged(Result.TEST_FIX if is_praised else result, reason)
    if outcome.unknown_changes:
        return _judged(Result.UNRESOLVED, f"it reports a change of an unknown kind: {outcome.unknown_changes[0]}")
    last = evidence.last_try
    if not outcome.changes and last is not None and last.word == "skipped":
        return _judged(Result.SKIPPED, last.failure)
    if not outcome.changes and (outcome.tests_passing_after or (last is not None and last.passed)):
        return _judged(Result.CLEAN, _doubt_of_clean(last))
    failed = [change.summary_markdown for change in outcome.changes.values() if change.summary_markdown]
    undecided = [each.title for each in outcome.escalations if each.kind == EscalationKind.FIX_DIRECTION_AMBIGUOUS]
    reasons = [*undecided, *failed, outcome.summary_markdown, "the test does not pass"]
    return _judged(Result.UNRESOLVED, next(filter(None, reasons)))


def _why_blocked(outcome: Outcome) -> str | None:
    for change in outcome.changes.values():
        if change.status is ChangeStatus.BLOCKED:
            return change.summary_markdown or "the agent reports that it is blocked"
    for escalation in outcome.escalations:
        # A defect of what tests share may be reported beside a test that passes; a blocker may not.
        is_harness = escalation.kind == EscalationKind.HARNESS_DEFECT and not outcome.tests_passing_after
        if escalation.kind == EscalationKind.BLOCKER or is_harness:
            return escalation.title or escalation.detail_markdown or "the agent reports that it is blocked"
    return None


def _why_not_believed(evidence: Evidence, outcome: Outcome, succeeded: Sequence[ChangeKind]) -> str:
    """Return what speaks against the outcome, or nothing."""
    committed = {commit.kind for commit in evidence.commits}
    missing = [kind.value for kind in succeeded if kind not in committed]
    if missing and evidence.commits_problem:
        return f"its commits cannot be had: {evidence.commits_problem}"
    if missing:
        return f"it reports {missing[0]} as succeeded, but no commit of that kind is there"
    last = evidence.last_try
    if last is not None and (succeeded or outcome.tests_passing_after):
        said = "it reports the test as passing, but " if outcome.tests_passing_after else ""
        if last.word == "runs":
            return f"{said}pytest's last run of it did not come to its end: whether it passes is not known"
        if last.word == "failed":
            return f"{said}pytest's last run of it failed: {last.failure}"
        if last.word == "skipped" and succeeded:
            return f"{said}pytest's last run of it was {last.failure}"
    if ChangeKind.FIX_IMPL in succeeded and evidence.foreign_imports:
        modules = ", ".join(evidence.foreign_imports[:3])
        return f"the test ran against {modules} of your checkout, not of the agent's copy"
    if outcome.tests_passing_before and outcome.tests_passing_after is False:
        return "the test passed before and fails now"
    if succeeded and outcome.tests_passing_after is False:
        return "the test still fails"
    if evidence.commits and not outcome.changes:
        return f"it made {len(evidence.commits)} commits that its outcome does not speak of"
    return ""


def _doubt_of_clean(last: Try | None) -> str:
    """Return what is to be known of a test that is clean, or nothing."""
    if last is None:
        return "the agent says so; pytest's own report of it was not seen"
    if last.outcome == "xfailed":
        return f"it fails as it is expected to: {last.failure}" if last.failure else "it fails as it is expected to"
    if last.reruns:
        return f"it passed only when it was run again ({last.reruns} times)"
    return ""


def _judged(result: Result, reason: str) -> Judgement:
    return Judgement(result, plain(reason, REASON_LIMIT))

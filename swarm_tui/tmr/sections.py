"""The sections of the page of `mngr tmr`, and which of our results belong under each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from swarm_tui.model.outcome import Change, ChangeKind, ChangeStatus, Outcome
from swarm_tui.model.states import Result
from swarm_tui.tmr.page import PageRow

_RESULTS: Final[Mapping[str, frozenset[Result]]] = {
    "RUNNING": frozenset(),
    "FAILED": frozenset({Result.FAILED}),
    "UNRESOLVED": frozenset({Result.UNRESOLVED}),
    "BLOCKED": frozenset({Result.BLOCKED}),
    "NON_IMPL_FIXES": frozenset({Result.BETTER, Result.TEST_FIX, Result.TUTORIAL_FIX}),
    "IMPL_FIXES": frozenset({Result.IMPL_FIX}),
    "CLEAN_PASS": frozenset({Result.CLEAN}),
}
# Those with longer names are of the first pages.
_ERRORED: Final = frozenset({"FAILED", "ERRORED", "TIMED_OUT", "AGENT_ERROR"})
_PASSED: Final = frozenset({"CLEAN_PASS", "RUN_SUCCEEDED"})
_TRIED: Final = frozenset({"UNRESOLVED", "BLOCKED", "STUCK", "REGRESSED", "FIX_UNCERTAIN"})
_CHANGED: Final[Mapping[str, tuple[ChangeKind, ChangeStatus]]] = {
    "IMPL_FIXES": (ChangeKind.FIX_IMPL, ChangeStatus.SUCCEEDED),
    "NON_IMPL_FIXES": (ChangeKind.FIX_TEST, ChangeStatus.SUCCEEDED),
    "FIXED": (ChangeKind.FIX_TEST, ChangeStatus.SUCCEEDED),
    "FIX_IMPL_SUCCEEDED": (ChangeKind.FIX_IMPL, ChangeStatus.SUCCEEDED),
    "FIX_TEST_SUCCEEDED": (ChangeKind.FIX_TEST, ChangeStatus.SUCCEEDED),
    "FIX_IMPL_FAILED": (ChangeKind.FIX_IMPL, ChangeStatus.FAILED),
    "FIX_TEST_FAILED": (ChangeKind.FIX_TEST, ChangeStatus.FAILED),
}
"""What an agent did where the page does not name its changes."""


def section_of(outcome: Outcome) -> str:
    """Return the section that the page shows a test in, by what its agent reported alone."""
    changes = outcome.changes
    statuses = {change.status for change in changes.values()}
    if outcome.errored:
        return "FAILED"
    if outcome.tests_passing_before is None and outcome.tests_passing_after is None and not changes:
        return "RUNNING"
    if statuses == {ChangeStatus.BLOCKED}:
        return "BLOCKED"
    if statuses == {ChangeStatus.FAILED}:
        return "UNRESOLVED"
    if any(kind is not ChangeKind.FIX_IMPL for kind in changes):
        return "NON_IMPL_FIXES"
    if changes:
        return "IMPL_FIXES"
    return "CLEAN_PASS" if outcome.tests_passing_after else "UNRESOLVED"


def is_at_odds(section: str, result: Result) -> bool:
    """Return whether a page shows a test in a section where that result does not belong."""
    return bool(section) and result not in _RESULTS.get(section, frozenset({result}))


def outcome_of_row(row: PageRow | None) -> Outcome | None:
    """Return what the page says of an agent as it would have said it itself; None while it is at work."""
    if row is None or row.section not in _ERRORED | _PASSED | _TRIED | _CHANGED.keys():
        return None
    words = {ChangeKind(kind): ChangeStatus(status) for kind, status in row.changes if kind in frozenset(ChangeKind)}
    if not words and row.section in _CHANGED:
        words = dict([_CHANGED[row.section]])
    is_passing = row.section in _PASSED or (row.section in _CHANGED and ChangeStatus.SUCCEEDED in words.values())
    return Outcome(
        errored=row.section in _ERRORED,
        changes={kind: Change(status=status) for kind, status in words.items()},
        tests_passing_after=is_passing if row.section not in _ERRORED else None,
        summary_markdown=row.summary,
    )


def section_in_words(section: str) -> str:
    return section.lower().replace("_", " ").replace("non impl", "other")

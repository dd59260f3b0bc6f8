"""The sections of the page of `mngr tmr`, and which of our results belong under each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from swarm_tui.model.outcome import ChangeKind, ChangeStatus, Outcome
from swarm_tui.model.states import Result

_RESULTS: Final[Mapping[str, frozenset[Result]]] = {
    "RUNNING": frozenset(),
    "FAILED": frozenset({Result.FAILED}),
    "UNRESOLVED": frozenset({Result.UNRESOLVED}),
    "BLOCKED": frozenset({Result.BLOCKED}),
    "NON_IMPL_FIXES": frozenset({Result.BETTER, Result.TEST_FIX, Result.TUTORIAL_FIX}),
    "IMPL_FIXES": frozenset({Result.IMPL_FIX}),
    "CLEAN_PASS": frozenset({Result.CLEAN}),
}


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


def section_in_words(section: str) -> str:
    return section.lower().replace("_", " ").replace("non impl", "other")

"""Changes in a sweep between two positions of its journal, such as since the last visit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from swarm_tui.failures.events import Alert
from swarm_tui.integrator.events import Integration
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.formatting import counted, money
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import STOPPED_AT, Spending

_COUNTED_SEPARATELY: Final = (Result.ERROR, Result.BLOCKED, Result.UNRESOLVED)


class JournalPosition(NamedTuple):
    """The state of a sweep at one position of its journal. It never changes."""

    seq: int
    records: Mapping[str, TestRecord]
    integrator: TestRecord | None
    integration: Integration
    spending: Spending
    budget_percent: int
    ended_why: str | None
    alerts: Mapping[str, Alert]


def moment_of(state: SweepState) -> JournalPosition:
    """Return the current state of a sweep, unaffected by later events."""
    return JournalPosition(
        state.last_seq,
        dict(state.records),
        state.integrator,
        state.integration,
        state.spending,
        state.budget.percent,
        state.ended_why,
        state.alerts,
    )


class Changes(NamedTuple):
    """The differences between an earlier and a later state."""

    done: tuple[TestRecord, ...] = ()
    """Tests with a new result."""
    asking: tuple[TestRecord, ...] = ()
    """Tests with new questions that are still open."""
    stopped: tuple[TestRecord, ...] = ()
    patterns: tuple[tuple[int, str], ...] = ()
    """New alerts: the number of tests and the cause."""
    integrated: Integration | None = None
    """The new integrated branch, or a failed integration."""
    budget_percent: int = 0
    """The percentage of the budget that was reached."""
    ended_why: str = ""
    dollars: float = 0.0
    has_unknown_price: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether nothing changed except the cost."""
        return not any(self._replace(dollars=0.0, has_unknown_price=False))


def changes_between(before: JournalPosition, after: JournalPosition) -> Changes:
    """Return the differences between two states of the same sweep."""
    old = before.records
    changed = [record for test, record in after.records.items() if record is not old.get(test)]
    spent = after.spending.minus(before.spending)
    is_new_integration = after.integration.state in ("done", "failed") and after.integration.at != before.integration.at
    return Changes(
        done=tuple(record for record in changed if record.state is State.DONE and _is_new(record, old)),
        asking=tuple(_asking(changed, before, after)),
        stopped=tuple(record for record in changed if record.state is State.STOPPED and _is_new(record, old)),
        patterns=tuple(_new_patterns(before, after)),
        integrated=after.integration if is_new_integration else None,
        budget_percent=after.budget_percent if after.budget_percent > before.budget_percent else 0,
        ended_why=after.ended_why or "" if after.ended_why != before.ended_why else "",
        dollars=spent.dollars,
        has_unknown_price=spent.unpriced > 0,
    )


def _is_new(record: TestRecord, old: Mapping[str, TestRecord]) -> bool:
    """Return whether a test entered its state since then. The same state after another launch is new."""
    before = old.get(record.test)
    return before is None or (before.state, before.since, before.launch) != (
        record.state,
        record.since,
        record.launch,
    )


def _asking(changed: list[TestRecord], before: JournalPosition, after: JournalPosition) -> Iterator[TestRecord]:
    for record in changed:
        if record.state is State.WAITING:
            old = before.records.get(record.test)
            if old is None or (old.state, old.since, old.question) != (
                record.state,
                record.since,
                record.question,
            ):
                yield record
    integrator = after.integrator
    if integrator is not None and integrator.state is State.WAITING and integrator is not before.integrator:
        yield integrator


def _new_patterns(before: JournalPosition, after: JournalPosition) -> Iterator[tuple[int, str]]:
    for cause, alert in after.alerts.items():
        if cause not in before.alerts:
            yield len(alert.tests), cause


def change_words(changes: Changes) -> list[str]:
    """Return a few words for each change: `14 done (2 errors)`, `2 questions`, `$3.10`."""
    words = []
    if changes.done:
        counts = {result: sum(record.result is result for record in changes.done) for result in _COUNTED_SEPARATELY}
        bad = ", ".join(
            counted(number, "error") if result is Result.ERROR else f"{number} {result.value}"
            for result, number in counts.items()
            if number
        )
        words.append(f"{len(changes.done):,} done" + (f" ({bad})" if bad else ""))
    if changes.asking:
        words.append(counted(len(changes.asking), "question"))
    if changes.stopped:
        words.append(f"{len(changes.stopped):,} stopped")
    if changes.patterns:
        sizes = ", ".join(str(size) for size, _ in changes.patterns[:3])
        more = ", …" if len(changes.patterns) > 3 else ""
        words.append(f"{counted(len(changes.patterns), 'pattern')} of {sizes}{more}")
    if changes.integrated is not None:
        is_done = changes.integrated.state == "done"
        words.append(
            f"{counted(changes.integrated.fixes, 'fix', 'fixes')} to review" if is_done else "integration failed"
        )
    if changes.budget_percent:
        words.append(
            "the budget is spent"
            if changes.budget_percent >= STOPPED_AT
            else f"{changes.budget_percent} % of the budget"
        )
    if changes.ended_why:
        words.append({"failed": "the engine failed"}.get(changes.ended_why, changes.ended_why))
    if changes.dollars >= 0.005:
        words.append(money(changes.dollars) + ("+?" if changes.has_unknown_price else ""))
    return words


def since_line(since: float, now: float, changes: Changes) -> str:
    """Return `since 12:04: 14 done, 2 questions`; times are seconds since 1970."""
    return f"since {moment_words(since, now)}: {', '.join(change_words(changes))}"


def moment_words(at: float, now: float) -> str:
    """Return a time of day, with the day of the week or the date if it was not today."""
    then = datetime.fromtimestamp(at)
    days = (datetime.fromtimestamp(now).date() - then.date()).days
    if days <= 0:
        return f"{then:%H:%M}"
    return f"{then:%a %H:%M}" if days < 7 else f"{then:%Y-%m-%d %H:%M}"

"""The lines printed at the end of a sweep: open tests with reasons, and work left out of the integrated branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from swarm_tui.integrator.events import Integration
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.report import IntegratorReport, LeftOut
from swarm_tui.model.results import MARKS, PULLED_RESULTS, Result, State
from swarm_tui.model.text import plain
from swarm_tui.review.ranking import read_measured_effects

NAMED: Final = 20
"""The number of tests listed for each cause."""


def is_open(record: TestRecord) -> bool:
    """Return whether a test is not clean or skipped and has no work to integrate."""
    return record.result not in (Result.CLEAN, Result.SKIPPED) and record.result not in PULLED_RESULTS


def open_lines(records: Iterable[TestRecord]) -> Iterator[str]:
    """Yield the open tests, grouped by result and reason, the most frequent reason first."""
    causes: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if is_open(record):
            causes.setdefault((record.mark, _cause(record)), []).append(plain(record.test, 300))
    for (mark, reason), tests in sorted(causes.items(), key=lambda cause: -len(cause[1])):
        yield f"{len(tests)} {MARKS[mark].word}: {reason or 'unknown reason'}"
        yield from (f"  {test}" for test in tests[:NAMED])
        if len(tests) > NAMED:
            yield f"  and {len(tests) - NAMED} more"


def _cause(record: TestRecord) -> str:
    if record.state is State.QUEUED:
        return "not launched yet"
    return plain(record.reason, 300)


def integration_lines(integration: Integration, sweep: str) -> Iterator[str]:
    """Yield the problems of the integrated branch, or why there is none."""
    if integration.state == "done":
        yield from (f"problem: {plain(problem, 500)}" for problem in integration.problems)
        if integration.refused:
            yield f"the coding agent's branch is not used: {plain(integration.refused, 500)}"
    if integration.state == "failed":
        yield f"not integrated: {plain(integration.detail, 500)}"
        yield f"  to try again: `swarm-tui integrate {sweep}`"


def effect_lines(outcome: IntegratorReport | None) -> Iterator[str]:
    """Yield the effect of each fix on the tests."""
    effects = list(read_measured_effects(outcome).values())
    for effect in effects[:NAMED]:
        title = plain(effect.title, 200) or effect.commit[:9]
        yield f"fix: {title}" + (f" · {effect.sentence}" if effect.sentence else "")
    if len(effects) > NAMED:
        yield f"  and {counted(len(effects) - NAMED, 'fix', 'fixes')} more"


def left_out_lines(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """Yield the work that the integrator left out of the branch."""
    if left_out:
        yield f"{len(left_out)} left out of the integrated branch:"
    for entry in left_out[:NAMED]:
        yield f"  {plain(entry.branch, 200)}: {plain(entry.reason, 400)}"
    if len(left_out) > NAMED:
        yield f"  and {len(left_out) - NAMED} more"

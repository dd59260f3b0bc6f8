"""The lines that are printed at the end of a sweep: open tests and why, and what the integrator left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from swarm_tui.model.outcome import LeftOut
from swarm_tui.model.state import Integration, TestRecord
from swarm_tui.model.states import MARKS, PULLED_RESULTS, Result, State
from swarm_tui.model.text import plain

NAMED: Final = 20
"""How many tests are named for one cause. The others are counted; `swarm-tui status` names them all."""


def is_open(record: TestRecord) -> bool:
    """Return whether a test is neither clean or skipped nor has work that can be integrated."""
    return record.result not in (Result.CLEAN, Result.SKIPPED) and record.result not in PULLED_RESULTS


def open_lines(records: Iterable[TestRecord]) -> Iterator[str]:
    """Return what is still open, grouped by result and reason, the most frequent cause first."""
    causes: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if is_open(record):
            causes.setdefault((record.mark, _cause(record)), []).append(plain(record.test, 300))
    for (mark, reason), tests in sorted(causes.items(), key=lambda cause: -len(cause[1])):
        yield f"{len(tests)} {MARKS[mark].word}: {reason or 'no reason is known'}"
        yield from (f"  {test}" for test in tests[:NAMED])
        if len(tests) > NAMED:
            yield f"  and {len(tests) - NAMED} more"


def _cause(record: TestRecord) -> str:
    if record.state is State.QUEUED:
        return "not launched yet"
    return plain(record.reason, 300)


def integration_lines(integration: Integration, sweep: str) -> Iterator[str]:
    """Return why there is no integrated branch, and the command that makes it."""
    if integration.state == "failed":
        yield f"not integrated: {plain(integration.detail, 500)}"
        yield f"  `swarm-tui integrate {sweep}` does it again"


def left_out_lines(left_out: Sequence[LeftOut]) -> Iterator[str]:
    """Return what the integrator could not put onto the branch."""
    if left_out:
        yield f"{len(left_out)} left out of the integrated branch:"
    for entry in left_out[:NAMED]:
        yield f"  {plain(entry.branch, 200)}: {plain(entry.reason, 400)}"
    if len(left_out) > NAMED:
        yield f"  and {len(left_out) - NAMED} more"

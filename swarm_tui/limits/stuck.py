"""Detect running agents that are stuck, by comparison with the other agents of the sweep."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.limits.events import AgentStuck, time_of_day
from swarm_tui.model.formatting import duration
from swarm_tui.model.results import State

ENOUGH: Final = 3
"""The minimum number of finished tests for a comparison."""
RECENT: Final = 500
SILENT_AT_LEAST: Final = 120.0
SILENT_OTHERWISE: Final = 900.0
CALLS_ALIKE: Final = 5
TOKENS_AT_LEAST: Final = 50_000
TOKENS_OTHERWISE: Final = 500_000
NUDGE: Final = (
    "You seem to be stuck: {reason}. Try another way. "
    "If there is none, submit what you have and report what blocks you."
)


@dataclass(frozen=True, slots=True)
class TypicalAgent:
    """The median duration and tokens of finished agents; None if too few have finished."""

    seconds: float | None = None
    tokens: float | None = None

    @property
    def longest_silence(self) -> float:
        return max(SILENT_AT_LEAST, 2 * self.seconds) if self.seconds is not None else SILENT_OTHERWISE

    @property
    def most_tokens(self) -> float:
        """The number of tokens that an agent may use without a new try or commit."""
        return max(TOKENS_AT_LEAST, 2 * self.tokens) if self.tokens is not None else TOKENS_OTHERWISE


def typical_agent(records: Iterable[TestRecord]) -> TypicalAgent:
    """Return the medians of the finished agents of these tests."""
    done = [record for record in records if record.state is State.DONE and record.launched_at and record.ended_at]
    seconds = [record.ended_at - record.launched_at for record in done if record.ended_at and record.launched_at]
    tokens = [record.tokens for record in done if record.tokens]
    return TypicalAgent(_median(seconds), _median(tokens))


def why_stuck(record: TestRecord, typical: TypicalAgent, now: float, *, repeated: str = "", times: int = 0) -> str:
    """Return why an agent is stuck, or "".

    `repeated` is the tool call that the agent has repeated most, `times` times without a new call in between.
    """
    is_unknown = record.stale_since is not None
    if record.state is not State.RUNNING or record.has_api_error or is_unknown:
        return ""
    if times >= CALLS_ALIKE:
        return f"the same call {times} times: {repeated}"
    tokens = (record.tokens or 0) - record.tokens_at_progress
    if tokens > typical.most_tokens:
        return f"used {tokens:,} tokens without a try or commit{_by_others(typical.tokens, 'tokens')}"
    last_try = record.tries[-1] if record.tries else None
    heard_at = max(record.since, record.last_line_at, last_try.at if last_try else 0.0)
    if now - heard_at <= typical.longest_silence:
        return ""
    activity = "try running" if last_try is not None and last_try.passed is None else "no try and no output"
    usual = f" (median of finished agents: {duration(typical.seconds)})" if typical.seconds is not None else ""
    return f"{activity} since {time_of_day(heard_at, now)}{usual}"


def due_events(
    state: SweepState, calls: Mapping[str, tuple[str, int]], now: float, *, is_nudging: bool
) -> Iterator[AgentStuck]:
    """Yield an event for each agent that became stuck, or that continues.

    `calls` has for each test with a live agent the tool call that the agent has repeated most, and how many times.
    """
    typical = typical_agent(state.tests())
    for test, (call, times) in calls.items():
        record = state.records[test]
        reason = why_stuck(record, typical, now, repeated=call, times=times)
        # Numbers in the reason change, so only its presence is compared.
        if bool(reason) != bool(record.stuck):
            yield AgentStuck(test=test, reason=reason, is_nudged=bool(reason) and is_nudging and not record.is_nudged)


def _by_others(number: float | None, unit: str) -> str:
    return f" (median of finished agents: {number:,.0f} {unit})" if number is not None else ""


def _median(numbers: list[float] | list[int]) -> float | None:
    return statistics.median(numbers[-RECENT:]) if len(numbers) >= ENOUGH else None

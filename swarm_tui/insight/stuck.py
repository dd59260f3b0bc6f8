"""Finds running agents that are stuck, and says for which reason, by what others of the sweep have needed."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from swarm_tui.model.formatting import duration
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.trouble import time_of_day

ENOUGH: Final = 3
"""With fewer finished tests than this nothing is known of what an agent needs."""
RECENT: Final = 500
SILENT_AT_LEAST: Final = 120.0
SILENT_OTHERWISE: Final = 900.0
CALLS_ALIKE: Final = 5
TOKENS_AT_LEAST: Final = 50_000
TOKENS_OTHERWISE: Final = 500_000


@dataclass(frozen=True, slots=True)
class TypicalAgent:
    """What half of a sweep's agents have needed at most, None where too few have ended to say it."""

    seconds: float | None = None
    tokens: float | None = None

    @property
    def longest_silence(self) -> float:
        return max(SILENT_AT_LEAST, 2 * self.seconds) if self.seconds is not None else SILENT_OTHERWISE

    @property
    def most_tokens(self) -> float:
        """How many tokens an agent may use before its first try or commit, and between two of them."""
        return max(TOKENS_AT_LEAST, 2 * self.tokens) if self.tokens is not None else TOKENS_OTHERWISE


def typical_agent(records: Iterable[TestRecord]) -> TypicalAgent:
    """Return what the agents of these tests have needed that have ended."""
    ended = [record for record in records if record.state is State.DONE and record.launched_at and record.ended_at]
    seconds = [record.ended_at - record.launched_at for record in ended if record.ended_at and record.launched_at]
    tokens = [record.tokens for record in ended if record.tokens]
    return TypicalAgent(_median(seconds), _median(tokens))


def why_stuck(record: TestRecord, typical: TypicalAgent, now: float, *, repeated: str = "", times: int = 0) -> str:
    """Return the reason why an agent is stuck, or "".

    `repeated` is the call that the agent has made most often, `times`, without any new one in between.
    """
    if record.state is not State.RUNNING or record.is_hindered:
        return ""
    if times >= CALLS_ALIKE:
        return f"the same call {times} times: {repeated}"
    tokens = (record.tokens or 0) - record.tokens_at_progress
    if tokens > typical.most_tokens:
        return f"it has used {tokens:,} tokens without a try or a commit{_by_others(typical.tokens, 'tokens')}"
    last_try = record.tries[-1] if record.tries else None
    heard_at = max(record.since, record.last_line_at, last_try.at if last_try else 0.0)
    if now - heard_at <= typical.longest_silence:
        return ""
    what = "its try runs" if last_try is not None and last_try.passed is None else "no try and no output"
    usual = f" (others take {duration(typical.seconds)} in all)" if typical.seconds is not None else ""
    return f"{what} since {time_of_day(heard_at, now)}{usual}"


def _by_others(number: float | None, unit: str) -> str:
    return f" (others use {number:,.0f} {unit} in all)" if number is not None else ""


def _median(numbers: list[float] | list[int]) -> float | None:
    return statistics.median(numbers[-RECENT:]) if len(numbers) >= ENOUGH else None

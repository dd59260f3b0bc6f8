"""Stuck agents: silent, repeating a call, or using tokens without progress."""

from __future__ import annotations

import pytest
from msgspec import structs

from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import Try
from swarm_tui.limits.events import ApiError, ApiErrorKind, time_of_day
from swarm_tui.limits.stuck import (
    CALLS_ALIKE,
    SILENT_AT_LEAST,
    SILENT_OTHERWISE,
    TOKENS_AT_LEAST,
    TOKENS_OTHERWISE,
    TypicalAgent,
    typical_agent,
    why_stuck,
)
from swarm_tui.model.results import State

NOW = 100_000.0
UNKNOWN = TypicalAgent()
USUAL = TypicalAgent(seconds=300.0, tokens=40_000)
RUNNING = TestRecord("a", state=State.RUNNING, since=NOW)


def silent(seconds: float) -> TestRecord:
    return structs.replace(RUNNING, since=NOW - seconds)


def test_typical_agent_is_median_of_finished() -> None:
    ended = [
        TestRecord(str(span), state=State.DONE, launched_at=100.0, ended_at=100.0 + span, tokens=int(span) * 10)
        for span in (10.0, 400.0, 30.0)
    ]
    assert typical_agent([*ended, RUNNING]) == TypicalAgent(30.0, 300)
    assert typical_agent(ended[:2]) == UNKNOWN
    assert typical_agent([structs.replace(record, tokens=None) for record in ended]) == TypicalAgent(30.0)


@pytest.mark.parametrize(
    ("typical", "limit"),
    [(UNKNOWN, SILENT_OTHERWISE), (USUAL, 600.0), (TypicalAgent(seconds=3.0), SILENT_AT_LEAST)],
)
def test_silence_limit_is_twice_the_median(typical: TypicalAgent, limit: float) -> None:
    assert why_stuck(silent(limit), typical, NOW) == ""
    assert why_stuck(silent(limit + 1), typical, NOW).startswith("no try and no output since ")


def test_stuck_reason_contains_time_and_median() -> None:
    since = time_of_day(NOW - 700.0, NOW)
    assert (
        why_stuck(silent(700.0), USUAL, NOW) == f"no try and no output since {since} (median of finished agents: 5m00s)"
    )
    began = Try(1, None, 0.0, NOW - 700.0)
    hanging = structs.replace(silent(5_000.0), tries=(began,))
    assert why_stuck(hanging, USUAL, NOW) == f"try running since {since} (median of finished agents: 5m00s)"


def test_output_or_try_counts_as_activity() -> None:
    assert why_stuck(structs.replace(silent(5_000.0), last_line_at=NOW - 5), USUAL, NOW) == ""
    assert why_stuck(structs.replace(silent(5_000.0), tries=(Try(1, False, 1.0, NOW - 5),)), USUAL, NOW) == ""


def test_only_running_agent_can_be_stuck() -> None:
    waiting = structs.replace(silent(5_000.0), state=State.WAITING)
    limited = structs.replace(silent(5_000.0), api_error=ApiError(kind=ApiErrorKind.LIMITED))
    for record in (waiting, limited, structs.replace(silent(5_000.0), state=State.DONE)):
        assert why_stuck(record, USUAL, NOW, repeated="Bash ls", times=50) == ""


def test_agent_on_silent_host_is_not_stuck() -> None:
    assert why_stuck(structs.replace(silent(50_000), stale_since=NOW - 60), UNKNOWN, NOW) == ""


def test_repeated_call_is_stuck() -> None:
    assert why_stuck(RUNNING, USUAL, NOW, repeated="Bash ls", times=CALLS_ALIKE - 1) == ""
    assert why_stuck(RUNNING, USUAL, NOW, repeated="Bash ls", times=CALLS_ALIKE) == ("the same call 5 times: Bash ls")


@pytest.mark.parametrize(
    ("typical", "limit"),
    [(UNKNOWN, TOKENS_OTHERWISE), (USUAL, 80_000), (TypicalAgent(tokens=10), TOKENS_AT_LEAST)],
)
def test_token_limit_uses_median(typical: TypicalAgent, limit: int) -> None:
    used = structs.replace(RUNNING, tokens=1_000 + limit, tokens_at_progress=1_000)
    assert why_stuck(used, typical, NOW) == ""
    more = why_stuck(structs.replace(used, tokens=1_001 + limit), typical, NOW)
    assert more.startswith(f"used {limit + 1:,} tokens without a try or commit")

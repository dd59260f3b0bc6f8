"""How many agents may work: halved once a burst of troubles, one more each quiet minute, within what was asked."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from swarm_tui.adapters.machine import MachineState
from swarm_tui.journal.state import SweepState
from swarm_tui.limits.events import (
    OPEN,
    ApiAccess,
    ApiError,
    ApiErrorKind,
    Throttle,
    ThrottleChanged,
    throttle_text,
    time_of_day,
)
from swarm_tui.limits.recovery import BURST, QUIET, TOO_MANY_HOLDS, ThrottleInputs, throttled_slots

GIB = 1 << 30
LIMITED = ApiError(kind=ApiErrorKind.LIMITED)
UNTIL = ApiError(kind=ApiErrorKind.LIMITED, until=9_000.0, has_given_up=True)
SEEN_NOW = ThrottleInputs(now=1_000.0, wanted=24, active=24, api_errors=(LIMITED,), api_error_at=999.0)
IN_NEED = MachineState(2, load=1.0, memory=16 * GIB, available=1 * GIB)
BETTER = replace(IN_NEED, available=2 * GIB)
RELAXED = replace(IN_NEED, available=8 * GIB)
QUIET_NOW = ThrottleInputs(now=1_000.0, wanted=24, active=5)


def turned(throttle: Throttle, situation: ThrottleInputs) -> Throttle:
    """Return what the journal makes of the dial."""
    event = throttled_slots(throttle, situation)
    state = SweepState()
    state.access = ApiAccess(throttle)
    return state.apply_all([structs.replace(event, at=situation.now)]).access.throttle if event else throttle


def test_the_first_limit_halves_the_slots_in_use() -> None:
    assert turned(OPEN, SEEN_NOW) == Throttle(12, "limited", halved_at=1_000.0, changed_at=1_000.0, too_many=24)
    assert turned(OPEN, replace(SEEN_NOW, active=7)).slots == 3
    assert turned(OPEN, replace(SEEN_NOW, active=1)).slots == 1


def test_a_burst_halves_once_however_many_agents_it_meets() -> None:
    throttle = turned(OPEN, SEEN_NOW)
    for second in range(1, int(BURST)):
        now = 1_000.0 + second
        later = replace(SEEN_NOW, now=now, api_error_at=now - 0.5, active=12, api_errors=(LIMITED,) * 12)
        assert turned(throttle, later) == throttle


def test_it_halves_again_only_when_the_halving_has_come_into_effect() -> None:
    throttle = turned(OPEN, SEEN_NOW)
    later = replace(SEEN_NOW, now=1_100.0, api_error_at=1_099.0)
    assert turned(throttle, replace(later, active=13)) == throttle
    assert turned(throttle, replace(later, active=12)).slots == 6
    assert turned(throttle, replace(later, active=24, given_up=12)).slots == 6
    assert turned(Throttle(1, "limited", halved_at=0.0), replace(later, active=1)).slots == 1


def test_where_one_alone_is_refused_it_was_not_for_the_number_of_agents() -> None:
    alone = replace(SEEN_NOW, active=1)
    assert (turned(OPEN, alone).slots, turned(OPEN, alone).too_many) == (1, None)
    refused_again = replace(SEEN_NOW, active=8, given_up=7)
    assert turned(Throttle(2, "limited", halved_at=0.0, too_many=4), refused_again).too_many is None
    assert turned(turned(OPEN, alone), replace(QUIET_NOW, now=1_100.0)).slots == 2


def test_one_agent_that_is_refused_again_is_not_said_again() -> None:
    throttle = turned(OPEN, replace(SEEN_NOW, active=1))
    later = replace(SEEN_NOW, now=2_000.0, api_error_at=1_999.0, active=1)
    assert throttled_slots(throttle, later) is None
    assert throttled_slots(throttle, replace(later, api_errors=(UNTIL,))) is not None


def test_old_news_halves_nothing() -> None:
    assert turned(OPEN, replace(SEEN_NOW, api_error_at=900.0)) == OPEN


def test_a_quiet_minute_gives_one_more_until_all_are_back() -> None:
    throttle = Throttle(22, "limited", halved_at=900.0, changed_at=1_000.0 - QUIET, too_many=40)
    assert turned(throttle, replace(QUIET_NOW, now=999.0)) == throttle
    assert turned(throttle, replace(QUIET_NOW, api_error_at=990.0)) == throttle
    assert turned(throttle, replace(QUIET_NOW, api_errors=(LIMITED,))) == throttle
    risen = turned(throttle, QUIET_NOW)
    assert risen == replace(throttle, slots=23, changed_at=1_000.0)
    assert turned(risen, replace(QUIET_NOW, now=1_060.0)).slots is None


def test_nothing_rises_before_the_limit_is_over() -> None:
    throttle = turned(OPEN, replace(SEEN_NOW, api_errors=(UNTIL,)))
    assert (throttle.slots, throttle.until, throttle.too_many) == (12, 9_000.0, None)
    assert turned(throttle, replace(QUIET_NOW, now=8_999.0)) == throttle
    assert turned(throttle, replace(QUIET_NOW, now=9_001.0)).slots == 13


def test_the_end_of_a_limit_may_become_known_later() -> None:
    throttle = turned(OPEN, SEEN_NOW)
    later = replace(SEEN_NOW, now=1_010.0, api_errors=(LIMITED, UNTIL))
    assert turned(throttle, later) == replace(throttle, until=9_000.0, changed_at=1_010.0)


def test_what_was_too_many_is_not_tried_again_for_a_while() -> None:
    throttle = Throttle(8, "limited", halved_at=1_000.0, changed_at=1_500.0, too_many=9)
    assert turned(throttle, replace(QUIET_NOW, now=1_700.0)) == throttle
    assert turned(throttle, replace(QUIET_NOW, now=1_001.0 + TOO_MANY_HOLDS)).slots == 9


def test_a_machine_that_has_no_memory_left_turns_the_same_dial_and_waits_until_there_is_more() -> None:
    situation = replace(QUIET_NOW, active=10, machine=IN_NEED)
    throttle = turned(OPEN, situation)
    assert throttle == Throttle(5, "memory", "94 % used", halved_at=1_000.0, changed_at=1_000.0)
    assert turned(throttle, replace(situation, now=1_030.0, active=5)) == throttle
    assert turned(throttle, replace(situation, now=1_100.0, active=5)).slots == 2
    assert turned(throttle, replace(situation, now=1_100.0, machine=BETTER)) == throttle
    assert turned(throttle, replace(situation, now=1_100.0, machine=RELAXED)).slots == 6


def test_so_does_one_that_has_too_much_to_do() -> None:
    busy = MachineState(2, load=20.5)
    throttle = turned(OPEN, replace(QUIET_NOW, machine=busy))
    assert throttle_text(throttle, 24, 1_000.0) == "2 of 24: load 20 on 2 cores"
    assert turned(OPEN, replace(QUIET_NOW, machine=replace(busy, load=20.0))) == OPEN


def test_what_people_read() -> None:
    throttle = turned(OPEN, replace(SEEN_NOW, api_errors=(UNTIL,)))
    assert throttle_text(throttle, 24, 1_000.0) == f"12 of 24: limited until {time_of_day(9_000.0, 1_000.0)}"
    assert throttle_text(throttle, 24, 9_001.0) == "12 of 24: limited"
    assert throttle_text(throttle, 12, 1_000.0) == throttle_text(OPEN, 24, 0.0) == ""
    overloaded = turned(OPEN, replace(SEEN_NOW, api_errors=(ApiError(kind=ApiErrorKind.OVERLOADED),)))
    assert throttle_text(overloaded, 24, 0.0) == "12 of 24: API busy"
    week = 7 * 86_400.0
    assert time_of_day(week, 0.0).split() == [time_of_day(week, 0.0)[:3], time_of_day(week, week)]


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 40), st.booleans(), st.sampled_from([None, IN_NEED, RELAXED])),
        max_size=60,
    ),
    st.integers(1, 30),
)
def test_it_never_leaves_its_bounds_and_halves_once_a_burst(
    steps: list[tuple[int, int, bool, MachineState | None]], wanted: int
) -> None:
    throttle, now, api_error_at = OPEN, 1_000.0, 0.0
    halvings: list[float] = []
    for seconds, active, has_api_error, machine in steps:
        now += seconds
        api_error_at = now if has_api_error else api_error_at
        api_errors = (LIMITED,) if has_api_error else ()
        event = throttled_slots(throttle, ThrottleInputs(now, wanted, active, 0, api_errors, api_error_at, machine))
        if event is None:
            continue
        before = wanted if throttle.slots is None else throttle.slots
        throttle = turned(throttle, ThrottleInputs(now, wanted, active, 0, api_errors, api_error_at, machine))
        if event.is_halved:
            halvings.append(now)
            assert throttle.slots is not None
            assert 1 <= throttle.slots <= max(1, before // 2)
        else:
            assert throttle.slots is None or before < throttle.slots < wanted
    assert all(later - earlier >= BURST for earlier, later in itertools.pairwise(halvings))


@pytest.mark.parametrize("wanted", [9, 28, 100])
@pytest.mark.parametrize("seconds_of_work", [90, 240])
def test_with_a_model_that_bears_eight_it_settles_at_eight(wanted: int, seconds_of_work: int) -> None:
    throttle, api_error_at = OPEN, 0.0
    ends: list[float] = []
    levels: list[int] = []
    for second in range(2 * 3600):
        now = 10_000.0 + second
        # More than eight are refused, and come to their end later.
        refused = max(0, len(ends) - 8)
        ends = [end + (1 if number >= 8 else 0) for number, end in enumerate(ends) if end > now]
        api_error_at = now if refused else api_error_at
        situation = ThrottleInputs(now, wanted, len(ends), 0, (LIMITED,) * refused, api_error_at)
        throttle = turned(throttle, situation)
        slots = wanted if throttle.slots is None else throttle.slots
        if len(ends) < slots and second % 2 == 0:
            ends.append(now + seconds_of_work)
        levels.append(slots)
    settled = levels[1_500:]
    assert sum(level in (7, 8) for level in settled) > 0.8 * len(settled), (min(settled), max(settled))
    assert max(settled) <= 9


def test_a_resumed_engine_continues_the_dial() -> None:
    events = [
        ThrottleChanged(seq=1, at=1_000.0, slots=12, cause="limited", is_halved=True, too_many=24),
        ThrottleChanged(seq=2, at=1_060.0, slots=13, cause="limited", too_many=24),
    ]
    throttle = SweepState().apply_all(events).access.throttle
    assert throttle == Throttle(13, "limited", halved_at=1_000.0, changed_at=1_060.0, too_many=24)
    assert turned(throttle, replace(QUIET_NOW, now=1_130.0)).slots == 14

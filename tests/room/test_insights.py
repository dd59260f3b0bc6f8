"""Incremental updates give the same conclusions as a full computation."""

from hypothesis import given
from msgspec import structs

from swarm_tui.failures.patterns import find_patterns
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import Event
from swarm_tui.model.results import State
from swarm_tui.money.forecast import seconds_to_end_of_sweep
from swarm_tui.questions.inbox import find_items
from swarm_tui.room.store import SweepConclusions
from tests.journal.sweeps import events


@given(events, events)
def test_incremental_insights_equal_full_computation(first: list[Event], then: list[Event]) -> None:
    state, insights = SweepState(), SweepConclusions()
    for part in (first, then):
        state.apply_all(structs.replace(event, at=float(place)) for place, event in enumerate(part))
        insights.update(state.records[test] for test in state.drain_changed())
        insights.items(state, 40.0)

    computed = SweepConclusions()
    computed.update(state.tests())
    for now in (50.0, 2_000.0):
        updated, found = insights.items(state, now), find_items(state, state.tests(), now)
        assert sorted(updated, key=hash) == sorted(found, key=hash)
    assert insights.patterns() == computed.patterns()
    alike = [pattern for pattern in computed.patterns() if pattern.kind != "editing"]
    assert alike == find_patterns(state.tests())
    assert insights.tests_needing_person() == computed.tests_needing_person()


@given(events)
def test_incremental_forecast_equals_full_computation(listed: list[Event]) -> None:
    state, insights = SweepState(), SweepConclusions()
    for event in listed:
        state.apply(event)
        insights.update(state.records[test] for test in state.drain_changed())
    queued = state.counts[State.QUEUED.value]
    if not (state.launches_nothing and queued):
        assert insights.seconds_left(queued, state.slots, 50.0) == seconds_to_end_of_sweep(state, 50.0)

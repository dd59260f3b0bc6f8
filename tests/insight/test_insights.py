"""Insights that are updated by changes equal those that are computed from all records."""

from hypothesis import given

from swarm_tui.insight.forecast import seconds_to_end_of_sweep
from swarm_tui.insight.inbox import find_items
from swarm_tui.insight.insights import Insights
from swarm_tui.insight.patterns import find_patterns
from swarm_tui.journal.fold import SweepState
from swarm_tui.model import events as happened
from swarm_tui.model.states import State
from tests.journal.sweeps import events


@given(events, events)
def test_updated_insights_agree_with_all_records(first: list[happened.Event], then: list[happened.Event]) -> None:
    state, insights = SweepState(), Insights()
    for part in (first, then):
        state.apply_all(event.model_copy(update={"at": float(place)}) for place, event in enumerate(part))
        insights.update(state.records[test] for test in state.drain_changed())
        insights.items(state, 40.0)

    computed = Insights()
    computed.update(state.tests())
    for now in (50.0, 2_000.0):
        updated, found = insights.items(state, now), find_items(state, state.tests(), now)
        assert sorted(updated, key=hash) == sorted(found, key=hash)
    assert insights.patterns() == computed.patterns()
    alike = [pattern for pattern in computed.patterns() if pattern.kind != "editing"]
    assert alike == find_patterns(state.tests())
    assert insights.tests_needing_person() == computed.tests_needing_person()


@given(events)
def test_the_forecast_agrees_with_all_records(listed: list[happened.Event]) -> None:
    state, insights = SweepState(), Insights()
    for event in listed:
        state.apply(event)
        insights.update(state.records[test] for test in state.drain_changed())
    queued = state.counts[State.QUEUED.value]
    if not (state.launches_nothing and queued):
        assert insights.seconds_left(queued, state.slots, 50.0) == seconds_to_end_of_sweep(state, 50.0)

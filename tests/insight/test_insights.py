"""The ledger, given only what changed, tells what a walk over all records would."""

from hypothesis import given

from swarm_tui.insight.blockers import find_blockers
from swarm_tui.insight.forecast import forecast_end
from swarm_tui.insight.insights import Insights
from swarm_tui.insight.patterns import find_patterns
from swarm_tui.journal.fold import SweepState
from swarm_tui.model import events as happened
from swarm_tui.model.states import State
from tests.journal.sweeps import events


@given(events, events)
def test_the_ledger_agrees_with_all_records(first: list[happened.Event], then: list[happened.Event]) -> None:
    state, ledger = SweepState(), Insights()
    for part in (first, then):
        state.apply_all(event.model_copy(update={"at": float(place)}) for place, event in enumerate(part))
        ledger.update(state.records[test] for test in state.drain_changed())

    afresh = Insights()
    afresh.update(state.tests())
    assert sorted(ledger.patterns()) == sorted(afresh.patterns()) == sorted(find_patterns(state.tests()))
    assert {blocker.title for blocker in ledger.blockers()} == {
        blocker.title for blocker in find_blockers(state.tests())
    }
    assert ledger.wanting(2_000.0) == afresh.wanting(2_000.0)
    assert ledger.cost == afresh.cost


@given(events)
def test_the_forecast_agrees_with_all_records(listed: list[happened.Event]) -> None:
    state, ledger = SweepState(), Insights()
    for event in listed:
        state.apply(event)
        ledger.update(state.records[test] for test in state.drain_changed())
    queued = state.counts[State.QUEUED.value]
    if not (state.is_held and queued):
        assert ledger.seconds_left(queued, state.slots, 50.0) == forecast_end(state, 50.0)


def test_cost_is_the_last_word_of_each_agent() -> None:
    state, ledger = SweepState(), Insights()
    assert ledger.cost is None
    for test, dollars in (("a", 1.0), ("b", 2.0), ("a", 1.5)):
        state.apply(happened.Spent(test=test, dollars=dollars))
        ledger.update(state.records[test] for test in state.drain_changed())
    assert ledger.cost == 3.5

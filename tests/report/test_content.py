"""The timeline: lanes that count agents at work."""

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.report.content import AgentSpan, assign_lanes

times = st.floats(0, 100, allow_nan=False)
spans = st.lists(st.tuples(times, times), max_size=30).map(
    lambda pairs: [AgentSpan(min(pair), max(pair), place) for place, pair in enumerate(pairs)]
)


@given(spans)
def test_no_two_tests_share_a_lane_at_once_and_no_lane_is_wasted(given_spans: list[AgentSpan]) -> None:
    placed = assign_lanes(given_spans)
    assert sorted(place.span for place in placed) == sorted(given_spans)
    for first in placed:
        for second in placed:
            if first is not second and first.lane == second.lane:
                assert first.span.end <= second.span.start or second.span.end <= first.span.start
    at_once = max((sum(o.start <= s.start < o.end or o is s for o in given_spans) for s in given_spans), default=0)
    assert len({place.lane for place in placed}) <= at_once + sum(span.start == span.end for span in given_spans)

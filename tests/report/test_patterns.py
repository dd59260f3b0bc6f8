"""The page shows what fails alike, with what is held for it, and nothing that acts on a page."""

from __future__ import annotations

from swarm_tui.failures.events import AlertRaised, QueueHeld
from swarm_tui.journal.events import Launched, Queued
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import TryFinished
from swarm_tui.report.content import patterns_on_page

CAUSE = "OSError: no base"


def test_a_pattern_is_on_the_page_with_its_tests_its_alarm_and_what_is_held() -> None:
    state = SweepState()
    for test in "abcd":
        state.apply(Queued(test=test))
    for test in "bc":
        state.apply(Launched(test=test))
        state.apply(TryFinished(test=test, passed=False, failure="test_a.py:3: OSError: no base"))
    state.apply(AlertRaised(cause=CAUSE, tests=("b", "c")))
    state.apply(QueueHeld(tests=("d",), cause=CAUSE, reason="they use \x1b[31mfixture db"))
    (pattern,) = patterns_on_page(state)
    assert (pattern["kind"], pattern["title"], pattern["tests"]) == ("failing", CAUSE, [1, 2])
    assert pattern["text"] == "- alert: 2 tests failed with this cause\n- held: 1 test, since they use fixture db"

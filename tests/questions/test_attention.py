"""The order of tests that need the user."""

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.results import Result, State
from swarm_tui.money.forecast import seconds_to_end
from swarm_tui.questions.inbox import attention_order, needs_person

NOW = 10_000.0


def done(test: str, result: Result, since: float = 0.0) -> TestRecord:
    return TestRecord(test, state=State.DONE, result=result, since=since)


def test_attention_order_of_classes() -> None:
    waiting = TestRecord("waiting", state=State.WAITING, since=NOW)
    stuck = TestRecord("stuck", state=State.RUNNING, since=NOW, stuck="no try and no output since 18:02")
    records = [
        stuck,
        done("unresolved", Result.UNRESOLVED),
        done("error", Result.ERROR),
        done("blocked", Result.BLOCKED),
    ]
    records += [
        waiting,
        done("clean", Result.CLEAN),
        TestRecord("queued"),
        TestRecord("runs", state=State.RUNNING, since=NOW),
    ]
    found = [record for record in records if needs_person(record)]
    found.sort(key=attention_order)
    assert [record.test for record in found] == ["waiting", "blocked", "error", "unresolved", "stuck"]


def test_longest_waiting_comes_first() -> None:
    long, short = TestRecord("a", state=State.WAITING, since=1.0), TestRecord("b", state=State.WAITING, since=2.0)
    assert attention_order(long) < attention_order(short)


def test_forecast_requires_finished_tests() -> None:
    assert seconds_to_end([10.0, 10.0], [], 5, 1) is None
    assert seconds_to_end([10.0, 10.0, 10.0], [], 4, 2) == 20.0
    assert seconds_to_end([10.0] * 3, [4.0], 0, 2) == 6.0
    assert seconds_to_end([10.0] * 3, [], 5, 0) is None
    assert seconds_to_end([10.0] * 3, [], 0, 4) is None

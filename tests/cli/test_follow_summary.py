"""What is said at the end of a sweep: every open test with its reason, grouped, and what was left out."""

from __future__ import annotations

from swarm_tui.cli.follow import NAMED, left_out_lines, open_lines
from swarm_tui.cli.progress import integration_lines
from swarm_tui.integrator.events import Integration
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.report import LeftOut
from swarm_tui.model.results import Result, State


def record(test: str, result: Result | None, reason: str = "", state: State = State.DONE) -> TestRecord:
    return TestRecord(test=test, state=state, result=result, reason=reason)


def test_open_tests_are_grouped_by_cause_and_finished_ones_are_not_named() -> None:
    records = [
        record("clean", Result.CLEAN),
        record("fixed", Result.IMPL_FIX),
        record("dead", Result.ERROR, "it crashed"),
        record("one", Result.BLOCKED, "no printer"),
        record("two", Result.BLOCKED, "no printer"),
        record("halted", None, "", State.STOPPED),
        record("later", None, "", State.QUEUED),
    ]
    assert list(open_lines(records)) == [
        "2 blocked: no printer",
        "  one",
        "  two",
        "1 error: it crashed",
        "  dead",
        "1 stopped: unknown reason",
        "  halted",
        "1 queued: not launched yet",
        "  later",
    ]


def test_a_long_list_is_counted() -> None:
    records = [record(f"t{number}", Result.BLOCKED, "\x1b[31mno\x1b[0m") for number in range(NAMED + 3)]
    lines = list(open_lines(records))
    assert lines[0] == f"{NAMED + 3} blocked: no"
    assert lines[-1] == "  and 3 more"


def test_what_was_left_out_is_named_with_its_reason() -> None:
    assert list(left_out_lines(())) == []
    assert list(left_out_lines([LeftOut(branch="swarm/1/a", reason="conflicts in x.py\nwith 'y'")])) == [
        "1 left out of the integrated branch:",
        "  swarm/1/a: conflicts in x.py with 'y'",
    ]


def test_problems_and_refused_branch_are_printed() -> None:
    done = Integration(state="done", refused="3 tests\x1b[31m fail", problems=("1 test fails: a",))
    assert list(integration_lines(done, "20261118")) == [
        "problem: 1 test fails: a",
        "the coding agent's branch is not used: 3 tests fail",
    ]
    assert list(integration_lines(Integration(state="done"), "20261118")) == []

"""Combining pytest's reports about a test: its last run counts, and any failure in that run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from swarm_tui.agents.live.swarm_live.report import ReportSum, failure_line


def crash(message: str) -> Any:
    return SimpleNamespace(reprcrash=SimpleNamespace(path="/somewhere/shop/base.py", lineno=34, message=message))


def report(when: str, outcome: str, **more: Any) -> Any:
    return SimpleNamespace(when=when, outcome=outcome, longrepr=more.pop("text", ""), duration=1.0, **more)


class SubtestReport(SimpleNamespace):
    """Named like the report classes of pytest and pytest-subtests."""


def part(outcome: str) -> Any:
    return SubtestReport(when="call", outcome=outcome, longrepr=("", 1, "Skipped: not here"), duration=0.0)


UP, DOWN = report("setup", "passed"), report("teardown", "passed")
BAD = report("call", "failed", text="E assert 1 == 2")
SKIP = ("test_it.py", 3, "Skipped: no device")


@pytest.mark.parametrize(
    ("reports", "outcome", "text"),
    [
        ([UP, report("call", "passed"), DOWN], "passed", ""),
        ([UP, BAD, DOWN], "failed", "assert 1 == 2"),
        ([report("setup", "failed", text="E no host"), DOWN], "failed", "error: no host"),
        ([UP, report("call", "passed"), report("teardown", "failed", text="E left")], "failed", "error: left"),
        ([report("setup", "skipped", text=SKIP), DOWN], "skipped", "no device"),
        ([UP, report("call", "skipped", text=SKIP), DOWN], "skipped", "no device"),
        ([UP, report("call", "skipped", wasxfail="reason: a known bug"), DOWN], "xfailed", "a known bug"),
        ([report("setup", "skipped", wasxfail="a known bug"), DOWN], "xfailed", "a known bug"),
        ([UP, report("call", "passed", wasxfail=""), DOWN], "xpassed", ""),
        (
            [UP, report("call", "failed", text="[XPASS(strict)] a known bug"), DOWN],
            "failed",
            "[XPASS(strict)] a known bug",
        ),
        # Repeated by a plugin: the last run counts.
        ([UP, report("call", "rerun"), UP, report("call", "passed"), DOWN], "passed", ""),
        ([UP, report("call", "rerun"), UP, BAD, DOWN], "failed", "assert 1 == 2"),
        ([report("setup", "retried"), UP, report("call", "passed"), DOWN], "passed", ""),
        # Any failed part is a failure, and a skipped part does not skip the test.
        ([UP, part("failed"), part("passed"), report("call", "passed"), DOWN], "failed", "Skipped: not here"),
        ([UP, part("skipped"), report("call", "passed"), DOWN], "passed", ""),
        # As in pytest-rerunfailures.
        ([part("passed"), part("failed"), UP, report("call", "passed"), DOWN], "failed", "Skipped: not here"),
        ([part("failed"), UP, report("call", "rerun"), UP, report("call", "passed"), DOWN], "passed", ""),
        # A crashed xdist worker.
        ([report("???", "failed", text="worker 'gw0' crashed")], "failed", "worker 'gw0' crashed"),
        # No report about the call.
        ([UP, DOWN], "", ""),
    ],
)
def test_reports_are_combined_into_one_result(reports: list[Any], outcome: str, text: str) -> None:
    verdict = ReportSum()
    for number, made in enumerate(reports):
        assert not verdict.is_finished, number
        verdict.add(made)
    assert verdict.is_finished
    assert verdict.outcome == outcome
    assert text in verdict.text
    assert verdict.is_green == (outcome in ("passed", "xfailed", "xpassed"))


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("shop.base.StockError: too few\nof them", "base.py:34: StockError: too few"),
        ("shop.base.StockError", "base.py:34: StockError"),
        ("assert shop.name == 3", "base.py:34: assert shop.name == 3"),
        ("shop.base.count == 3", "base.py:34: shop.base.count == 3"),
    ],
)
def test_failure_line_omits_modules_of_exception(message: str, line: str) -> None:
    assert failure_line(report("call", "failed", text=crash(message))) == line


def test_reruns_are_counted() -> None:
    verdict = ReportSum()
    for made in [UP, report("call", "rerun"), UP, report("call", "rerun"), UP, report("call", "passed"), DOWN]:
        verdict.add(made)
    assert verdict.fields == {"outcome": "passed", "seconds": 7.0, "reruns": 2}

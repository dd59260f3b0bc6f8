"""Tests that meet the same set off one alarm; what would meet it too is held until a person says so."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.failures.events import QueueReleased
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import TryFinished
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.guards import PatternGuard

CAUSE = "OSError: no base"


def made(root: Path, alert: float = 5, hold_similar: float = 0, tests: int = 300) -> SweepContext:
    """Return a sweep of tests in the queue, every other one with the fixture `db`."""
    spec = msgspec.convert(
        {"sweep": "1", "repository": "/r", "base": "b", "created_at": 0.0, "mngr": MngrSettings(path="mngr")}
        | {"alert": alert, "hold_similar": hold_similar, "wait_timeout": 100.0},
        SweepSpec,
    )
    folder = SweepFolder(root)
    context = SweepContext(
        folder, spec, JournalWriter(folder.events), SweepState(), cast(MngrAdapter, None), cast(Hosts, None),
        cast(Repository, None),
    )  # fmt: skip
    for number in range(tests):
        traits = ("fixture db",) if number % 2 else ()
        context.record(Queued(test=f"t{number}", file=f"tests/test_{number}.py", traits=traits))
    return context


def fail(context: SweepContext, *numbers: int) -> None:
    for number in numbers:
        context.record(TryFinished(test=f"t{number}", passed=False, failure=f"test_a.py:{number}: OSError: no base"))


def test_two_hundred_that_meet_the_same_are_one_alarm_also_for_the_next_engine(tmp_path: Path) -> None:
    context = made(tmp_path)
    guard = PatternGuard(context)
    for number in range(200):
        fail(context, number)
        guard.work(2.0 * number)
    PatternGuard(context).work(1_000.0)
    (alert,) = context.state.alerts.values()
    assert (alert.cause, alert.tests) == (CAUSE, ("t0", "t1", "t2", "t3", "t4"))
    assert len([line for line in context.state.log if CAUSE in line.text]) == 1


def test_the_breaker_holds_what_shares_the_trait_until_somebody_releases_it(tmp_path: Path) -> None:
    context = made(tmp_path, hold_similar=8)
    guard = PatternGuard(context)
    for number in range(0, 40, 2):
        context.record(TryFinished(test=f"t{number}", passed=True))
    fail(context, *range(1, 17, 2))
    guard.work(0.0)
    held = {record.test for record in context.state.tests() if record.held_for == CAUSE}
    assert held == {f"t{number}" for number in range(1, 300, 2)}
    assert context.state.alerts[CAUSE].why_held == "they use fixture db, and 8 of 8 such tests failed for this cause"

    context.record(QueueReleased(tests=("t31",)))
    fail(context, 31, 33)
    guard.work(5.0)
    PatternGuard(context).work(10.0)
    assert context.state.records["t31"].held_for == ""
    assert context.state.alerts[CAUSE].is_released


def test_without_a_number_nothing_is_held_and_without_an_alarm_nothing_is_said(tmp_path: Path) -> None:
    context = made(tmp_path, alert=0)
    fail(context, *range(100))
    PatternGuard(context).work(0.0)
    assert context.state.alerts == {}


def test_tests_that_nobody_releases_are_given_back_when_nothing_else_is_left(tmp_path: Path) -> None:
    context = made(tmp_path, hold_similar=2, tests=4)
    guard = PatternGuard(context)
    fail(context, 0, 1)
    guard.work(0.0)
    queue = [record.test for record in context.state.tests() if record.held_for]
    assert guard.unreleased(0.0, queue, is_idle=False) == []
    assert guard.unreleased(10.0, queue, is_idle=True) == []
    assert guard.unreleased(109.0, queue, is_idle=True) == []
    assert guard.unreleased(110.0, queue, is_idle=True) == queue
    assert guard.unreleased(111.0, ["other", *queue], is_idle=False) == []
    notes = [line.text for line in context.state.log if "left" in line.text]
    assert len(notes) == 1

"""Simulated sweeps can be read like real ones."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from swarm_tui.cli.main import run_command_line
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import Launching
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.state import SweepState
from swarm_tui.model.results import ACTIVE_STATES, State
from swarm_tui.simulate.feeder import main
from swarm_tui.simulate.play import SimulatedSweep
from swarm_tui.simulate.script import make_tests

TAKING = (*ACTIVE_STATES, State.WAITING)


def played(tests: int, slots: int, steps: int) -> SimulatedSweep:
    play = SimulatedSweep("s", make_tests(tests, random.Random(1)), slots, seed=1)
    for _ in range(steps):
        play.next_event()
    return play


def feed(folder: Path, *words: str) -> SweepFolder:
    assert main([str(folder), "--seconds", "0", "--at", "1000000", *words]) == 0
    return SweepFolder(folder)


def test_simulated_journal_has_only_valid_events(tmp_path: Path) -> None:
    opened = open_sweep(feed(tmp_path / "s", "--tests", "300", "--ahead", "1"))
    assert not opened.bad_lines
    assert opened.state.unknown_events == 0
    assert len(opened.state.records) == 300
    assert all(record.is_finished for record in opened.state.tests())
    assert opened.state.ended_why == "finished"


def test_simulation_after_time_limit_is_stopped(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "s")
    assert main([str(folder.root), "--tests", "20", "--seconds", "0.01"]) == 0
    assert open_sweep(folder).state.ended_why == "stopped"
    assert open_sweep(feed(tmp_path / "t", "--tests", "20", "--ahead", "0.5")).state.ended_why is None


def test_every_result_and_some_patterns_appear(tmp_path: Path) -> None:
    state = open_sweep(feed(tmp_path / "s", "--tests", "400", "--ahead", "0.95")).state
    shown = {mark for mark, number in state.counts.items() if number}
    assert {"clean", "better", "test_fix", "impl_fix", "unresolved", "blocked", "error"} <= shown


def test_the_same_seed_gives_the_same_sweep(tmp_path: Path) -> None:
    one, other, third = (
        feed(tmp_path / name / "s", "--tests", "50", "--ahead", "0.5", "--seed", seed).events.read_bytes()
        for name, seed in (("a", "1"), ("b", "1"), ("c", "2"))
    )
    assert one == other != third


def test_agents_never_exceed_slots(tmp_path: Path) -> None:
    folder = feed(tmp_path / "s", "--tests", "60", "--ahead", "1", "--slots", "5")
    state = SweepState()
    most = 0
    for line in folder.events.read_bytes().splitlines():
        state.apply(parse_event(line))
        most = max(most, state.active)
    assert 0 < most <= 6  # an answered agent continues while another one already uses its slot


def test_requests_are_carried_out() -> None:
    play = played(tests=40, slots=3, steps=60)
    events = iter(play.next_event, None)
    running = next(event.fields["test"] for event in events if event.fields["type"] != "pulled")
    stopped = play.answer_request({"id": "a", "kind": "stop", "tests": [running]})
    assert [event["type"] for event in stopped] == ["stopped", "request_answered"]
    retried = play.answer_request({"id": "b", "kind": "retry", "tests": [running]})
    assert [event["type"] for event in retried] == ["queued", "request_answered"]
    assert play.answer_request({"id": "c", "kind": "slots", "slots": 9})[0] == {"type": "slots_changed", "slots": 9}
    assert not play.answer_request({"id": "d", "kind": "integrate"})[-1]["is_done"]


def test_a_held_queue_launches_nothing() -> None:
    play = played(tests=10, slots=2, steps=0)
    play.answer_request({"id": "a", "kind": "hold"})
    assert play.next_event() is None
    play.answer_request({"id": "b", "kind": "release"})
    event = play.next_event()
    assert event is not None
    assert event.fields["type"] == "launching"


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_test_ids_are_unique(count: int) -> None:
    tests = make_tests(count, random.Random(3))
    assert len({test.test for test in tests}) == count


def test_spec_names_the_sweep(tmp_path: Path) -> None:
    folder = feed(tmp_path / "20261118-061200", "--tests", "1")
    assert json.loads(folder.spec.read_text())["sweep"] == "20261118-061200"
    assert folder.read_spec().slots == 24


def test_unwritable_log_gives_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.feeder.log").mkdir()
    assert run_command_line(["simulate", "--headless", str(tmp_path / "s")]) == 1
    assert capsys.readouterr().err == f"swarm-tui: cannot write {tmp_path}/s.feeder.log: Is a directory\n"


def test_spent_budget_stops_launching_until_raised() -> None:
    play = SimulatedSweep("s", make_tests(60, random.Random(1)), slots=4, seed=1, budget=1.0)
    events = [event.fields for event in iter(play.next_event, None)]
    spent = [fields["percent"] for fields in events if fields["type"] == "budget_reached"]
    assert spent == [80, 100]
    assert 0 < play.done < 60
    answer = play.answer_request({"id": "one", "kind": "budget", "dollars": 0, "by": "ada"})
    assert [fields["type"] for fields in answer] == ["budget_changed", "request_answered"]
    assert all(play.next_event() for _ in range(50))
    while play.next_event() is not None:
        pass
    assert play.is_over


def test_simulated_hosts_never_exceed_slots(tmp_path: Path) -> None:
    folder = feed(tmp_path / "s", "--tests", "300", "--ahead", "1", "--slots", "12", "--hosts", "4")
    state, spec = SweepState(), open_sweep(folder).spec
    assert [access.name for access in spec.access] == ["box1", "box2", "box3", "box4"]
    kinds = set()
    for line in folder.events.read_bytes().splitlines():
        event = parse_event(line)
        kinds.add(event.type)
        state.apply(event)
        lost = {name for name, host in state.hosts.items() if host.lost_since is not None}
        if isinstance(event, Launching):
            taken = [record.host for record in state.tests() if record.state in TAKING]
            assert max(Counter(taken).values()) <= spec.per_host == 3
            assert event.host not in lost
    assert {"host_polled", "host_lost", "host_recovered", "host_abandoned"} <= kinds
    assert all(record.is_finished for record in state.tests())

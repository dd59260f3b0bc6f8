"""Events about hosts: lost hosts make the states of their agents stale."""

from __future__ import annotations

from pathlib import Path

from swarm_tui.hosts.events import HostAbandoned, HostLost, HostPolled, HostRecovered, HostState
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import Launched, Launching, Queued
from swarm_tui.journal.snapshot import read_snapshot, write_snapshot
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import Event
from swarm_tui.model.spec import MngrSettings, SweepSpec, mngr_address

BEGUN: tuple[Event, ...] = (
    Queued(test="a"),
    Queued(test="b"),
    Launching(test="a", host="box1"),
    Launching(test="b", host="box2"),
    Launched(test="a", host="box1", agent_id="agent-a"),
)


def test_lost_host_makes_tests_stale_until_back() -> None:
    state = SweepState().apply_all([*BEGUN, HostLost(host="box1", reason="refused", at=5.0)])
    assert [record.stale_since for record in state.tests()] == [5.0, None]
    assert state.hosts == {"box1": HostState("box1", lost_since=5.0, reason="refused")}
    state.apply(HostAbandoned(host="box1", reason="15 min without an answer", at=6.0))
    assert state.hosts["box1"].is_gone
    state.apply(HostRecovered(host="box1", seconds=2.0, at=7.0))
    assert [record.stale_since for record in state.tests()] == [None, None]
    assert state.hosts["box1"] == HostState("box1", seen_at=7.0)
    state.apply(HostPolled(host="box1", load=0.5, processors=4, at=8.0))
    assert state.hosts["box1"] == HostState("box1", load=0.5, processors=4, seen_at=8.0)


def test_snapshot_keeps_hosts(tmp_path: Path) -> None:
    journal, snapshot = tmp_path / "events.jsonl", tmp_path / "snapshot.json"
    state = SweepState()
    with JournalWriter(journal) as writer:
        for event in (*BEGUN, HostLost(host="box1", reason="refused")):
            state.apply(writer.append(event))
    write_snapshot(snapshot, journal, journal.stat().st_size, state)
    restored, _ = read_snapshot(snapshot, journal)
    assert restored.hosts == state.hosts


def test_journal_and_spec_without_hosts_are_read() -> None:
    launching = parse_event(b'{"type":"launching","test":"a","launch":1,"seq":1,"at":1.0}')
    launched = parse_event(b'{"type":"launched","test":"a","agent_id":"x","host":"local","seq":2,"at":2.0}')
    state = SweepState().apply_all([Queued(test="a"), launching, launched])
    assert state.records["a"].host == "local"
    spec = SweepSpec(sweep="1", repository="/r", base="b", created_at=1.0, mngr=MngrSettings(path="mngr"), slots=3)
    assert (spec.hosts, spec.access, spec.slots) == ((), (), 3)


def test_mngr_address_includes_host_and_provider() -> None:
    assert mngr_address("a", "local") == "a"
    assert mngr_address("a", "box1") == "a@box1.box1"
    assert mngr_address("a", "h1.pool") == "a@h1.pool"

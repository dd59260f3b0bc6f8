"""The journal of watched agents: new, changed, exited and removed agents."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.journal.events import EngineStarted, RequestAnswered
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.work_events import AgentOutput
from swarm_tui.model.results import State
from swarm_tui.model.spec import WATCH_SOURCE, MngrSettings, SweepSpec
from swarm_tui.watch.agents import WatchedAgent
from swarm_tui.watch.observer import WatchJournal, state_event


def folder_of(path: Path) -> SweepFolder:
    folder = SweepFolder(path / "watch")
    spec = SweepSpec(
        sweep="watch", repository="", base="", created_at=1.0, source=WATCH_SOURCE, mngr=MngrSettings(path="mngr")
    )
    folder.write_spec(spec)
    return folder


def agent(name: str, state: str = "WAITING", **more: object) -> WatchedAgent:
    address = AgentAddress(name, f"agent-{name}", f"mngr-{name}", f"/agents/{name}", f"/copies/{name}")
    known = WatchedAgent(address, state, "claude", (("project", "shop"), ("run", "7")), f"mngr/{name}", 100.0, 150.0)
    return replace(known, **more)  # type: ignore[arg-type]


def journal_of(path: Path, *agents: WatchedAgent) -> WatchJournal:
    journal = WatchJournal(folder_of(path), EngineStarted(pid=1), clock=lambda: 1_000.0)
    for each in agents:
        journal.add(each)
    journal.write_anew()
    return journal


def test_agents_have_state_times_and_labels(tmp_path: Path) -> None:
    journal_of(
        tmp_path, agent("busy", "RUNNING"), agent("idle"), agent("over", "DONE"), agent("off", "STOPPED")
    ).close()
    records = open_sweep(SweepFolder(tmp_path / "watch")).state.records
    states = {name: record.state for name, record in records.items()}
    assert states == {
        "busy": State.RUNNING, "idle": State.WAITING, "over": State.STOPPED, "off": State.STOPPED,
    }  # fmt: skip
    assert records["over"].reason == "its program exited"
    assert (records["idle"].launched_at, records["idle"].since) == (100.0, 150.0)
    assert records["idle"].traits == ("type claude", "project shop", "label run=7")
    assert records["idle"].branch == "mngr/idle"


def test_removed_agent_leaves_others_unchanged(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, agent("goes"), agent("stays", "RUNNING"))
    opened = open_sweep(SweepFolder(tmp_path / "watch"))
    journal.record(AgentOutput(test="stays", line="first"))
    journal.record(AgentOutput(test="stays", line="second"))
    journal.record(RequestAnswered(request="asked"))
    opened.read_new_events()
    before = opened.state.records["stays"]
    journal.forget("goes")
    journal.write_anew()
    assert opened.read_new_events()
    assert list(opened.state.records) == ["stays"]
    after = opened.state.records["stays"]
    assert (after.last_line, after.since, after.launched_at) == ("second", before.since, before.launched_at)
    assert "asked" in opened.state.answers
    assert not opened.state.lost_events
    journal.record(state_event(agent("stays", "WAITING")))
    opened.read_new_events()
    assert opened.state.records["stays"].state is State.WAITING
    journal.close()


def test_journal_state_equals_fold_of_readers(tmp_path: Path) -> None:
    journal = journal_of(tmp_path, agent("one"))
    for number in range(500):
        journal.record(AgentOutput(test="one", line=f"line {number}"))
    journal.append_all(journal.add(agent("two")))
    journal.write_anew()
    journal.append_all(journal.add(agent("three", "RUNNING")))
    opened = open_sweep(SweepFolder(tmp_path / "watch"))
    assert opened.state.records == journal.state.records
    assert opened.state.records["one"].last_line == "line 499"
    assert (tmp_path / "watch" / "events.jsonl").read_bytes().count(b"line 1") == 0
    journal.close()


@given(name=st.text(min_size=1, max_size=300), label=st.text(max_size=300), branch=st.text(max_size=50))
def test_journal_accepts_any_agent_name(name: str, label: str, branch: str) -> None:
    with TemporaryDirectory() as place:
        hostile = agent(name, labels=((label, label),), branch=branch)
        journal_of(Path(place), hostile).close()
        state = open_sweep(SweepFolder(Path(place) / "watch")).state
        assert len(state.records) == 1
        assert not state.broken_lines

"""Without the room, every event is shown once, with a forecast on a terminal, and why an engine has died."""

from __future__ import annotations

import io
import json
import time
from collections import Counter, deque
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live

from swarm_tui.cli.follow import BarDisplay, NewLogLines, engine_error, exit_code_of, follow_sweep, show_until_end
from swarm_tui.cli.status import sweep_state
from swarm_tui.integrator.events import Integrated, IntegratorOutput
from swarm_tui.journal.append import EngineLock, JournalWriter
from swarm_tui.journal.events import EngineEnded, EngineStarted, Launched, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import OpenedSweep, open_sweep
from swarm_tui.journal.work_events import AgentOutput
from swarm_tui.model.event import INTEGRATOR_KEY, LogLine
from swarm_tui.model.results import Result
from swarm_tui.model.spec import MngrSettings, SweepSpec


def line(text: str, at: float = 1.0) -> LogLine:
    return LogLine(at, "info", text)


def test_each_line_is_told_once_also_while_a_clock_that_was_set_back_stands_still() -> None:
    log = deque([line("a"), line("b")], maxlen=3)
    new_lines = NewLogLines(None)
    assert [each.text for each in new_lines.read(log)] == ["a", "b"]
    assert new_lines.read(log) == []
    log.append(line("c"))
    assert [each.text for each in new_lines.read(log)] == ["c"]
    log.extend([line("d"), line("e"), line("f"), line("g")])
    assert [each.text for each in new_lines.read(log)] == ["e", "f", "g"], "what is kept, when more was missed"


def test_what_was_known_before_is_not_told_again() -> None:
    log = deque([line("launched"), line("stopped")])
    new_lines = NewLogLines(log[-1])
    log.append(line("resumed"))
    assert [each.text for each in new_lines.read(log)] == ["resumed"]


def test_an_engine_without_last_words_had_no_room_for_them() -> None:
    assert engine_error("no tmux", Path("/s"), 0) == "the engine exited: no tmux"
    assert engine_error("", Path("/s"), 0) == "the engine died: the disk of /s is full"
    assert engine_error("", Path("/s"), 1 << 30) == "the engine died"


def test_a_terminal_shows_how_long_the_rest_will_take(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "20261118-061200")
    folder.write_spec(
        SweepSpec(sweep=folder.name, repository="/r", base="abc", created_at=1.0, mngr=MngrSettings(path="mngr"))
    )
    times = iter([time.time() - 120.0] * 9 + [time.time()] * 3)
    with JournalWriter(folder.events, clock=lambda: next(times)) as journal:
        journal.append(EngineStarted(pid=1, machine="m", version="1", slots=1))
        for test in "abcde":
            journal.append(Queued(test=test))
        for test in "abc":
            journal.append(Launched(test=test))
        for test in "abc":
            journal.append(Pulled(test=test, result=Result.CLEAN))
    terminal = io.StringIO()
    with Live(console=Console(file=terminal, force_terminal=True, width=100), auto_refresh=False) as live:
        BarDisplay(live).show(open_sweep(folder))
    assert " · ~04:00 left · slots 0/1" in terminal.getvalue()


def test_a_sweep_is_shown_until_another_engine_may_begin(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "20261118-061200")
    folder.write_spec(
        SweepSpec(sweep=folder.name, repository="/r", base="abc", created_at=1.0, mngr=MngrSettings(path="mngr"))
    )
    lock = EngineLock(folder.lock)
    lock.acquire()
    with JournalWriter(folder.events) as journal:
        journal.append(EngineStarted(pid=1, machine="m", version="1", slots=1))
        journal.append(EngineEnded(why="finished"))
    shown = 0

    def show(opened: OpenedSweep) -> None:
        nonlocal shown
        shown += 1
        assert sweep_state(opened) == "finished", "the last event was read, though the engine holds its lock"
        if shown == 3:
            lock.release()

    show_until_end(open_sweep(folder), show)
    assert shown == 3


def test_open_results_make_exit_code_1() -> None:
    assert exit_code_of(Counter({"clean": 2, "impl_fix": 1, "skipped": 1}), is_whole=True) == 0
    assert exit_code_of(Counter({"clean": 2}), is_whole=False) == 1
    for result in ("error", "blocked", "unresolved", "claimed"):
        assert exit_code_of(Counter({"clean": 2, result: 1}), is_whole=True) == 1


def test_sweep_with_files_that_cannot_be_collected_exits_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = []
    for number, left_out in enumerate([(), ("tests/test_a.py cannot be collected: SyntaxError",)]):
        folder = SweepFolder(tmp_path / f"20261118-06120{number}")
        spec = SweepSpec(
            sweep=folder.name,
            repository="/r",
            base="abc",
            created_at=1.0,
            left_out=left_out,
            mngr=MngrSettings(path="mngr"),
        )
        folder.write_spec(spec)
        with JournalWriter(folder.events) as journal:
            journal.append(EngineStarted(pid=1, machine="m", version="1", slots=1))
            journal.append(EngineEnded(why="finished"))
        codes.append(follow_sweep(folder))
    assert codes == [0, 1]
    assert "no agent: tests/test_a.py cannot be collected: SyntaxError" in capsys.readouterr().err


def test_silent_integrator_is_not_quoted_and_effects_are_printed_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = SweepFolder(tmp_path / "20261118-061200")
    folder.write_spec(
        SweepSpec(sweep=folder.name, repository="/r", base="abc", created_at=1.0, mngr=MngrSettings(path="mngr"))
    )
    folder.integrator.mkdir()
    effect = {"commit": "a" * 40, "title": "Add a case", "turned_green": ["t.py::a"], "is_measured": True}
    (folder.integrator / "integrator_outcome.json").write_text(json.dumps({"ranking": [effect]}))
    with JournalWriter(folder.events) as journal:
        journal.append(EngineStarted(pid=1, machine="m", version="1", slots=1))
        journal.append(AgentOutput(test=INTEGRATOR_KEY, line=""))
        journal.append(IntegratorOutput(line=""))
        journal.append(AgentOutput(test=INTEGRATOR_KEY, line="measures 1 fix"))
        journal.append(Integrated(branch="b", tip="c", fixes=1))
        journal.append(EngineEnded(why="finished"))
    follow_sweep(folder)
    lines = capsys.readouterr().err.splitlines()
    (quoted,) = (line for line in lines if "the integrator:" in line)
    assert quoted.endswith("the integrator: measures 1 fix")
    assert "fix: Add a case · turns 1 test green (measured)" in lines

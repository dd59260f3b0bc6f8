"""A user who returns to a sweep sees what has changed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.failures.events import AlertRaised
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import AgentStateChanged, Pulled
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.user_files import LastVisit, read_seen, write_seen
from swarm_tui.journal.work_events import TryFinished
from swarm_tui.model.results import Result, State
from swarm_tui.money.events import UsageReported
from swarm_tui.room.notifications import LastVisitSummary
from swarm_tui.room.store import Store
from tests.room.scenes import fixed_sweep
from tests.terminal import ProgramTerminal


@pytest.fixture
def folder() -> Iterator[SweepFolder]:
    with fixed_sweep(125) as sweep:
        yield sweep


def loaded(folder: SweepFolder, now: float = 2e9) -> Store:
    store = Store(folder, clock=lambda: now)
    while store.read_new_events():
        pass
    return store


def go_on(folder: SweepFolder) -> None:
    """Let one test ask a question, and five tests fail with the same error."""
    state = open_sweep(folder).state
    running = [record.test for record in state.tests() if record.state is State.RUNNING]
    with JournalWriter(folder.events, last_seq=state.last_seq, last_at=state.last_at) as journal:
        journal.append(AgentStateChanged(test=running[0], state=State.WAITING, question="Which port?"))
        for test in running[1:6]:
            journal.append(TryFinished(test=test, number=90, passed=False, failure="OSError: no disk left"))
            journal.append(Pulled(test=test, result=Result.ERROR, reason="no disk left in /tmp/a"))
            journal.append(UsageReported(test=test, dollars=9.0, tokens=1))
        journal.append(AlertRaised(cause="OSError: no disk left", tests=tuple(running[1:6])))


async def test_first_visit_shows_no_changes(folder: SweepFolder, tmp_path: Path) -> None:
    absence = LastVisitSummary(loaded(folder), tmp_path)
    await absence.read()
    assert (absence.line, absence.why_nothing()) == ("", "you have not opened this sweep before")
    assert absence.is_due()
    absence.keep()
    assert read_seen(tmp_path, folder) == (open_sweep(folder).state.last_seq, 2e9)
    assert not absence.is_due()


async def test_second_visit_shows_changes_in_one_line(folder: SweepFolder, tmp_path: Path) -> None:
    seen = LastVisit(open_sweep(folder).state.last_seq, 1.9e9)
    write_seen(tmp_path, folder, seen)
    unchanged = LastVisitSummary(loaded(folder), tmp_path)
    await unchanged.read()
    assert unchanged.why_nothing() == "nothing has changed since your last visit"
    go_on(folder)
    absence = LastVisitSummary(loaded(folder), tmp_path)
    await absence.read()
    assert absence.why_nothing() == ""
    assert re.fullmatch(r"since [\d: -]+: 5 done \(5 errors\), 1 question, 1 pattern of 5, \$\d+\.\d\d", absence.line)


async def test_position_is_not_saved_without_state_folder(folder: SweepFolder) -> None:
    absence = LastVisitSummary(loaded(folder), None)
    await absence.read()
    assert not absence.is_due()
    absence.keep()


async def test_failed_save_is_not_repeated(folder: SweepFolder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    absence = LastVisitSummary(loaded(folder), tmp_path / "file")
    assert absence.is_due()
    absence.keep()
    assert not absence.is_due()


@pytest.mark.slow
def test_user_returns_and_opens_changed_test(folder: SweepFolder, tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "XDG_STATE_HOME": f"{tmp_path}/state", "XDG_CONFIG_HOME": f"{tmp_path}/c"}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2])
    command = [sys.executable, "-m", "swarm_tui", "open", str(folder.root)]
    with ProgramTerminal(command, environment=environment, folder=tmp_path) as terminal:
        terminal.wait_until(lambda screen: screen.has_list("Tests 125"))
        terminal.press("S")
        terminal.wait_for("you have not opened this sweep before")
        terminal.press("q")
        assert terminal.wait_for_end() == 0
    go_on(folder)
    with ProgramTerminal(command, environment=environment, folder=tmp_path) as terminal:
        terminal.wait_for(re.compile(r"since [\d: A-Za-z-]+: 5 done \(5 errors\), 1 question, 1 pattern of 5"))
        terminal.press("S")
        terminal.wait_until(lambda screen: screen.has("5 with the same cause") and screen.has("Which port?"))
        terminal.press("Enter")
        terminal.wait_until(lambda screen: screen.has_list("Patterns"))
        terminal.press("q", "S", "j", "Enter")
        terminal.wait_for("Which port?")
        terminal.press("q")
        assert terminal.wait_for_end() == 0

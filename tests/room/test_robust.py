"""A crash, an engine that dies, notifications, the splash screen, the page of the first run."""

import os
from pathlib import Path

import pytest
from textual.worker import WorkerFailed

from swarm_tui.journal.events import AgentStateChanged, EngineEnded, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.state import SweepState
from swarm_tui.model.results import State
from swarm_tui.room.app import RoomApp, is_due, write_crash_report
from swarm_tui.room.first_run import BEGINNINGS, FirstRunApp
from swarm_tui.room.notifications import TerminalNotifications
from swarm_tui.room.settings import Settings
from swarm_tui.room.splash import draw_splash
from swarm_tui.room.store import Store
from swarm_tui.room.streams import LogScreen
from swarm_tui.simulate.feeder import main as feed
from tests.room.scenes import NOW, Scene, fixed_sweep, room_on, shows, text_on_screen
from tests.waiting import eventually


class BrokenStore(Store):
    """A store that raises an error while the room is open."""

    def check_engine(self) -> bool:
        if self.is_loaded:
            raise RuntimeError("a part of the room is broken \x1b[31m")
        return super().check_engine()


async def stay_in(app: RoomApp) -> None:
    async with app.run_test():
        await eventually(lambda: not app.is_running, "the end of the room")


async def test_crash_writes_report_without_agent_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with fixed_sweep(5) as folder:
        store = BrokenStore(folder)
        app = RoomApp(store, Settings(notify="none"))
        with pytest.raises(WorkerFailed, match="a part of the room"):
            await stay_in(app)
    (report,) = (tmp_path / "swarm-tui" / "crashes").iterdir()
    text = report.read_text()
    assert "a part of the room is broken" in text
    assert "\x1b" not in text
    assert app.return_code == 1


def test_unwritable_crash_report_shows_reason(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert "boom" in write_crash_report(blocked, "Traceback\nRuntimeError: boom\n")


async def test_dead_engine_is_reported_with_resume_key(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "s")
    feed([str(folder.root), "--tests", "20", "--ahead", "0.5", "--seconds", "0", "--at", str(NOW)])
    async with room_on(folder, Scene("dead")) as (app, pilot):
        assert "engine gone" in text_on_screen(app)
        assert "R resumes" in text_on_screen(app)
        await pilot.press("greater_than_sign")
        assert "press R to resume" in text_on_screen(app)
        assert app.room_screen is not None
        resume = next(action for action in app.room_screen.actions if action.id == "sweep.resume")
        assert resume.why_not() == ""
        await pilot.press("6")
        assert "1 R resumes" in text_on_screen(app)


async def test_failed_action_has_details_in_log(tmp_path: Path) -> None:
    with fixed_sweep(5) as folder:
        folder.requests.mkdir()
        async with room_on(folder, Scene("refused")) as (app, pilot):
            await pilot.press("greater_than_sign")
            assert "cannot be opened" in text_on_screen(app)
            await pilot.press("6")
            await shows(pilot, "cannot request slots")
            assert isinstance(app.room_screen, LogScreen)


def test_bell_rings_for_waiting_agent_and_at_end() -> None:
    written: list[str] = []
    notices = TerminalNotifications(written.append, "bell", "20261118\x1b[2J")
    state = SweepState().apply_all([Queued(test="a"), Queued(test="b")])
    notices.update(state)
    assert "\x07" not in [text for text in written if not text.startswith("\x1b]2;")]
    state.apply(AgentStateChanged(test="a", state=State.WAITING))
    notices.update(state)
    assert written.count("\x07") == 1
    notices.update(state)
    state.apply(EngineEnded())
    notices.update(state)
    notices.update(state)
    assert written.count("\x07") == 2
    titles = [text for text in written if text.startswith("\x1b]2;")]
    assert titles == ["\x1b]2;swarm 20261118 0/2\x07", "\x1b]2;swarm 20261118 0/2 ?1\x07"]


def test_notifications_can_use_desktop_or_be_off() -> None:
    for kind, expected in (("desktop", "\x1b]9;swarm-tui s: 1 test waits for an answer\x07"), ("none", None)):
        written: list[str] = []
        notices = TerminalNotifications(written.append, kind, "s")
        state = SweepState().apply_all([Queued(test="a")])
        notices.update(state)
        state.apply(AgentStateChanged(test="a", state=State.WAITING))
        notices.update(state)
        assert [text for text in written if not text.startswith("\x1b]2;")] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("collections", "since_key", "expected"),
    [(9, 5.0, False), (10, 0.5, False), (10, 1.0, True), (299, 0.0, False), (300, 0.0, True)],
)
def test_garbage_collection_waits_for_pause_with_limit(collections: int, since_key: float, expected: bool) -> None:
    assert is_due(collections, since_key) is expected


@pytest.mark.parametrize(("width", "height"), [(80, 24), (20, 8), (5, 2), (200, 60)])
@pytest.mark.parametrize("is_ascii", [True, False])
@pytest.mark.parametrize("name", ["20261118\x1b[2J" * 20, ""])
def test_splash_fits(width: int, height: int, is_ascii: bool, name: str) -> None:
    lines = draw_splash(name, width, height, is_ascii=is_ascii).split("\r\n")
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert not is_ascii or "".join(lines).isascii()
    assert "\x1b" not in "".join(lines)


def is_all_shown(text: str) -> bool:
    return all(beginning.command in text and beginning.text in text for beginning in BEGINNINGS)


async def test_first_run_page_returns_chosen_command() -> None:
    app = FirstRunApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await eventually(lambda: is_all_shown(text_on_screen(app)), "the whole page")
        await pilot.press("d")
    assert app.return_value == ["demo"]


async def test_first_run_page_shows_command_with_arguments() -> None:
    app = FirstRunApp(is_ascii=True)
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("down", "down", "down", "enter")
        await pilot.pause()
        assert app.is_running
        assert text_on_screen(app).isascii()
        await pilot.press("q")
    assert app.return_value == []


def test_textual_settings_precede_import() -> None:
    assert os.environ["TEXTUAL_ANIMATIONS"] == "none"
    assert int(os.environ["TEXTUAL_FPS"]) >= 120

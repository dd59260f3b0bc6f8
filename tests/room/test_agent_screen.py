"""Screen 2 as a user operates it: tabs, transcript, files, messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from swarm_tui.room.agent.terminal import RecordingScreen
from swarm_tui.room.dialog import RefusedScreen
from swarm_tui.room.message import MessageScreen
from swarm_tui.room.streams import TailScreen
from tests.room.agent_sweeps import AgentSweep, agent_screen, make_sweep, room_on
from tests.room.scenes import press, resize, shows, text_on_screen
from tests.transcripts.records import call, result, step
from tests.waiting import eventually


@pytest.fixture
def sweep(tmp_path: Path) -> AgentSweep:
    return make_sweep(tmp_path)


def write(path: Path, *records: bytes) -> None:
    with path.open("ab") as file:
        file.write(b"".join(records))


async def test_t_opens_transcript_end_and_q_returns(sweep: AgentSweep) -> None:
    write(sweep.transcript("one"), *(step(f"message {n}") for n in range(200)))
    async with room_on(sweep) as (app, pilot):
        await pilot.press("t")
        text = await shows(pilot, "message 199")
        assert "following · 100 %" in text
        assert "tests/test_a.py::test_one" in text
        await pilot.press("q")
        assert app.room_screen is not None
        assert (app.room_screen.NAME, app.current_test) == ("sweep", "tests/test_a.py::test_one")


async def test_new_records_are_counted_while_scrolled_up(sweep: AgentSweep) -> None:
    path = sweep.transcript("one")
    write(path, *(step(f"message {n}") for n in range(200)))
    async with room_on(sweep) as (app, pilot):
        await pilot.press("t")
        await shows(pilot, "message 199")
        write(path, step("message 200"))
        await shows(pilot, "message 200")
        await pilot.press("pageup")
        assert "paused" in text_on_screen(app)
        write(path, *(step(f"later {n}") for n in range(38)))
        text = await shows(pilot, "paused · +38 new")
        assert "later" not in text
        await pilot.press("F")
        text = await shows(pilot, "later 37")
        assert "following" in text


async def test_e_goes_to_errors(sweep: AgentSweep) -> None:
    path = sweep.transcript("one")
    write(path, *(result("E   KeyError: 7" if n in (40, 150) else f"fine {n}") for n in range(200)))
    async with room_on(sweep) as (_, pilot):
        await pilot.press("t")
        await shows(pilot, "fine 199")
        await pilot.press("E")
        assert "fine 149" in await shows(pilot, "KeyError")
        await pilot.press("E")
        assert "fine 39" in await shows(pilot, "fine 41")
        await pilot.press("E")
        await shows(pilot, "no earlier error")
        await pilot.press("e")
        await shows(pilot, "fine 149")
        await pilot.press("!")
        text = await shows(pilot, "2 match errors only")
        assert "fine" not in text


async def test_n_goes_to_filter_match_among_all_entries(sweep: AgentSweep) -> None:
    write(sweep.transcript("one"), *(step(f"word{n} of many") for n in range(300)))
    async with room_on(sweep) as (_, pilot):
        await pilot.press("t", "slash", *"word77")
        text = await shows(pilot, "1 match /word77")
        assert "word78" not in text
        await pilot.press("enter", "N")
        text = await shows(pilot, "word78")
        assert "word76" in text
        await pilot.press("slash", *"!word", "enter")
        await shows(pilot, "0 match /!word")
        await pilot.press("escape")
        await shows(pilot, "word299")


async def test_escape_from_filter_restores_previous_page(sweep: AgentSweep) -> None:
    write(sweep.transcript("one"), *(step(f"word{n}\nof many\n") for n in range(300)))
    async with room_on(sweep) as (app, pilot):
        await pilot.press("t", "pageup", "pageup", "up", "up")
        before = text_on_screen(app).splitlines()[4:-1]
        await pilot.press("slash", *"word7")
        await shows(pilot, "11 match /word7")
        await pilot.press("escape")
        await pilot.pause()
        assert text_on_screen(app).splitlines()[4:-1] == before


async def test_roles_and_density_can_be_changed(sweep: AgentSweep) -> None:
    write(sweep.transcript("one"), step("Do it", "user"), step("I do\nit\nso"), call("ls"), result("a\nb\nc\nd\ne\nf"))
    async with room_on(sweep) as (_, pilot):
        await pilot.press("t")
        text = await shows(pilot, "(+3 lines)")
        assert "Bash  ls" in text
        await pilot.press("minus")
        assert "I do … (+2 lines)" in await shows(pilot, "one line for each event")
        await pilot.press("plus", "plus")
        assert "(+" not in await shows(pilot, "everything")
        await pilot.press("f", "space", "enter")
        text = await shows(pilot, "without user")
        assert "Do it" not in text


async def test_enter_unfolds_and_folds_record(sweep: AgentSweep) -> None:
    write(sweep.transcript("one"), result("\n".join(f"line {n}" for n in range(12))))
    async with room_on(sweep) as (_, pilot):
        await pilot.press("t")
        await shows(pilot, "(+9 lines)")
        await pilot.press("enter")
        await shows(pilot, "line 11")
        await pilot.press("enter")
        await shows(pilot, "(+9 lines)")


async def test_agent_without_transcript_shows_tries(sweep: AgentSweep) -> None:
    async with room_on(sweep) as (_, pilot):
        await pilot.press("t")
        text = await shows(pilot, "writes no transcript")
        assert "assert 1 == 2" in text
        write(sweep.transcript("one"), step("now I write one"))
        await shows(pilot, "now I write one")


async def test_braces_go_to_next_and_previous_test(sweep: AgentSweep) -> None:
    for name in ("one", "two", "three"):
        write(sweep.transcript(name), step(f"I am {name}"))
    async with room_on(sweep) as (app, pilot):
        await pilot.press("t")
        await shows(pilot, "I am one")
        await pilot.press("right_curly_bracket")
        await shows(pilot, "I am three")
        await pilot.press("right_curly_bracket", "right_curly_bracket")
        await shows(pilot, "this is the last test")
        await shows(pilot, "I am two")
        await pilot.press("q")
        assert app.view.order[-1] == app.current_test == "tests/test_a.py::test_two"
        await pilot.press("t")
        await shows(pilot, "I am two")


async def test_finished_agent_shows_saved_screen(sweep: AgentSweep) -> None:
    (sweep.pulled("three") / "screen.txt").write_text("\x1b[31mits last\x1b[0m words\x1b]0;evil\x07\n")
    async with room_on(sweep) as (app, pilot):
        app.current_test = "tests/test_a.py::test_three"
        await pilot.press("2", "tab")
        text = await shows(pilot, "its last words")
        assert "when the agent finished" in text
        assert "evil" not in text


async def test_missing_tmux_server_is_reported_once(sweep: AgentSweep) -> None:
    async with room_on(sweep) as (app, pilot):
        await pilot.press("2", "tab")
        await shows(pilot, "does not exist any more")
        for _ in range(3):
            await press(pilot, "shift+tab", "tab")
            await eventually(
                lambda: all(worker.is_finished for worker in app.workers if worker.group == "peek"), "the capture"
            )
        told = [line for line in app.store.room_log if "cannot capture the screen" in line.text]
        assert len(told) == 1


async def test_tries_and_files_open_and_close(sweep: AgentSweep) -> None:
    (sweep.pulled("three") / "test_output").mkdir()
    (sweep.pulled("three") / "test_output" / "notes.txt").write_text("first line\n[red]second[/red]\n")
    async with room_on(sweep) as (app, pilot):
        app.current_test = "tests/test_a.py::test_three"
        await pilot.press("2", "shift+tab", "shift+tab")
        text = await shows(pilot, "test_output/notes.txt")
        assert "try 1 failed in 1.5 s" in text
        assert "All is well." in text
        await pilot.press("end", "enter")
        await shows(pilot, "[red]second[/red]")
        await pilot.press("q")
        await shows(pilot, "test_output/notes.txt")


async def test_recording_plays_pauses_changes_speed_and_seeks(sweep: AgentSweep) -> None:
    events = [[n * 1.0, "o", f"\x1b[32msecond {n}\x1b[0m\r\n"] for n in range(60)]
    lines = [json.dumps(line) for line in ({"version": 2, "width": 60, "height": 15}, *events)]
    (sweep.pulled("three") / "demo.cast").write_text("\n".join(lines))
    async with room_on(sweep) as (app, pilot):
        app.current_test = "tests/test_a.py::test_three"
        await pilot.press("2", "shift+tab", "shift+tab", "end", "enter")
        await shows(pilot, "second 0")
        assert isinstance(app.screen, RecordingScreen)
        await pilot.press("space")
        await shows(pilot, "paused")
        await pilot.press("right", "right")
        text = await shows(pilot, "second 10")
        assert "second 12" not in text
        await pilot.press("plus")
        await pilot.press("G")
        await shows(pilot, "second 59")
        await pilot.press("left", "g")
        assert "second 1\n" not in await shows(pilot, "second 0")
        await pilot.press("q")
        agent_screen(app)


@pytest.mark.parametrize(
    "content",
    [
        b"\x00\xff" * 5000,
        b"{" * 100_000,
        b"x" * 1_000_000,
        b"\x1b[2J\x1b]52;c;aGk=\x07[/]\n" * 50,
        b'{"type": "step"}\n',
    ],
    ids=["binary", "not JSON", "an endless line", "escape sequences", "empty records"],
)
async def test_room_survives_malformed_agent_files(sweep: AgentSweep, content: bytes) -> None:
    write(sweep.transcript("one"), content, b"\n", step("still there"))
    async with room_on(sweep) as (_, pilot):
        await pilot.press("t")
        text = await shows(pilot, "still there")
        assert "\x1b" not in text
        await pilot.press("pageup", "enter", "plus", "plus", "g", "G", "e", "E")
        await shows(pilot, "still there")


async def test_refused_message_stays_in_box_with_reason(sweep: AgentSweep) -> None:
    async with room_on(sweep) as (app, pilot):
        app.show_test("tests/test_a.py::test_two")
        await pilot.press("m")
        text = await shows(pilot, "Message to 1 agent")
        assert "Which one is right?" in text
        await pilot.press(*"first", "ctrl+j", *"second", "enter")
        await shows(pilot, "not sent: ", "first", "second")
        await pilot.press(*"qx3", "space")
        await shows(pilot, "secondqx3", "Message to 1 agent")
        assert isinstance(app.screen, MessageScreen)
        assert any("message not sent" in line.text for line in app.store.room_log)


async def test_several_receivers_are_confirmed_by_ctrl_s(sweep: AgentSweep) -> None:
    async with room_on(sweep) as (app, pilot):
        await pilot.press("asterisk", "m", *"first", "ctrl+j", *"second", "enter")
        await shows(pilot, "Send 2 lines, 12 characters, to 2 agents?")
        await pilot.press("enter", "enter")
        assert isinstance(app.screen, MessageScreen)
        await pilot.press("y")
        await shows(pilot, "secondy", "Enter continue")
        await pilot.press("enter", "escape")
        await shows(pilot, "secondy", "Enter continue")
        await pilot.press("escape")
        await shows(pilot, "nothing was sent")


async def test_unsent_message_is_kept_for_next_time(sweep: AgentSweep) -> None:
    async with room_on(sweep) as (app, pilot):
        app.show_test("tests/test_a.py::test_two")
        await pilot.press("m", *"half", "escape")
        await shows(pilot, "nothing was sent")
        await pilot.press("m", *"way")
        await shows(pilot, "halfway")
        assert isinstance(app.screen, MessageScreen)


async def test_message_without_receiver_is_refused_in_dialog(sweep: AgentSweep) -> None:
    async with room_on(sweep) as (app, pilot):
        app.show_test("tests/test_a.py::test_three")
        await pilot.press("m", *"stop it", "space", "enter")
        await shows(pilot, "Not available", "this test has no running or waiting agent")
        assert not app.view.marks.tests
        assert not app.drafts
        await pilot.press("escape")
        assert not isinstance(app.screen, RefusedScreen)


async def test_message_without_engine_and_mngr_reports_error(sweep: AgentSweep) -> None:
    async with room_on(sweep) as (app, pilot):
        await pilot.press("asterisk", "m")
        text = await shows(pilot, "Message to 2 agents")
        assert "1 of the marked ones have no running agent" in text
        await pilot.press(*"continue", "enter", "ctrl+s")
        await shows(pilot, "sent to 0 of 2")
        assert sum("message not sent" in line.text for line in app.store.room_log) == 2


async def test_unavailable_action_shows_reason(sweep: AgentSweep) -> None:
    async with room_on(sweep) as (app, pilot):
        app.show_test("tests/test_a.py::test_three")
        await pilot.press("a")
        await shows(pilot, "mngr knows no agent swarm-x-three any more")
        await pilot.press("i")
        await shows(pilot, "mngr knows no agent swarm-x-three any more")


@pytest.mark.parametrize("size", [(80, 24), (20, 6)])
async def test_agent_screen_draws_at_every_size(sweep: AgentSweep, size: tuple[int, int]) -> None:
    write(sweep.transcript("one"), *(step("words " * 30) + result("x\n" * 30) for _ in range(30)))
    async with room_on(sweep, size) as (app, pilot):
        await pilot.press("t", "pageup", "tab", "tab", "tab", "tab")
        await resize(pilot, 100, 30)
        await shows(pilot, "words words")
        agent_screen(app)


async def test_tail_merges_identical_lines(sweep: AgentSweep) -> None:
    for name in ("one", "two", "three"):
        write(sweep.transcript(name), step("fixture 'host' not found"), step(f"only {name} says this"))
    async with room_on(sweep) as (_, pilot):
        await pilot.press("7")
        text = await shows(pilot, "same line from 3 agents")
        assert "only two says this" in text
        write(sweep.transcript("two"), step("and something new", at="2026-11-18T07:00:00Z"))
        await shows(pilot, "and something new")
        await pilot.press("t")
        await shows(pilot, "tests/test_a.py::test_two")
        await pilot.press("q", "slash", *"only", "enter")
        await shows(pilot, "3 match /only")


async def test_tail_of_marked_agents_shows_only_them(sweep: AgentSweep) -> None:
    for name in ("one", "two", "three"):
        write(sweep.transcript(name), step(f"I am {name}"))
    async with room_on(sweep) as (app, pilot):
        app.show_test("tests/test_a.py::test_two")
        await pilot.press("space", "7")
        text = await shows(pilot, "Tail of 1 agent (marked)")
        assert "I am two" in text
        assert "I am one" not in text


async def test_empty_tail_shows_reason_and_finds_later_transcript(sweep: AgentSweep) -> None:
    async with room_on(sweep) as (_, pilot):
        await pilot.press("7")
        await shows(pilot, "no transcripts yet")
        write(sweep.transcript("two"), step("I am late"))
        await shows(pilot, "I am late")
        await pilot.press("slash", *"punctual", "enter")
        await shows(pilot, "nothing matches /punctual")
        await pilot.press("escape", "exclamation_mark")
        await shows(pilot, "no line with an error")


async def test_tail_cursor_stays_on_line_when_agent_starts(sweep: AgentSweep) -> None:
    write(sweep.transcript("two"), step("one line", at="2026-11-18T07:00:00Z"), step("last", at="2026-11-18T07:00:01Z"))
    async with room_on(sweep) as (app, pilot):
        await pilot.press("7")
        await shows(pilot, "one line")
        await press(pilot, "k")
        write(sweep.transcript("one"), step("earlier", at="2026-11-18T06:00:00Z"))
        await shows(pilot, "earlier")
        screen = app.screen
        assert isinstance(screen, TailScreen)
        current = screen.current()
        assert current is not None
        assert current.first.entry.text == "one line"

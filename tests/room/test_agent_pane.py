"""The terminal inside the room: keys as bytes, large output, pastes, exit of the program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from textual import events
from textual.app import App, ComposeResult

from swarm_tui.adapters.processes.terminal import TerminalProgram
from swarm_tui.room.agent.terminal import TerminalPane
from swarm_tui.room.colours import ThemeStyles
from swarm_tui.room.keys import bytes_of_key
from tests.waiting import eventually


class PaneApp(App[None]):
    """An app with only a pane."""

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self.words = words
        self.theme_styles = ThemeStyles(self, False)
        self.closed: list[bool] = []

    def compose(self) -> ComposeResult:
        yield TerminalPane(self.start)

    def start(self, rows: int, columns: int) -> TerminalProgram:
        return TerminalProgram(self.words, rows=rows, columns=columns, environment=dict(os.environ))

    def on_terminal_pane_closed(self, event: TerminalPane.Closed) -> None:
        self.closed.append(event.is_ended)

    def text(self) -> str:
        return "\n".join(strip.text.rstrip() for strip in self.screen._compositor.render_strips())


async def test_pane_sends_keys_and_pastes_and_shows_output(tmp_path: Path) -> None:
    app = PaneApp(["sh", "-c", f'read a; read b; echo "$a/$b" > {tmp_path}/heard; stty size; cat'])
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.press(*"typed", "enter")
        app.query_one(TerminalPane).post_message(events.Paste("pasted\x1b[201~ words\n"))
        await eventually(lambda: "12 60" in app.text(), "the size of the terminal")
        assert (tmp_path / "heard").read_text() == "typed/pasted words\n"
        await pilot.resize_terminal(80, 20)
        await pilot.press(*"wide", "enter")
        await eventually(lambda: app.text().count("wide") >= 2, "the echo")


async def test_pane_closes_during_endless_output() -> None:
    app = PaneApp(["yes", "a flood of words without an end"])
    async with app.run_test(size=(100, 30)) as pilot:
        await eventually(lambda: "a flood of words" in app.text(), "the flood")
        await pilot.press("ctrl+backslash")
        await eventually(lambda: app.closed, "the pane to close")
    assert app.closed == [False]


async def test_pane_reports_exit_of_program() -> None:
    app = PaneApp(["sh", "-c", "echo over; exit 3"])
    async with app.run_test():
        await eventually(lambda: app.closed, "the pane to close")
    assert app.closed == [True]


@pytest.mark.parametrize(
    ("key", "character", "expected"),
    [
        ("a", "a", b"a"),
        ("A", "A", b"A"),
        ("plus", "+", b"+"),
        ("é", "é", "é".encode()),
        ("enter", "\r", b"\r"),
        ("tab", "\t", b"\t"),
        ("backspace", "\x7f", b"\x7f"),
        ("escape", "\x1b", b"\x1b"),
        ("ctrl+c", "\x03", b"\x03"),
        ("ctrl+q", "\x11", b"\x11"),
        ("ctrl+z", "\x1a", b"\x1a"),
        ("up", None, b"\x1b[A"),
        ("ctrl+left", None, b"\x1b[1;5D"),
        ("shift+end", None, b"\x1b[1;2F"),
        ("pageup", None, b"\x1b[5~"),
        ("delete", None, b"\x1b[3~"),
        ("f1", None, b"\x1bOP"),
        ("f5", None, b"\x1b[15~"),
        ("alt+x", None, b"\x1bx"),
        ("shift+tab", None, b"\x1b[Z"),
        ("some_key_of_the_future", None, b""),
    ],
)
def test_keys_have_terminal_bytes(key: str, character: str | None, expected: bytes) -> None:
    assert bytes_of_key(key, character) == expected


def test_cursor_keys_follow_application_mode() -> None:
    assert bytes_of_key("up", None, has_application_cursor=True) == b"\x1bOA"

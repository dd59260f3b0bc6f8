"""The driver of programs on a terminal: its keys, its words for what is on the screen, and how a program ends."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import ProgramTerminal
from tests.waiting import until

PROGRAM = r"""
import sys, termios, tty
fruits, at = ["apple", "pear", "plum", "fig"], 0
before = termios.tcgetattr(0)
tty.setcbreak(0)
def draw():
    rows = [f"\x1b[7m{name:9}\x1b[m" if n == at else f"{name:9}" for n, name in enumerate(fruits)]
    lines = ["╭─ Fruits 4 ╮", *(f"│ {row} │" for row in rows), "╰───────────╯"]
    lines += ["╭─ Basket ──╮", "│ empty     │", "╰───────────╯"]
    sys.stdout.write("\x1b[2J\x1b[H" + "\r\n".join(lines)); sys.stdout.flush()
sys.stdout.write("\x1b[?1049h")
draw()
keys = ""
while not keys.endswith("q"):
    keys += sys.stdin.read(1)
    if keys.endswith("\x1b[B"):
        at += 1
        draw()
termios.tcsetattr(0, termios.TCSANOW, before)
sys.stdout.write("\x1b[?1049l")
sys.exit(3)
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[ProgramTerminal]:
    (tmp_path / "fruits.py").write_text(PROGRAM)
    with ProgramTerminal([sys.executable, "fruits.py"], folder=tmp_path, columns=40, rows=12) as opened:
        yield opened


def test_a_screen_is_read_by_its_lists_and_their_rows(terminal: ProgramTerminal) -> None:
    screen = terminal.wait_for("empty")
    assert screen.lists() == ("Fruits 4", "Basket")
    fruits = screen.list("Fruits")
    assert [row.text for row in fruits.rows] == ["apple", "pear", "plum", "fig"]
    assert fruits.row("apple").is_selected
    assert fruits.has("plum")
    assert not fruits.has("empty")
    assert screen.list("Basket").selected is None
    with pytest.raises(AssertionError, match="no list 'Nuts', only"):
        screen.list("Nuts")
    with pytest.raises(AssertionError, match="no row of 'Fruits 4' has 'kiwi'"):
        fruits.row("kiwi")


def test_keys_are_pressed_and_their_effect_is_waited_for(terminal: ProgramTerminal) -> None:
    terminal.wait_for(re.compile(r"Fruits \d"))
    terminal.press("Down", "Down")
    terminal.wait_until(lambda screen: screen.has_list("Fruits") and screen.list("Fruits").row("plum").is_selected)
    with pytest.raises(AssertionError, match="'hello' is no key"):
        terminal.press("hello")
    with pytest.raises(AssertionError, match=r"waited in vain for 'nuts': 0.1 s have passed\n.*Fruits"):
        terminal.wait_for("nuts", seconds=0.1)


def test_a_program_that_ends_says_how(terminal: ProgramTerminal) -> None:
    terminal.wait_for("empty")
    assert terminal.has_own_screen
    terminal.type("q")
    assert terminal.wait_for_end() == 3
    assert not terminal.has_own_screen
    with pytest.raises(AssertionError, match="the program has ended"):
        terminal.wait_for("nuts")


def test_a_window_that_is_closed_ends_its_program(terminal: ProgramTerminal) -> None:
    terminal.wait_for("empty")
    terminal.close_window()
    until(terminal.has_ended, "the end of the program")


def test_another_size_is_that_of_the_screen_too(terminal: ProgramTerminal) -> None:
    terminal.wait_for("empty")
    terminal.resize(60, 20)
    assert len(terminal.screen.lines) == 20

"""What a person does in the inbox, at a terminal: a story for each key."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.terminal import ProgramTerminal

pytestmark = pytest.mark.slow

MANY = ("--tests", "600", "--ahead", "0.6", "--rate", "0.5", "--seed", "4")


@contextlib.contextmanager
def inbox_of(folder: Path, *words: str) -> Iterator[ProgramTerminal]:
    """Open the inbox of a simulated sweep, in an empty folder and with a home of its own."""
    environment = {
        "HOME": str(folder),
        "XDG_STATE_HOME": f"{folder}/state",
        "XDG_CONFIG_HOME": f"{folder}/config",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-m", "swarm_tui", "simulate", *words]
    with ProgramTerminal(command, environment=environment, folder=folder) as terminal:
        terminal.wait_until(lambda screen: screen.has_list("Tests "))
        terminal.press("5")
        terminal.wait_until(lambda screen: screen.has_list("Inbox "))
        yield terminal


@pytest.fixture(scope="module")
def one_terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProgramTerminal]:
    with inbox_of(tmp_path_factory.mktemp("inbox"), *MANY) as terminal:
        yield terminal


@pytest.fixture
def terminal(one_terminal: ProgramTerminal) -> ProgramTerminal:
    """Return the terminal with the whole inbox in it, the cursor on its first row."""
    if not one_terminal.screen.has_list("Inbox "):
        one_terminal.press("5")
        one_terminal.wait_until(lambda screen: screen.has_list("Inbox "))
    if one_terminal.screen.has("match /"):
        one_terminal.press("Escape")
        one_terminal.wait_until_gone("match /")
    one_terminal.press("g")
    return one_terminal


def filter_by(terminal: ProgramTerminal, words: str) -> None:
    terminal.press("/")
    terminal.type(f"{words}\r")
    terminal.wait_until(lambda screen: screen.has(f"match /{words}"))


def test_one_is_answered_and_the_list_goes_on(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "fetch")
    terminal.press("y")
    terminal.wait_for("answer 1 agent: done")


def test_an_opened_row_is_answered_by_digits(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "build/cache")
    terminal.press("Enter")
    terminal.wait_for("Esc back")
    terminal.press("9")
    terminal.wait_for("it has 2 options")
    terminal.press("2")
    terminal.wait_for("answer 1 agent: done")


def test_a_question_wants_more_than_yes_and_groups_are_walked_through(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "disagree")
    terminal.press("y")
    terminal.wait_for("it wants more than yes or no")
    terminal.press("A")
    terminal.wait_for("Answer all · 1 of ")
    terminal.press("y")
    terminal.wait_for("that is none of the answers")
    terminal.press("1")
    # The last group is answered: the dialog goes by itself.
    terminal.wait_for("1 agent answered")
    terminal.wait_until_gone("Answer all ·")


def test_words_are_written_below_what_is_asked(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "archive")
    terminal.wait_for("m writes the answer")
    terminal.press("m")
    terminal.wait_for("From where may I fetch the sample archive?")
    # Words for one agent are sent by one Enter.
    terminal.type("From the shelf.\r")
    terminal.wait_for("answer 1 agent: done")


def test_later_goes_to_the_end_and_comes_back(terminal: ProgramTerminal) -> None:
    before = terminal.screen.list("Inbox ").rows[0].text
    terminal.press("l")
    terminal.wait_until(lambda screen: screen.list("Inbox ").rows[0].text != before)
    terminal.press("G")
    terminal.wait_until(lambda screen: (row := screen.list("Inbox ").selected) is not None and row.has("later"))
    terminal.press("l")
    terminal.wait_for("later: back in its place")


def test_a_rule_is_shown_before_it_is_made_and_taken_back(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "fetch")
    terminal.press("r")
    terminal.wait_for("a command that begins with `git fetch`")
    terminal.press("3")
    terminal.wait_for("Always yes, until this sweep ends?")
    terminal.press("y")
    terminal.wait_for("rule r1")
    terminal.press("G")
    terminal.wait_for("takes it back")
    terminal.press("u")
    terminal.wait_until_gone("rule r1  ")


def test_what_has_ended_can_only_be_read(tmp_path: Path) -> None:
    with inbox_of(tmp_path, "--tests", "60", "--ahead", "0.8", "--seconds", "0", "--seed", "4") as terminal:
        terminal.press("A")
        terminal.wait_for(re.compile(r"answer all: (the engine of this sweep is gone|the sweep is over)"))
        terminal.press("y")
        terminal.wait_for(re.compile(r"yes: .*(gone|over|words do not help)"))


def test_it_works_in_every_size(terminal: ProgramTerminal) -> None:
    for columns, rows in ((40, 12), (80, 24), (200, 60)):
        terminal.resize(columns, rows)
        terminal.wait_until(lambda screen, rows=rows: len(screen.lines) == rows and screen.has_list("Inbox "))  # type: ignore[misc]
        terminal.press("G", "g", "c")
        terminal.wait_for("copied as Markdown")

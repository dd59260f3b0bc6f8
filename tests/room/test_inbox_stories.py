"""User stories in the inbox, in a real terminal: one for each key."""

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
    """Open the inbox of a simulated sweep, in an empty folder and with a separate home."""
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
    """Return the terminal with the whole inbox, the cursor on its first row."""
    if not one_terminal.screen.has_list("Inbox "):
        one_terminal.press("5")
        one_terminal.wait_until(lambda screen: screen.has_list("Inbox "))
    if one_terminal.screen.has("match /"):
        one_terminal.press("Escape")
        one_terminal.wait_until_gone("match /")
    # The reply to this key comes after everything that the previous test has started, and replaces its message.
    one_terminal.press("g", "c")
    one_terminal.wait_for("copied as Markdown")
    return one_terminal


def filter_by(terminal: ProgramTerminal, words: str) -> None:
    terminal.press("/")
    terminal.type(f"{words}\r")
    terminal.wait_until(lambda screen: screen.has(f"match /{words}"))


def test_y_answers_one_and_list_continues(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "fetch")
    terminal.press("y")
    terminal.wait_for("answer 1 agent: done")


def test_digits_answer_items_of_open_group(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "build/cache")
    terminal.press("Enter")
    terminal.wait_for("Esc back")
    terminal.press("9")
    terminal.wait_for("this item has 2 options")
    terminal.press("2")
    terminal.wait_for("answer 1 agent: done")


def test_refused_answer_stays_in_text_box(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "disagree")
    terminal.press("m")
    terminal.wait_for("Answer to 1 agent")
    terminal.type("1,2\r")
    terminal.wait_for("choose only one option, 1 to 2")
    terminal.type("3q:x7")
    terminal.wait_for("1,23q:x7")
    terminal.press("Escape")
    terminal.wait_for("nothing was answered")
    terminal.press("m")
    terminal.wait_for("1,23q:x7")
    terminal.press("Escape")
    terminal.wait_until_gone("Answer to 1 agent")


def test_yes_does_not_answer_question_with_options(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "disagree")
    terminal.wait_for("then choose by number")
    terminal.press("y")
    terminal.wait_for("yes or no does not answer this")
    terminal.press("A")
    terminal.wait_for("Answer all")
    terminal.press("y")
    terminal.wait_for("not one of the options")
    terminal.press("1")
    terminal.wait_for("1 agent answered")
    terminal.wait_until_gone("Answer all")


def test_answer_box_shows_question(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "archive")
    terminal.wait_for("m write an answer")
    terminal.press("m")
    terminal.wait_for("From where may I fetch the sample archive?")
    # A text for one agent is sent by one Enter.
    terminal.type("From the shelf.\r")
    terminal.wait_for("answer 1 agent: done")


def test_later_defers_item_and_undoes_it(terminal: ProgramTerminal) -> None:
    before = terminal.screen.list("Inbox ").rows[0].text
    terminal.press("l")
    terminal.wait_until(lambda screen: screen.list("Inbox ").rows[0].text != before)
    terminal.press("G")
    terminal.wait_until(lambda screen: (row := screen.list("Inbox ").selected) is not None and row.has("later"))
    terminal.press("l")
    terminal.wait_for("later: no longer deferred")


def test_rule_is_confirmed_added_and_removed(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "fetch")
    terminal.press("r")
    terminal.wait_for("commands that begin with `git fetch`")
    terminal.press("3")
    terminal.wait_for("Always answer yes, until this sweep ends?")
    terminal.press("y")
    terminal.wait_for("rule r1")
    terminal.press("G")
    terminal.wait_for("remove this rule")
    terminal.press("u")
    terminal.wait_until_gone("rule r1  ")


def test_finished_sweep_is_read_only(tmp_path: Path) -> None:
    with inbox_of(tmp_path, "--tests", "60", "--ahead", "0.8", "--seconds", "0", "--seed", "4") as terminal:
        terminal.press("A")
        terminal.wait_for(re.compile(r"answer all: (the engine of this sweep is not running|the sweep has finished)"))
        terminal.press("y")
        terminal.wait_for(re.compile(r"yes: .*(not running|finished|needs a text)"))


def test_inbox_works_at_every_size(terminal: ProgramTerminal) -> None:
    for columns, rows in ((40, 12), (80, 24), (200, 60)):
        terminal.resize(columns, rows)
        terminal.wait_until(lambda screen, rows=rows: len(screen.lines) == rows and screen.has_list("Inbox "))  # type: ignore[misc]
        terminal.press("G", "g", "c")
        terminal.wait_for("copied as Markdown")

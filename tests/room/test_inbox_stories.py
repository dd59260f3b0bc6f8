"""User stories in the inbox, in a real terminal: one for each key."""

from __future__ import annotations

import contextlib
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


def test_dangerous_command_is_confirmed(terminal: ProgramTerminal) -> None:
    filter_by(terminal, "rm -rf")
    terminal.wait_for("! deletes files")
    terminal.press("y")
    terminal.wait_for("This deletes files. Approve it?")
    terminal.press("n")
    terminal.wait_for("nothing was answered")
    terminal.press("y")
    terminal.wait_for("This deletes files. Approve it?")
    terminal.press("y")
    terminal.wait_for("answer 1 agent: done")


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

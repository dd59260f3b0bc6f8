"""Run editor, pager and other programs in the user's terminal."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from textual.app import App, SuspendNotSupported

from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.foreground import (
    call_on_ending_signals,
    drop_late_answers,
    editor_command,
    run_in_foreground,
)
from swarm_tui.errors import SwarmError
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.text import is_inside, plain
from swarm_tui.room.actions import action
from swarm_tui.room.dialog import Choosable

if TYPE_CHECKING:
    from swarm_tui.room.screen import RoomScreen

PLACES_OFFERED = 9


class FilePlace(NamedTuple):
    """A file and line that the user can open in an editor."""

    path: str
    line: int
    about: str
    """Description of the location."""


def file_places(repository: str, record: TestRecord) -> list[FilePlace]:
    """Return the files on this machine to choose from: the test, then the ones in its agent's report."""

    def path_of(file: str) -> str:
        return os.path.join(repository, file) if repository and file else ""

    places = [FilePlace(path_of(record.file), record.line, "the test")]
    for found in record.pulled.escalations:
        about = f"{found.title} ({found.kind_in_words})"
        places += [
            FilePlace(path_of(each.path), each.line or 0, about) for each in found.locations if is_inside(each.path)
        ]
    unique: dict[tuple[str, int], FilePlace] = {}
    for place in places:
        unique.setdefault((place.path, place.line), place)
    return [place for place in unique.values() if os.path.isfile(place.path)][:PLACES_OFFERED]


def why_no_file(screen: RoomScreen) -> str:
    record = screen.current_record()
    if record is None:
        return f"no {screen.store.noun} under the cursor"
    has_places = file_places(screen.store.opened.spec.repository, record)
    return "" if has_places else f"{record.file or record.test} is not on this machine"


@action("o", "room.edit", "", "Open the test in your editor, or a location from its agent's report", why_no_file,
        watch_description="Open a location from the agent's report in your editor")  # fmt: skip
def open_in_editor(screen: RoomScreen) -> None:
    """Open the only location, or let the user choose one."""
    record, repository = screen.current_record(), screen.store.opened.spec.repository
    places = file_places(repository, record) if record is not None else []
    if len(places) == 1:
        open_file(screen, places[0].path, places[0].line)
        return
    shown = [f"{os.path.relpath(place.path, repository)}:{place.line}".removesuffix(":0") for place in places]
    entries = [
        Choosable(str(number), plain(name, 200), plain(place.about, 200), key=str(number))
        for number, (name, place) in enumerate(zip(shown, places, strict=True), 1)
    ]

    def open_place(number: str) -> None:
        place = places[int(number) - 1]
        open_file(screen, place.path, place.line)

    screen.choose("Open in your editor", entries, open_place)


def open_file(screen: RoomScreen, path: str, line: int) -> None:
    """Open a file by its absolute path, so that editors cannot interpret it as an option."""
    if not os.path.isfile(path):
        screen.show_message(f"{path} is not on this machine", "warning")
        return
    words = (*editor_command(), *((f"+{line}",) if line else ()), os.path.abspath(path))
    try:
        problem = run_in_terminal(screen.room, words, Path(path).parent)
    except SwarmError as error:
        problem = str(error)
    if problem:
        screen.show_message(problem, "error")


def leave_on_signals(app: App[Any]) -> None:
    """Make TERM, HUP and QUIT close an app the same way as its own key, so that the terminal is restored."""
    if not app.is_headless:
        call_on_ending_signals(asyncio.get_running_loop(), lambda code: app.exit(return_code=code))


def lend_terminal(app: App[Any], body: Callable[[], str]) -> str:
    """Run a function while the room does not use the terminal. Return the error, or "".

    The body must not paint or raise: a suspended Textual hangs on both (Textual #6692).
    """
    problem = ""
    try:
        with app.batch_update(), app.suspend():
            try:
                problem = body()
            except Exception as error:
                problem = plain(str(error), 300) or type(error).__name__
            if sys.__stdin__ is not None:
                drop_late_answers(sys.__stdin__.fileno())
    except SuspendNotSupported:
        problem = "this terminal cannot be suspended"
    return problem


def run_in_terminal(app: App[str], words: Sequence[str], folder: Path, extra: Mapping[str, str] = {}) -> str:
    """Run a program in the terminal and wait for it. Return the error, or ""."""

    def run() -> str:
        code = run_in_foreground(words, cwd=folder, environment=scrubbed_environment(extra))
        return f"{words[0]} exited with code {code}" if code else ""

    problem = lend_terminal(app, run)
    app.refresh(layout=True)
    return problem

"""The list of what has happened since this person was here: a dialog from which each test can be visited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from swarm_tui.insight.attention import attention_order
from swarm_tui.insight.since import Changes
from swarm_tui.model.formatting import counted
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import MARKS
from swarm_tui.model.text import plain
from swarm_tui.room.draw.cells import short_name
from swarm_tui.room.screens.dialog import Choosable, PickScreen

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp

LISTED = 500
"""So many tests are listed; the sweep itself shows all."""
_SCREEN = "screen:"


def open_changes(room: RoomApp) -> None:
    """Show what has happened, and go to what is chosen."""
    absence = room.absence
    entries = list(_entries(absence.changes, is_ascii=room.is_ascii))

    def go(values: tuple[str, ...] | None) -> None:
        if not values:
            return
        if values[0].startswith(_SCREEN):
            room.open_screen(values[0].removeprefix(_SCREEN))
        else:
            room.show_test(values[0])

    room.push_screen(PickScreen(absence.line, entries), go)


def _entries(changes: Changes, *, is_ascii: bool) -> Iterator[Choosable]:
    for size, cause in changes.patterns:
        yield Choosable(f"{_SCREEN}patterns", f"{size} alike", plain(cause, 160))
    if changes.integrated is not None:
        done = changes.integrated.state == "done"
        text = counted(changes.integrated.fixes, "fix", "fixes") if done else "not integrated"
        about = "to keep or to revert" if done else plain(changes.integrated.detail, 160)
        yield Choosable(f"{_SCREEN}fixes", text, about)
    tests = [*changes.asking, *changes.done, *changes.stopped]
    for record in sorted(tests, key=attention_order)[:LISTED]:
        mark = MARKS[record.mark]
        glyph = mark.ascii_glyph if is_ascii else mark.glyph
        yield Choosable(record.test, f"{glyph} {plain(short_name(record), 60)}", _about(record), role=mark.role)


def _about(record: TestRecord) -> str:
    said = record.question or record.reason or record.harvest.summary.strip().partition("\n")[0]
    return plain(f"{MARKS[record.mark].word}: {said}" if said else MARKS[record.mark].word, 160)

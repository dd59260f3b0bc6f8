"""What can be done on every screen: open another one, move, filter, look up a key, copy, undo marks, leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from swarm_tui.model.text import plain
from swarm_tui.room.actions import OF_NO_SWEEP, SCREENS, Action
from swarm_tui.room.screens import overlays
from swarm_tui.room.widgets.lines import Lines

if TYPE_CHECKING:
    from swarm_tui.room.screens.base import RoomScreen


class RoomCommands:
    """The actions of scope `room` on one screen."""

    def __init__(self, screen: RoomScreen) -> None:
        self._screen = screen

    def actions(self, agent_actions: Iterable[Action]) -> tuple[Action, ...]:
        """Return the actions, those about the current agent among them."""
        screen = self._screen
        return (
            *(
                Action(f"room.open_{entry.name}", (entry.key,), "", f"Screen {entry.key}: {entry.title}",
                       partial(self._open, entry.name), is_always_ready=True,
                       watch_description=f"Screen {entry.key}: {entry.watch_title or entry.title}",
                       why_not_in_watch="" if entry.is_for_watch else OF_NO_SWEEP)
                for entry in SCREENS
            ),
            *self._moving_actions(),
            *agent_actions,
            Action("room.filter", ("/",), "filter", "Filter as you type; `!word` shows what does not match",
                   partial(overlays.open_filter, screen), screen.why_not_filter, rank=13),
            Action("room.palette", (":", "ctrl+p"), "", "Everything by name, and commands such as `slots 24`",
                   partial(overlays.open_palette, screen), is_listed=False, is_always_ready=True,
                   watch_description="Everything by name"),
            Action("room.copy", ("Y",), "", "Copy the name under the cursor", self.copy, self.why_not_copy),
            Action("room.since", ("S",), "", "What has happened since you were here", self.list_changes,
                   lambda: screen.room.absence.why_nothing()),
            Action("room.undo", ("z",), "", "Undo the last change of marks", self.undo_marks, self.why_not_undo),
            Action("room.redo", ("Z",), "", "Redo it", self.redo_marks, self.why_not_redo),
            Action("room.theme", (), "", "Choose a theme; the choice is remembered",
                   partial(overlays.open_themes, screen)),
            Action("room.back", ("q",), "", "Back; at home, leave the room (the agents go on)", screen.go_back,
                   is_always_ready=True),
            Action("room.escape", ("escape",), "", "Close, clear marks, clear the filter, or go back; never leaves",
                   screen.escape, is_listed=False, is_always_ready=True),
            Action("room.leave", (), "", "Leave the room; the agents go on", lambda: screen.room.leave()),
            Action("room.help", ("?",), "keys", "The keys of this screen, searchable",
                   partial(overlays.open_help, screen), is_always_ready=True),
        )  # fmt: skip

    def _moving_actions(self) -> tuple[Action, ...]:
        moves: tuple[tuple[str, tuple[str, ...], str, Callable[[Lines], object]], ...] = (
            ("up", ("up", "k"), "Up", lambda lines: lines.move(-1)),
            ("down", ("down", "j"), "Down", lambda lines: lines.move(1)),
            ("left", ("left", "h"), "Left", lambda lines: lines.move(0, -1)),
            ("right", ("right", "l"), "Right", lambda lines: lines.move(0, 1)),
            ("page_up", ("pageup",), "A page up", lambda lines: lines.move_page(-1)),
            ("page_down", ("pagedown",), "A page down", lambda lines: lines.move_page(1)),
            ("half_up", ("ctrl+u",), "Half a page up", lambda lines: lines.move_page(-0.5)),
            ("half_down", ("ctrl+d",), "Half a page down", lambda lines: lines.move_page(0.5)),
            ("top", ("g", "home"), "To the top", lambda lines: lines.move_end(False)),
            ("bottom", ("G", "end"), "To the bottom", lambda lines: lines.move_end(True)),
            ("next_panel", ("tab",), "Next panel", lambda lines: self._screen.focus_next(Lines)),
            ("previous_panel", ("shift+tab",), "Previous panel", lambda lines: self._screen.focus_previous(Lines)),
        )
        return tuple(
            Action(f"room.{name}", keys, "", description, partial(self._move, move), is_listed=False)
            for name, keys, description, move in moves
        )

    def _open(self, name: str) -> None:
        self._screen.room.open_screen(name)

    def _move(self, move: Callable[[Lines], object]) -> None:
        lines = self._screen.focused_lines
        if lines is not None:
            move(lines)

    def copy(self) -> None:
        name = plain(self._screen.name_to_copy(), 100_000)
        self._screen.room.copy_to_clipboard(name)
        self._screen.show_message(f"copied: {name}")

    def why_not_copy(self) -> str:
        return "" if self._screen.name_to_copy() else "there is no name under the cursor"

    def list_changes(self) -> None:
        from swarm_tui.room.screens.since import open_changes

        open_changes(self._screen.room)

    def undo_marks(self) -> None:
        self._screen.room.change_marks(self._screen.room.marks.undone())

    def why_not_undo(self) -> str:
        return "" if self._screen.room.marks.can_undo else "nothing was marked"

    def redo_marks(self) -> None:
        self._screen.room.change_marks(self._screen.room.marks.redone())

    def why_not_redo(self) -> str:
        return "" if self._screen.room.marks.can_redo else "nothing was undone"

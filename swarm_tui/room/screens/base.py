"""The frame that all screens share: header, body, one line of footer, and the keys that lead to actions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.actions import Action, KeyMap, key_name
from swarm_tui.room.draw.frame import draw_footer, draw_header, draw_message
from swarm_tui.room.draw.screen_line import LOW, draw_screen_line
from swarm_tui.room.header_facts import header_facts
from swarm_tui.room.open_work import screen_facts
from swarm_tui.room.screens.agent_commands import AgentCommands
from swarm_tui.room.screens.editing import Editing
from swarm_tui.room.screens.engine_requests import EngineRequests
from swarm_tui.room.screens.panel_border import PanelBorder
from swarm_tui.room.screens.room_commands import RoomCommands
from swarm_tui.room.store import EVERYTHING_CHANGED, VIEW_CHANGED, Store, SweepChanged
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.lines import Lines

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp

MESSAGE_SECONDS = 8.0


class RoomScreen(Screen[None], inherit_bindings=False):
    """A screen of the room: panels between header and footer, and actions of its own."""

    NAME: ClassVar[str] = ""
    TITLE_WORD: ClassVar[str] = ""
    """How the header calls this screen; "" at home."""
    SIDE_BY_SIDE: ClassVar[int] = 100
    """From this width on panels stand side by side; below they are stacked."""
    AUTO_FOCUS = ".main"

    can_filter: ClassVar[bool] = False
    shows_files: ClassVar[bool] = False
    """Whether it shows what changes without an event of the sweep: it is looked at each second then."""
    filter_words: str = ""

    def __init__(self) -> None:
        super().__init__(name=self.NAME)
        self.header = Band(id="header")
        self.footer = Band(id="footer")
        self.requests = EngineRequests(self)
        self.agent_commands = AgentCommands(self)
        self.editing = Editing(self)
        self.room_commands = RoomCommands(self)
        self.panel_border: PanelBorder | None = None
        self._message: tuple[str, str] | None = None

    @property
    def room(self) -> RoomApp:
        return cast("RoomApp", self.app)

    @property
    def store(self) -> Store:
        return self.room.store

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """What can be done here: the screen's own actions, then those that work everywhere."""
        actions = (
            *self.own_actions(),
            *self.room_commands.actions((*self.agent_commands.actions(), *self.editing.actions())),
        )
        return tuple(self._refused_in_past(action) if action.is_of_now else action for action in actions)

    def _refused_in_past(self, action: Action) -> Action:
        return action._replace(why_not=lambda: self.store.why_only_now() or action.why_not())

    @cached_property
    def offered(self) -> tuple[Action, ...]:
        """The actions as this room has them."""
        return tuple(action.in_watch() for action in self.actions) if self.store.is_watch else self.actions

    @property
    def listed(self) -> list[Action]:
        """The actions that there can be something to do for in this room."""
        return [action for action in self.offered if not (self.store.is_watch and action.why_not_in_watch)]

    @cached_property
    def keys(self) -> KeyMap:
        return KeyMap(self.offered, self.room.settings.keys)

    # What a screen defines.

    def compose_body(self) -> Iterable[Widget]:
        """Return the panels between header and footer; the one with the class `main` gets the focus first."""
        return ()

    def own_actions(self) -> tuple[Action, ...]:
        """Return the actions of this screen alone; their order is that of the help."""
        return ()

    def show_change(self, change: SweepChanged) -> None:
        """Update the panels; at most ten times a second, and with EVERYTHING_CHANGED when the screen is opened."""

    def current_tests(self) -> tuple[str, ...]:
        """Return the tests that actions are about now: the marked ones, or those under the cursor."""
        return ()

    def current_record(self) -> TestRecord | None:
        """Return the test for actions on a single test."""
        return self.store.record(next(iter(self.current_tests()), None))

    def name_to_copy(self) -> str:
        return " ".join(self.current_tests())

    def set_filter(self, words: str) -> None:
        self.filter_words = words
        self.apply_change(VIEW_CHANGED)

    def why_not_filter(self) -> str:
        return "" if self.can_filter else "there is nothing to filter here"

    def close_something(self) -> bool:
        """Close, clear or end what `Esc` is for on this screen; return whether there was anything."""
        if not self.filter_words:
            return False
        self.set_filter("")
        return True

    def go_back(self) -> None:
        """Go back to the screen before; at home that is the way out."""
        self.room.go_back()

    def escape(self) -> None:
        """Go back to now, close or clear one thing, else go back a screen; never leave the room."""
        if self.store.past is not None:
            self.room.time_travel.go_to_now()
            return
        if self.close_something():
            return
        if self.room.home == self.NAME:
            self.show_message(f"{key_name(self.keys.first_key_of('room.back'))} leaves")
        else:
            self.go_back()

    def border_moved(self) -> None:
        """Fit what stands beside the panel whose border was dragged."""

    def click_spot(self, kind: str, rest: str) -> None:
        """Handle a click on a spot of the header or of a strip."""

    @property
    def focused_lines(self) -> Lines | None:
        if isinstance(self.focused, Lines):
            return self.focused
        return next(iter(self.query(Lines)), None)

    def bookmark(self) -> Callable[[], None]:
        """Return a function that returns the cursor to where it is now."""
        lines = self.focused_lines
        cursor, top = (lines.cursor, lines.first_visible) if lines is not None else (0, 0)

        def restore() -> None:
            if lines is not None:
                lines.move_to(cursor)
                lines.scroll_rows(top)

        return restore

    # Loading.

    @property
    def is_loading(self) -> bool:
        """Whether what keys on this screen act on is still being read."""
        return not self.store.is_loaded and not self.store.problem

    def takes(self, event: events.Key) -> bool:
        """Whether a key can be handled now; one that acts on what is still being read waits for it."""
        action = self._action_of(event)
        return self.is_mounted and (action is None or action.is_always_ready or not self.is_loading)

    # The frame.

    def compose(self) -> ComposeResult:
        self._set_shape(self.app.size)
        yield self.header
        yield from self.compose_body()
        yield self.footer

    def on_mount(self) -> None:
        self.apply_change(EVERYTHING_CHANGED)

    def on_screen_resume(self) -> None:
        if self.is_mounted:
            self.apply_change(EVERYTHING_CHANGED)

    def on_resize(self, event: events.Resize) -> None:
        self._set_shape(event.size)
        self.apply_change(VIEW_CHANGED)

    def _set_shape(self, size: Size) -> None:
        self.set_class(size.width >= self.SIDE_BY_SIDE, "-wide")
        self.set_class(size.height < LOW, "-low")
        if self.panel_border is not None:
            self.panel_border.show()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        if self.panel_border is not None and self.panel_border.press(event):
            event.stop()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.panel_border is not None:
            self.panel_border.drag(event)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self.panel_border is not None:
            self.panel_border.release()

    def on_lines_resized(self, event: Lines.Resized) -> None:
        event.stop()
        self.apply_change(VIEW_CHANGED)

    def apply_change(self, change: SweepChanged) -> None:
        self.show_change(change)
        self.draw_frame()
        self.room.deliver_held_keys()

    def draw_frame(self) -> None:
        """Draw header and footer; they cost nothing when they look the same."""
        width, height = self.size.width or 80, self.size.height or 24
        lines = draw_header(header_facts(self.store, self), width, 2 if height >= 12 else 1)
        if height >= LOW:
            lines.append(draw_screen_line(screen_facts(self.store, self.room.review_state, self.NAME), width))
        self.header.show(lines)
        self.draw_footer()

    def draw_footer(self) -> None:
        """Draw the last line: a message when there is one, else the keys."""
        width = self.size.width or 80
        if self._message is not None:
            self.footer.show([draw_message(*self._message, width)])
        else:
            ranked = sorted(self.offered, key=lambda action: action.rank)
            self.footer.show([draw_footer(ranked, self.keys, width)])

    def show_message(self, text: str, level: str = "info", *, stays: bool = False) -> None:
        """Show a sentence in the footer's place, until the next key, and unless it stays only for a few seconds."""
        self._message = message = (plain(text, 500), level)
        self.draw_footer()

        def remove() -> None:
            if self._message is message:
                self._message = None
                self.draw_footer()

        if not stays:
            self.set_timer(MESSAGE_SECONDS, remove)

    def focus_main(self) -> None:
        self.set_focus(next(iter(self.query(".main")), None))

    # From keys and clicks to actions.

    def press_key(self, event: events.Key) -> bool:
        """Perform the action behind a key; False when there is none here."""
        action = self._action_of(event)
        if self._message is not None:
            self._message = None
            self.draw_footer()
        if action is None:
            return False
        self.perform(action)
        return True

    def _action_of(self, event: events.Key) -> Action | None:
        character = event.character
        is_sign = event.is_printable and character is not None and character != " "
        return self.keys.action_for(character if is_sign and character is not None else event.key)

    def on_key(self, event: events.Key) -> None:
        if self.focused is None and self.press_key(event):
            event.stop()

    def perform(self, action: Action) -> None:
        """Carry out an action, or show why it is not possible now."""
        reason = action.why_not()
        if reason and action.is_of_now and self.store.past is not None:
            self.room.refuse_in_past(action.description)
            return
        if reason:
            self.show_message(f"{action.label}: {reason}" if action.label else reason, "warning")
            return
        try:
            action.handler()
        except SwarmError as error:
            self.store.note("error", f"{action.description}: {error}")
            self.show_message(str(error), "error")
        self.draw_footer()

    def on_band_clicked(self, event: Band.Clicked) -> None:
        event.stop()
        self._follow_spot(event.spot)

    def on_lines_spot_clicked(self, event: Lines.SpotClicked) -> None:
        event.stop()
        self._follow_spot(event.spot)

    def _follow_spot(self, spot: str) -> None:
        kind, _, rest = spot.partition(":")
        if kind == "screen":
            self.room.open_screen(rest)
        elif kind == "file":
            line, _, path = rest.partition(":")
            self.editing.open_file(path, int(line))
        elif kind == "do":
            for action in self.offered:
                if action.id == rest:
                    self.perform(action)
        else:
            self.click_spot(kind, rest)

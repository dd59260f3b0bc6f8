"""Frame of every screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from textual import events
from textual.app import ComposeResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.room.actions import (
    OF_NO_SWEEP,
    SCREENS,
    Action,
    KeyMap,
    action,
    actions_of_class,
    bound_actions,
    key_name,
)
from swarm_tui.room.agent.actions import ACTIONS as AGENT_ACTIONS
from swarm_tui.room.dialog import Choosable, PickScreen
from swarm_tui.room.draw.frame import LOW, draw_footer, draw_message, draw_screen_line
from swarm_tui.room.external import open_file, open_in_editor
from swarm_tui.room.lists import FilterLine, HelpScreen, PaletteScreen, SearchedScreen
from swarm_tui.room.notifications import open_changes
from swarm_tui.room.store import EVERYTHING_CHANGED, VIEW_CHANGED, Store, SweepChanged
from swarm_tui.room.view import draw_header, screen_facts
from swarm_tui.room.widgets.border import PanelBorder
from swarm_tui.room.widgets.lines import Band, Lines

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp


MOVES: Final[tuple[tuple[str, str, str, Callable[[Lines], object]], ...]] = (
    ("up", "up k", "Up", lambda lines: lines.move(-1)),
    ("down", "down j", "Down", lambda lines: lines.move(1)),
    ("left", "left h", "Left", lambda lines: lines.move(0, -1)),
    ("right", "right l", "Right", lambda lines: lines.move(0, 1)),
    ("page_up", "pageup", "Page up", lambda lines: lines.move_page(-1)),
    ("page_down", "pagedown", "Page down", lambda lines: lines.move_page(1)),
    ("half_up", "ctrl+u", "Half a page up", lambda lines: lines.move_page(-0.5)),
    ("half_down", "ctrl+d", "Half a page down", lambda lines: lines.move_page(0.5)),
    ("top", "g home", "Go to the top", lambda lines: lines.move_end(False)),
    ("bottom", "G end", "Go to the bottom", lambda lines: lines.move_end(True)),
    ("next_panel", "tab", "Next panel", lambda lines: lines.screen.focus_next(Lines)),
    ("previous_panel", "shift+tab", "Previous panel", lambda lines: lines.screen.focus_previous(Lines)),
)
F = TypeVar("F", bound=Callable[..., object])


def for_each_screen(function: F) -> F:
    """Add an action for each screen that the room can open."""
    for entry in reversed(SCREENS):
        add = action(entry.key, f"room.open_{entry.name}", "", f"Open screen {entry.key}: {entry.title}",
                     arguments=(entry.name,), is_always_ready=True,
                     watch_description=f"Open screen {entry.key}: {entry.watch_title or entry.title}",
                     why_not_in_watch="" if entry.is_for_watch else OF_NO_SWEEP)  # fmt: skip
        function = add(function)
    return function


def for_each_move(function: F) -> F:
    """Add an action for each way to move the cursor."""
    for name, keys, description, move in reversed(MOVES):
        function = action(keys, f"room.{name}", "", description, arguments=(move,), is_listed=False)(function)
    return function


MESSAGE_SECONDS = 8.0


class RoomScreen(Screen[None], inherit_bindings=False):
    """A screen of the room: panels between header and footer, with its own actions."""

    NAME: ClassVar[str] = ""
    TITLE_WORD: ClassVar[str] = ""
    """Name of this screen in the header; "" for the home screen."""
    SIDE_BY_SIDE: ClassVar[int] = 100
    """From this width panels are side by side. On narrower terminals they are stacked."""
    AUTO_FOCUS = ".main"

    can_filter: ClassVar[bool] = False
    shows_files: ClassVar[bool] = False
    """Whether it shows data that changes without an event of the sweep. It is then updated every second."""
    filter_words: str = ""

    def __init__(self) -> None:
        super().__init__(name=self.NAME)
        self.header = Band(id="header")
        self.footer = Band(id="footer")
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
        """The screen's actions, then the actions that work on every screen."""
        actions = (
            *self.own_actions(),
            *actions_of_class(self),
            *bound_actions(self, (*AGENT_ACTIONS, open_in_editor)),
        )
        return tuple(self._refused_in_past(each) if each.is_of_now else each for each in actions)

    def _refused_in_past(self, refused: Action) -> Action:
        return refused._replace(why_not=lambda: self.store.why_only_now() or refused.why_not())

    @cached_property
    def offered(self) -> tuple[Action, ...]:
        """The actions as they are in this room."""
        return tuple(each.in_watch() for each in self.actions) if self.store.is_watch else self.actions

    @property
    def listed(self) -> list[Action]:
        """The actions to list in the help of this room."""
        return [each for each in self.offered if not (self.store.is_watch and each.why_not_in_watch)]

    @cached_property
    def keys(self) -> KeyMap:
        return KeyMap(self.offered, self.room.settings.keys)

    # For subclasses.

    def compose_body(self) -> Iterable[Widget]:
        """Return the panels between header and footer. The first one with the class `main` gets the focus."""
        return ()

    def own_actions(self) -> tuple[Action, ...]:
        """Return the actions of this screen, in the order of the help."""
        return ()

    def show_change(self, change: SweepChanged) -> None:
        """Update the panels. Called at most ten times a second, with EVERYTHING_CHANGED when the screen is opened."""

    def current_tests(self) -> tuple[str, ...]:
        """Return the marked tests, or else those under the cursor."""
        return ()

    def current_record(self) -> TestRecord | None:
        """Return the test for actions on a single test."""
        return self.store.record(next(iter(self.current_tests()), None))

    def go_to(self, test: str) -> None:
        """Move the cursor to a test, on screens that have one for each."""

    def name_to_copy(self) -> str:
        return " ".join(self.current_tests())

    def set_filter(self, words: str) -> None:
        self.filter_words = words
        self.apply_change(VIEW_CHANGED)

    def why_not_filter(self) -> str:
        return "" if self.can_filter else "this screen has no filter"

    def close_something(self) -> bool:
        """Close or clear the innermost thing that `Esc` can close. Return whether there was one."""
        if self.filter_words:
            self.set_filter("")
            return True
        return self.leave_inner()

    def leave_inner(self) -> bool:
        """Leave what is open inside this screen, such as a group. Return False if there is nothing."""
        return False

    def border_moved(self) -> None:
        """Adapt the panels next to a dragged border."""

    def click_spot(self, kind: str, rest: str) -> None:
        """Handle a click on a spot of the header or of a strip."""

    @property
    def focused_lines(self) -> Lines | None:
        if isinstance(self.focused, Lines):
            return self.focused
        return next(iter(self.query(Lines)), None)

    def bookmark(self) -> Callable[[], None]:
        """Return a function that returns the cursor to its current position."""
        lines = self.focused_lines
        cursor, top = (lines.cursor, lines.first_visible) if lines is not None else (0, 0)

        def restore() -> None:
            if lines is not None:
                lines.move_to(cursor)
                lines.scroll_rows(top)

        return restore

    # Actions on every screen.

    @for_each_screen
    def open_screen(self, name: str) -> None:
        self.room.open_screen(name)

    @for_each_move
    def move_cursor(self, move: Callable[[Lines], object]) -> None:
        if self.focused_lines is not None:
            move(self.focused_lines)

    @action("/", "room.filter", "filter", "Filter as you type; `!word` excludes a word",
            lambda screen: screen.why_not_filter(), rank=13)  # fmt: skip
    def open_filter(self) -> None:
        line = FilterLine(self)
        self.mount(line)
        # Focus it immediately: the next key is the first one of the filter.
        self.set_focus(line, scroll_visible=False)

    @action(": ctrl+p", "room.palette", "", "Open the palette: actions, and commands such as `slots 24`",
            is_listed=False, is_always_ready=True, watch_description="Open the palette: all actions")  # fmt: skip
    def open_palette(self) -> None:
        self._open_list(PaletteScreen(self))

    def _open_list(self, found: SearchedScreen) -> None:
        self.room.push_screen(found, lambda command: command() if command is not None else None)

    @action("Y", "room.copy", "", "Copy the name under the cursor",
            lambda screen: "" if screen.name_to_copy() else "no name under the cursor")  # fmt: skip
    def copy_name(self) -> None:
        name = plain(self.name_to_copy(), 100_000)
        self.room.copy_to_clipboard(name)
        self.show_message(f"copied: {name}")

    @action("S", "room.since", "", "Show what changed since your last visit",
            lambda screen: screen.room.absence.why_nothing())  # fmt: skip
    def list_changes(self) -> None:
        open_changes(self.room)

    @action("z", "room.undo", "", "Undo the last change of marks",
            lambda screen: "" if screen.room.view.marks.can_undo else "nothing to undo")  # fmt: skip
    def undo_marks(self) -> None:
        self.room.view.change_marks(self.room.view.marks.undone())

    @action("Z", "room.redo", "", "Redo the last change of marks",
            lambda screen: "" if screen.room.view.marks.can_redo else "nothing to redo")  # fmt: skip
    def redo_marks(self) -> None:
        self.room.view.change_marks(self.room.view.marks.redone())

    @action("", "room.theme", "", "Choose and save a theme")
    def choose_theme(self) -> None:
        entries = [Choosable(name, name) for name in sorted(self.app.available_themes)]
        self.choose("Theme", entries, partial(setattr, self.app, "theme"), current=self.app.theme)

    @action("q", "room.back", "", "Go back; on the home screen, leave (agents keep running)", is_always_ready=True)
    def go_back(self) -> None:
        """Leave what is open inside this screen, else this screen; on the home screen, leave the room."""
        if not self.leave_inner():
            self.room.go_back()

    @action("escape", "room.escape", "", "Close, clear marks, clear the filter, or go back; never leaves",
            is_listed=False, is_always_ready=True)  # fmt: skip
    def escape(self) -> None:
        """Return to the present, else close or clear one thing, else return to the previous screen. Never leave."""
        if self.store.past is not None:
            self.room.time_travel.go_to_now()
        elif self.close_something():
            return
        elif self.room.home == self.NAME:
            self.show_message(f"press {key_name(self.keys.first_key_of('room.back'))} to leave")
        else:
            self.go_back()

    @action("", "room.leave", "", "Leave the room; the agents keep running")
    def leave(self) -> None:
        self.room.leave()

    @action("?", "room.help", "keys", "List and search the keys of this screen", is_always_ready=True)
    def open_help(self) -> None:
        self._open_list(HelpScreen(self))

    # Loading.

    @property
    def is_loading(self) -> bool:
        """Whether data for the keys of this screen is being loaded."""
        return not self.store.is_loaded and not self.store.problem

    def takes(self, event: events.Key) -> bool:
        """Whether a key can be handled now. Keys that need loading data must wait."""
        pressed = self._action_of(event)
        return self.is_mounted and (pressed is None or pressed.is_always_ready or not self.is_loading)

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
        self.room.key_queue.go_on_later()

    def draw_frame(self) -> None:
        """Draw header and footer if they have changed."""
        width, height = self.size.width or 80, self.size.height or 24
        pills = self.room.view.options.pills
        lines = draw_header(self.store, width, 2 if height >= 12 else 1, screen=self.TITLE_WORD, shown_pills=pills)
        if height >= LOW:
            lines.append(draw_screen_line(screen_facts(self.store, self.room.review_session, self.NAME), width))
        self.header.show(lines)
        self.draw_footer()

    def draw_footer(self) -> None:
        """Draw the last line: a message if there is one, else the keys."""
        width = self.size.width or 80
        if self._message is not None:
            self.footer.show([draw_message(*self._message, width)])
        else:
            ranked = sorted(self.offered, key=lambda each: each.rank)
            self.footer.show([draw_footer(ranked, self.keys, width)])

    def show_message(self, text: str, level: str = "info", *, stays: bool = False) -> None:
        """Show a message in place of the footer until the next key, or for a few seconds."""
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

    # Dialogs.

    def choose(
        self,
        title: str,
        entries: Sequence[Choosable],
        then: Callable[[str], object],
        when_closed: str = "",
        *,
        current: str = "",
    ) -> None:
        """Let the user choose one entry, and call `then` with its value. Without a choice, show `when_closed`."""

        def call(values: tuple[str, ...] | None) -> None:
            if values:
                then(values[0])
            elif when_closed:
                self.show_message(when_closed)

        self.room.push_screen(PickScreen(title, entries, current=current), call)

    def write_text(
        self,
        receivers: Sequence[TestRecord],
        deliver: Callable[[str], Awaitable[str]],
        when_closed: str,
        **options: Any,
    ) -> None:
        """Open a `MessageScreen` for these agents. If no text is accepted, show `when_closed`."""
        # Late: 9 ms, for the editor of Textual.
        from swarm_tui.room.message import MessageScreen

        def tell(is_accepted: bool | None) -> None:
            if not is_accepted:
                self.show_message(when_closed)

        self.room.push_screen(MessageScreen(receivers, self.room.drafts, deliver, **options), tell)

    # Keys and clicks.

    def press_key(self, event: events.Key) -> bool:
        """Run the action of a key. Return False if the key has none here."""
        pressed = self._action_of(event)
        if self._message is not None:
            self._message = None
            self.draw_footer()
        if pressed is None:
            return False
        self.perform(pressed)
        return True

    def _action_of(self, event: events.Key) -> Action | None:
        character = event.character
        is_sign = event.is_printable and character is not None and character != " "
        return self.keys.action_for(character if is_sign and character is not None else event.key)

    def on_key(self, event: events.Key) -> None:
        if self.focused is None and self.press_key(event):
            event.stop()

    def perform(self, chosen: Action) -> None:
        """Run an action, or show why it is unavailable."""
        reason = chosen.why_not()
        if reason and chosen.is_of_now and self.store.past is not None:
            self.room.refuse_in_past(chosen.description)
            return
        if reason and chosen.opens_box:
            self.room.refuse(chosen.description, reason)
            return
        if reason:
            self.show_message(f"{chosen.label}: {reason}" if chosen.label else reason, "warning")
            return
        try:
            chosen.handler()
        except SwarmError as error:
            self.store.note("error", f"{chosen.description}: {error}")
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
            open_file(self, path, int(line))
        elif kind == "do":
            for offered in self.offered:
                if offered.id == rest:
                    self.perform(offered)
        else:
            self.click_spot(kind, rest)

"""The frame that all screens share: header, body, one line of footer; keys to actions; what every screen can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from swarm_tui.errors import SwarmError
from swarm_tui.model.text import plain
from swarm_tui.room.actions import Action, actions_of, keys_of
from swarm_tui.room.draw.footer import draw_footer, draw_message
from swarm_tui.room.draw.header import draw_header
from swarm_tui.room.header_facts import header_facts
from swarm_tui.room.screens.agent_actions import AgentActions
from swarm_tui.room.store import Changes, Store
from swarm_tui.room.widgets.band import Band
from swarm_tui.room.widgets.lines import Lines

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp


class RoomScreen(AgentActions, Screen[None], inherit_bindings=False):
    """A screen of the room."""

    NAME: ClassVar[str] = ""
    TITLE_WORD: ClassVar[str] = ""
    """How the header calls this screen; "" at home."""
    SIDE_BY_SIDE: ClassVar[int] = 100
    """From this width on panels stand side by side; below they are stacked."""
    AUTO_FOCUS = ".main"
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self) -> None:
        super().__init__(name=self.NAME)
        self.actions = actions_of(self.NAME)
        self.header = Band(id="header")
        self.footer = Band(id="footer")
        self._message: tuple[str, str] | None = None

    @property
    def room(self) -> RoomApp:
        return cast("RoomApp", self.app)

    @property
    def store(self) -> Store:
        return self.room.store

    def compose(self) -> ComposeResult:
        self._take_shape(self.app.size)
        yield self.header
        yield from self.compose_body()
        yield self.footer

    @cached_property
    def keys(self) -> dict[str, Action]:
        """The action behind each key, from the table and the person's config."""
        return keys_of(self.actions, dict(self.room.settings.keys))

    # What a screen says.

    def compose_body(self) -> Iterable[Widget]:
        """Return the panels between header and footer; the one with the class `main` gets the focus first."""
        return ()

    def show_changes(self, changes: Changes) -> None:
        """Take in what changed; called ten times a second at most, and with a reset when the screen comes up."""

    def current_tests(self) -> tuple[str, ...]:
        """Return the tests that the actions are about now: the marked ones, or the one under the cursor."""
        return ()

    def name_to_copy(self) -> str:
        """Return what `Y` copies."""
        return " ".join(self.current_tests())

    filter_words: str = ""

    def set_filter(self, words: str) -> None:
        """Filter by these words; "" shows all again."""
        self.filter_words = words
        self.take_in(NOTHING)

    can_filter: ClassVar[bool] = False

    # The frame.

    def on_mount(self) -> None:
        self.take_in(RESET)

    def on_screen_resume(self) -> None:
        if self.is_mounted:
            self.take_in(RESET)

    def on_resize(self, event: events.Resize) -> None:
        self._take_shape(event.size)
        self.take_in(NOTHING)

    def _take_shape(self, size: Size) -> None:
        self.set_class(size.width >= self.SIDE_BY_SIDE, "-wide")
        self.set_class(size.height < 16, "-low")

    def on_lines_resized(self, event: Lines.Resized) -> None:
        event.stop()
        self.take_in(NOTHING)

    def take_in(self, changes: Changes) -> None:
        """Bring header, body and footer up to date."""
        self.show_changes(changes)
        self.draw_frame()

    def draw_frame(self) -> None:
        """Draw header and footer; they cost nothing when they look the same."""
        width, height = self.size.width or 80, self.size.height or 24
        self.header.show(draw_header(header_facts(self.store, self), width, 2 if height >= 8 else 1))
        self.draw_foot()

    def draw_foot(self) -> None:
        """Draw the last line: a message when there is one, else the keys."""
        width = self.size.width or 80
        if self._message is not None:
            self.footer.show([draw_message(*self._message, width)])
        else:
            ranked = sorted(self.actions, key=lambda action: action.rank)
            self.footer.show([draw_footer(ranked, self.key_of, self.why_not, width)])

    def say(self, text: str, level: str = "info") -> None:
        """Say something in the footer's place, until the next key or for a few seconds."""
        self._message = (plain(text, 500), level)
        self.draw_foot()
        message = self._message
        self.set_timer(8.0, lambda: self._unsay(message))

    def _unsay(self, message: tuple[str, str]) -> None:
        if self._message is message:
            self._message = None
            self.draw_foot()

    def focus_main(self) -> None:
        """Return the focus back to the main panel."""
        self.set_focus(next(iter(self.query(".main")), None))

    def remember_place(self) -> Callable[[], None]:
        """Return what returns to the place where the cursor is now."""
        lines = self.list
        cursor, top = (lines.cursor, lines.first_visible) if lines is not None else (0, 0)

        def come_back() -> None:
            if lines is not None:
                lines.move_to(cursor)
                lines.scroll_rows(top)

        return come_back

    # Keys to actions.

    def key_of(self, action: Action) -> str:
        """Return the first key of an action here, or "" when another action has taken it."""
        keys = self.room.settings.keys.get(action.id, action.keys)
        return next((key for key in keys if self.keys.get(key) is action), "")

    def keys_behind(self, action: Action) -> tuple[str, ...]:
        """Return all keys of an action here."""
        return tuple(key for key, owner in self.keys.items() if owner is action)

    def press(self, event: events.Key) -> bool:
        """Do what a key stands for; False when it stands for nothing here."""
        character = event.character
        is_sign = event.is_printable and character is not None and character != " "
        action = self.keys.get(character if is_sign and character is not None else event.key)
        if self._message is not None:
            self._message = None
            self.draw_foot()
        if action is None:
            return False
        self.do(action)
        return True

    def on_key(self, event: events.Key) -> None:
        if self.focused is None and self.press(event):
            event.stop()

    def why_not(self, action: Action) -> str:
        """Return the reason why an action is not possible now, or ""."""
        reason = getattr(self, f"why_not_{action.method}", None)
        return cast(Callable[[], str], reason)() if reason is not None else ""

    def do(self, action: Action) -> None:
        """Carry out an action, or say why it is not possible now."""
        reason = self.why_not(action)
        if reason:
            self.say(f"{action.label}: {reason}" if action.label else reason, "warning")
            return
        try:
            if action.id.startswith("room.open_"):
                self.room.open_screen(action.method.removeprefix("open_"))
            else:
                cast(Callable[[], None], getattr(self, f"do_{action.method}"))()
        except SwarmError as error:
            self.store.note("error", f"{action.description}: {error}")
            self.say(str(error), "error")
        self.draw_foot()

    def on_band_clicked(self, event: Band.Clicked) -> None:
        event.stop()
        kind, _, rest = event.spot.partition(":")
        if kind == "do":
            action = next((action for action in self.actions if action.id == rest), None)
            if action is not None:
                self.do(action)
        else:
            self.click_spot(kind, rest)

    def click_spot(self, kind: str, rest: str) -> None:
        """Do what a click on a spot of the header or of a strip means on this screen."""

    # What every screen can do.

    @property
    def list(self) -> Lines | None:
        """The list in focus, or the first one."""
        if isinstance(self.focused, Lines):
            return self.focused
        return next(iter(self.query(Lines)), None)

    def _move(self, rows: int, columns: int = 0) -> None:
        if self.list is not None:
            self.list.move(rows, columns)

    def do_up(self) -> None:
        self._move(-1)

    def do_down(self) -> None:
        self._move(1)

    def do_left(self) -> None:
        self._move(0, -1)

    def do_right(self) -> None:
        self._move(0, 1)

    def _move_page(self, pages: float) -> None:
        if self.list is not None:
            self.list.move_page(pages)

    def do_page_up(self) -> None:
        self._move_page(-1)

    def do_page_down(self) -> None:
        self._move_page(1)

    def do_half_up(self) -> None:
        self._move_page(-0.5)

    def do_half_down(self) -> None:
        self._move_page(0.5)

    def do_top(self) -> None:
        if self.list is not None:
            self.list.move_end(False)

    def do_bottom(self) -> None:
        if self.list is not None:
            self.list.move_end(True)

    def do_next_panel(self) -> None:
        self.focus_next(Lines)

    def do_previous_panel(self) -> None:
        self.focus_previous(Lines)

    def do_filter(self) -> None:
        self.room.open_filter(self)

    def why_not_filter(self) -> str:
        return "" if self.can_filter else "there is nothing to filter here"

    def do_palette(self) -> None:
        self.room.open_palette(self)

    def do_help(self) -> None:
        self.room.open_help(self)

    def do_theme(self) -> None:
        self.room.open_themes()

    def do_copy(self) -> None:
        name = plain(self.name_to_copy(), 100_000)
        self.room.copy_to_clipboard(name)
        self.say(f"copied: {name}")

    def why_not_copy(self) -> str:
        return "" if self.name_to_copy() else "there is no name under the cursor"

    def do_undo(self) -> None:
        self.room.marks_undo()
        self.take_in(RESET)

    def why_not_undo(self) -> str:
        return "" if self.room.marks.can_undo else "nothing was marked"

    def do_redo(self) -> None:
        self.room.marks_redo()
        self.take_in(RESET)

    def why_not_redo(self) -> str:
        return "" if self.room.marks.can_redo else "nothing was undone"

    def do_back(self) -> None:
        if self.filter_words:
            self.set_filter("")
            self.take_in(NOTHING)
        else:
            self.room.go_back()

    def do_leave(self) -> None:
        self.room.leave()


RESET = Changes(frozenset(), True, True, ())
NOTHING = Changes(frozenset(), False, False, ())

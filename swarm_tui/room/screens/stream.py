"""A screen of one stream, newest at the bottom. It follows the end until the cursor moves up; e and E find errors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from functools import partial
from typing import ClassVar, Generic, TypeVar

from textual.widget import Widget

from swarm_tui.room.actions import Action
from swarm_tui.room.draw.parts import Line, Part
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.widgets.lines import Lines

Item = TypeVar("Item")


class StreamLines(Lines, Generic[Item]):
    """The lines of the stream; a subclass draws one."""

    def __init__(self) -> None:
        super().__init__(id="list")
        self.shown: list[Item] = []
        self.when_empty = ""
        """What stands there in place of items."""
        self.is_following = True

    def line_count(self) -> int:
        return len(self.shown) or 1

    def draw_line(self, index: int, width: int) -> Line:
        return self.draw_item(self.shown[index], width) if self.shown else (Part(self.when_empty, "muted"),)

    @abstractmethod
    def draw_item(self, item: Item, width: int) -> Line:
        """Return the line of an item."""

    def move(self, rows: int, columns: int = 0) -> None:
        super().move(rows, columns)
        if rows < 0:
            self.is_following = False
        elif self.cursor == len(self.shown) - 1:
            self.is_following = True


class StreamScreen(RoomScreen, Generic[Item]):
    """The stream, and what can be done in it."""

    can_filter: ClassVar[bool] = True
    ERROR_WORD: ClassVar[str] = "error"
    """What e and E go to."""

    def __init__(self, lines: StreamLines[Item]) -> None:
        super().__init__()
        self.lines = lines
        self.lines.add_class("main")

    def compose_body(self) -> Iterable[Widget]:
        yield self.lines

    def stream_actions(self, label: str) -> tuple[Action, ...]:
        """Return the actions of every stream; `label` is the footer's word for going to the next error."""
        return (
            Action(f"{self.NAME}.follow", ("F",), "follow", "Follow: stay at the newest line", self.switch_following),
            Action(f"{self.NAME}.next_error", ("e",), label, f"To the next {self.ERROR_WORD}",
                   partial(self._find_error, 1)),
            Action(f"{self.NAME}.previous_error", ("E",), "", f"To the previous {self.ERROR_WORD}",
                   partial(self._find_error, -1)),
        )  # fmt: skip

    @abstractmethod
    def key_of(self, item: Item) -> object:
        """Return what identifies an item when the stream is shown anew."""

    @abstractmethod
    def is_error(self, item: Item) -> bool:
        """Whether e and E stop at an item."""

    @abstractmethod
    def draw_title(self) -> None:
        """Show in the border which part of the items is shown."""

    def show_items(self, items: list[Item], when_empty: str) -> None:
        """Show these items, or why there are none; while one does not follow, the cursor stays with its item."""
        current = self.current()
        self.lines.shown = items
        self.lines.when_empty = f"nothing matches /{self.filter_words}" if self.filter_words else when_empty
        if not self.lines.is_following and current is not None:
            keys = [self.key_of(item) for item in items]
            if (key := self.key_of(current)) in keys:
                self.lines.cursor = keys.index(key)
        self.lines.redraw()

    def current(self) -> Item | None:
        shown, cursor = self.lines.shown, self.lines.cursor
        return shown[cursor] if cursor < len(shown) else None

    @property
    def mode(self) -> str:
        return "following" if self.lines.is_following else "paused"

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self.draw_title()
        self.draw_footer()

    def switch_following(self) -> None:
        self.lines.is_following = not self.lines.is_following
        if self.lines.is_following:
            self.lines.move_end(True)
        self.draw_title()

    def _find_error(self, step: int) -> None:
        index = self.lines.cursor + step
        while 0 <= index < len(self.lines.shown):
            if self.is_error(self.lines.shown[index]):
                self.lines.is_following = False
                self.lines.move_to(index)
                return
            index += step
        self.show_message(f"no further {self.ERROR_WORD} that way")

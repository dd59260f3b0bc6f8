"""A screen of one stream, newest at the bottom: it follows until one moves up, and e/E walk what went wrong."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, Generic, TypeVar

from textual.widget import Widget

from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.widgets.lines import Lines

Item = TypeVar("Item")


class StreamLines(Lines, Generic[Item]):
    """The lines of the stream; its screen says what one looks like."""

    def __init__(self) -> None:
        super().__init__(id="list")
        self.shown: list[Item] = []
        self.is_following = True

    def line_count(self) -> int:
        return len(self.shown)

    def move(self, rows: int, columns: int = 0) -> None:
        super().move(rows, columns)
        if rows < 0:
            self.is_following = False
        elif self.cursor == len(self.shown) - 1:
            self.is_following = True


class FollowingScreen(RoomScreen, Generic[Item]):
    """The stream, and what can be done in it."""

    can_filter: ClassVar[bool] = True
    TROUBLE_WORD: ClassVar[str] = "error"
    """What e and E go to."""

    def __init__(self, lines: StreamLines[Item]) -> None:
        super().__init__()
        self.lines = lines
        self.lines.add_class("main")

    def compose_body(self) -> Iterable[Widget]:
        yield self.lines

    @abstractmethod
    def name_of(self, item: Item) -> object:
        """Return what an item is known by when the stream is shown anew."""

    @abstractmethod
    def is_trouble(self, item: Item) -> bool:
        """Whether e and E stop at an item."""

    @abstractmethod
    def draw_title(self) -> None:
        """Say in the border what is shown of how much."""

    def show_items(self, items: list[Item]) -> None:
        """Show these items; while one does not follow, the cursor stays with its item."""
        current = self.current()
        self.lines.shown = items
        if not self.lines.is_following and current is not None:
            names = [self.name_of(item) for item in items]
            if (name := self.name_of(current)) in names:
                self.lines.cursor = names.index(name)
        self.lines.redraw()

    def current(self) -> Item | None:
        """Return the item under the cursor."""
        shown, cursor = self.lines.shown, self.lines.cursor
        return shown[cursor] if cursor < len(shown) else None

    @property
    def mode(self) -> str:
        """Whether the end is followed, in a word."""
        return "following" if self.lines.is_following else "paused"

    def on_lines_cursor_moved(self, event: Lines.CursorMoved) -> None:
        event.stop()
        self.draw_title()
        self.draw_foot()

    def do_follow(self) -> None:
        self.lines.is_following = not self.lines.is_following
        if self.lines.is_following:
            self.lines.move_end(True)
        self.draw_title()

    def do_next_error(self) -> None:
        self._to_trouble(range(self.lines.cursor + 1, len(self.lines.shown)))

    def do_previous_error(self) -> None:
        self._to_trouble(range(self.lines.cursor - 1, -1, -1))

    def _to_trouble(self, indices: Iterable[int]) -> None:
        for index in indices:
            if self.is_trouble(self.lines.shown[index]):
                self.lines.is_following = False
                self.lines.move_to(index)
                return
        self.say(f"no further {self.TROUBLE_WORD} that way")

"""The list widget of all screens: rows, cursor, scrolling."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, Protocol, Self, runtime_checkable

from rich.style import Style
from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from swarm_tui.model.text import plain
from swarm_tui.room.colours import styles_of
from swarm_tui.room.draw.glyphs import ASCII_OF
from swarm_tui.room.draw.spans import Line, cut_text, spot_at, text_of


class Band(Widget, can_focus=False):
    """Shows the lines of the last call of `show`."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "Band { height: auto; width: 1fr; }"

    class Clicked(Message):
        """A spot was clicked."""

        def __init__(self, spot: str) -> None:
            self.spot = spot
            super().__init__()

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []
        self.display = False

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines. An empty list hides the band."""
        shown = list(lines)
        if shown == self._lines:
            return
        is_other_height = len(shown) != len(self._lines)
        self._lines = shown
        if is_other_height:
            self.styles.height = len(shown)
            self.display = bool(shown)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        line = self._lines[y] if y < len(self._lines) else ()
        return styles_of(self).strip(line, self.size.width)

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        if at is None or at.y >= len(self._lines):
            return
        if spot := spot_at(self._lines[at.y], at.x):
            event.stop()
            self.post_message(self.Clicked(spot))


SELECTED: Final = Style(reverse=True)


@runtime_checkable
class HandlesKeys(Protocol):
    """A screen that converts keys to actions."""

    def press_key(self, event: events.Key) -> bool: ...


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """A list of lines with a cursor, of any length."""

    ALLOW_MAXIMIZE = False
    STRIPS_KEPT: ClassVar[int] = 4096

    class CursorMoved(Message):
        """The cursor has moved to another line."""

    class Opened(Message):
        """A line was opened by a double click. (Enter is an action of the screen.)"""

    class SpotClicked(Message):
        """A clickable part was clicked."""

        def __init__(self, spot: str) -> None:
            self.spot = spot
            super().__init__()

    class Resized(Message):
        """The size of the panel has changed, so lines must be drawn for the new width."""

    _keeps_drawn = False
    _width_in_frame = 0

    def __init__(self, *, id: str | None = None, has_cursor: bool = True) -> None:
        super().__init__(id=id)
        self.cursor = 0
        self.has_cursor = has_cursor
        self.has_heading = False
        self.is_following = False
        self._strips: dict[int, Strip] = {}
        self._titles = ("", "")
        self._drawn_titles: dict[str, str] = {}

    # For subclasses.

    def line_count(self) -> int:
        return 0

    def draw_line(self, index: int, width: int) -> Line:
        """Return one line. The result is cached until `lines_changed` is called for it."""
        return ()

    def draw_heading(self, width: int) -> Line:
        """Return the line that stays on top if `has_heading`."""
        return ()

    def line_role(self, index: int) -> str:
        """Return the role on top of a whole line, usually that of the cursor."""
        return "line" if self.has_cursor and index == self.cursor else ""

    # Changes.

    def lines_changed(self, indices: Iterable[int]) -> None:
        """Draw those of these lines again that are visible."""
        regions = []
        top, rows, width = self.first_visible, self.visible_rows, self.text_width
        shift = int(self.has_heading) - top
        for index in indices:
            self._strips.pop(index, None)
            if top <= index < top + rows:
                regions.append(Region(0, index + shift, width, 1))
        if regions:
            self.refresh(*regions)

    def count_changed(self) -> None:
        """Update the number of lines. Existing lines are not drawn again."""
        count = self.line_count()
        height = count + int(self.has_heading)
        if self.virtual_size.height != height:
            self.virtual_size = Size(0, height)
        last = max(0, count - 1)
        if self.is_following or self.cursor > last:
            self.move_to(last)
        self.refresh()

    def redraw(self) -> None:
        """Clear the cache and draw all visible lines."""
        self._strips.clear()
        self.count_changed()

    @property
    def is_seen(self) -> bool:
        """Whether its screen is visible and has space for it."""
        return self.screen.is_current and self.size.height > 0

    def title(self, title: str, subtitle: str = "") -> None:
        """Set the title in the panel's border, as text without markup."""
        self._titles = (title, subtitle)
        self._draw_titles()

    def _draw_titles(self) -> None:
        sides = (("border_title", self._titles[0], -1), ("border_subtitle", self._titles[1], self.size.height))
        for side, text, y in sides:
            text = plain(text, 500)
            if self.outer_size.width:
                # Cut the text here, because Textual's ellipsis is not ASCII.
                text = cut_text(text, max(8, self.outer_size.width - 6))
            text = text.translate(ASCII_OF) if styles_of(self).is_ascii else text
            if self._drawn_titles.get(side) == text:
                continue
            self._drawn_titles[side] = text
            # Textual would redraw the whole panel for a new title, at each move of the cursor. Redraw only that line.
            self._keeps_drawn = True
            setattr(self, side, Content(text) if text else None)
            self._keeps_drawn = False
            self.refresh(Region(-2, y, self.outer_size.width, 1))

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        if self._keeps_drawn:
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    # Cursor and scroll position.

    @property
    def text_width(self) -> int:
        """Width of a line in cells. Space for the scrollbar is always reserved."""
        return self._width_in_frame or max(1, self.size.width - self.styles.scrollbar_size_vertical)

    @property
    def first_visible(self) -> int:
        return self.scroll_offset.y

    @property
    def visible_rows(self) -> int:
        return max(1, self.size.height - int(self.has_heading))

    def move(self, rows: int, columns: int = 0) -> None:
        """Move the cursor. In a list without a cursor, scroll."""
        if not self.has_cursor:
            self.scroll_rows(self.first_visible + rows)
        elif rows:
            self.move_to(self.cursor + rows)

    def move_page(self, pages: float) -> None:
        self.move(int(self.visible_rows * pages) or (1 if pages > 0 else -1))

    def move_end(self, is_bottom: bool) -> None:
        self.move(self.line_count() if is_bottom else -self.line_count())

    def move_to(self, index: int) -> None:
        """Move the cursor to a line and scroll it into view."""
        index = max(0, min(self.line_count() - 1, index))
        old, self.cursor = self.cursor, index
        self.show_line(index)
        if old != index:
            self.lines_changed((old, index))
            self.post_message(self.CursorMoved())

    def show_line(self, index: int) -> None:
        """Scroll as little as possible to make a line visible. Does nothing before the first layout."""
        if not self.size.height:
            return
        top, rows = self.first_visible, self.visible_rows
        if index < top:
            self.scroll_rows(index)
        elif index >= top + rows:
            self.scroll_rows(index - rows + 1)

    def scroll_rows(self, top: int) -> None:
        """Scroll so that the line `top` is the first visible one."""
        top = max(0, min(top, self.line_count() - self.visible_rows))
        if top != self.first_visible:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    # Drawing.

    def render_lines(self, crop: Region) -> list[Strip]:
        # Textual computes the size for each line that reads it, which is a tenth of the time to handle a key.
        self._width_in_frame = self.text_width
        try:
            return super().render_lines(crop)
        finally:
            self._width_in_frame = 0

    def render_line(self, y: int) -> Strip:
        width = self.text_width
        styles = styles_of(self)
        if self.has_heading:
            if y == 0:
                return styles.strip(self.draw_heading(width), width)
            y -= 1
        index = y + self.first_visible
        if index >= self.line_count():
            return Strip.blank(width, styles.base)
        strip = self._strips.get(index)
        if strip is None:
            if len(self._strips) >= self.STRIPS_KEPT:
                self._strips.clear()
            strip = styles.strip(self.draw_line(index, width), width, self.line_role(index))
            strip = self._strips[index] = self._selectable(strip, index) if self.ALLOW_SELECT else strip
        return strip

    # Selecting text with the mouse.

    def _selectable(self, strip: Strip, index: int) -> Strip:
        """Return the line with the positions that Textual needs for selecting text. Selected text is reversed."""
        selection = self.text_selection
        span = selection.get_span(index) if selection is not None else None
        if span is not None:
            start, end = span[0], strip.cell_length if span[1] == -1 else span[1]
            before, within, after = (strip.crop(*ends) for ends in ((0, start), (start, end), (end, None)))
            strip = Strip.join([before, within.apply_style(SELECTED), after])
        return strip.apply_offsets(0, index)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        first = selection.start.y if selection.start is not None else 0
        last = selection.end.y if selection.end is not None else self.line_count() - 1
        width = self.text_width
        lines = [
            text_of(self.draw_line(index, width)).rstrip() for index in range(first, min(last + 1, self.line_count()))
        ]
        return selection.extract("\n".join([*[""] * first, *lines])), "\n"

    def selection_updated(self, selection: Selection | None) -> None:
        self._strips.clear()
        self.refresh()

    def notify_style_update(self) -> None:
        """Clear the cache, because the theme has changed."""
        self._strips.clear()
        super().notify_style_update()

    def on_mount(self) -> None:
        self.count_changed()

    def on_resize(self, event: events.Resize) -> None:
        self._strips.clear()
        self.count_changed()
        self._draw_titles()
        if self.has_cursor:
            self.show_line(self.cursor)
        self.post_message(self.Resized())

    # Keys go directly to the screen's actions. The mouse works as in other lists.

    def on_key(self, event: events.Key) -> None:
        if isinstance(self.screen, HandlesKeys) and self.screen.press_key(event):
            event.stop()
            event.prevent_default()

    def index_at(self, y: int) -> int | None:
        """Return the line at a y offset within the widget's content, or None."""
        index = y - int(self.has_heading) + self.first_visible
        return index if 0 <= index < self.line_count() and y >= int(self.has_heading) else None

    def on_click(self, event: events.Click) -> None:
        at = event.get_content_offset(self)
        index = self.index_at(at.y) if at is not None else None
        if index is None or at is None:
            return
        event.stop()
        if spot := spot_at(self.draw_line(index, self.text_width), at.x):
            self.post_message(self.SpotClicked(spot))
        if self.has_cursor:
            self.choose(index, at.x)
        if event.chain == 2:
            self.post_message(self.Opened())

    def choose(self, index: int, x: int) -> None:
        """Move the cursor to the clicked line."""
        self.move_to(index)


class TextLines(Lines):
    """A panel of finished lines: details, help, previews."""

    def __init__(self, *, id: str | None = None, has_cursor: bool = False) -> None:
        super().__init__(id=id, has_cursor=has_cursor)
        self.lines: list[Line] = []

    def show(self, lines: list[Line]) -> None:
        """Show these lines. Lines that look the same are not drawn again."""
        old, self.lines = self.lines, lines
        if len(old) != len(lines):
            self.redraw()
            return
        self.lines_changed(index for index, (was, now) in enumerate(zip(old, lines, strict=True)) if was != now)

    def line_count(self) -> int:
        return len(self.lines)

    def draw_line(self, index: int, width: int) -> Line:
        return self.lines[index]

"""The one widget behind every list of the room: grid, table, log, transcript and diff are uses of it.

A subclass defines how many lines there are (`line_count`) and what one looks like (`draw_line`, pure); this base
has the cursor, paging, scrolling, following, the mouse, a cache of strips, and redraws single lines:

* `lines_changed(indices)` when lines look different: only the visible ones are drawn again;
* `count_changed()` when their number is another; `redraw()` when everything is different.

It draws by Textual's line API: what a frame costs is what visibly changed, however long the list is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, Protocol, Self, runtime_checkable

from rich.style import Style
from textual import events
from textual.content import Content
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from swarm_tui.model.text import plain
from swarm_tui.room.colours import styles_of
from swarm_tui.room.draw.glyphs import ASCII_OF
from swarm_tui.room.draw.parts import Line, cut_text, spot_at, text_of

SELECTED: Final = Style(reverse=True)


@runtime_checkable
class HandlesKeys(Protocol):
    """A screen that turns keys into actions."""

    def press_key(self, event: events.Key) -> bool: ...


class Lines(ScrollView, can_focus=True, inherit_bindings=False):
    """A list of lines with a cursor, of any length."""

    ALLOW_MAXIMIZE = False
    STRIPS_KEPT: ClassVar[int] = 4096

    class CursorMoved(Message):
        """The cursor is on another line."""

    class Opened(Message):
        """A line was opened by a double click (Enter is an action of the screen)."""

    class SpotClicked(Message):
        """A part was clicked that leads somewhere."""

        def __init__(self, spot: str) -> None:
            self.spot = spot
            super().__init__()

    class Resized(Message):
        """The panel has another size: what was drawn for its width is to be drawn anew."""

    _keeps_drawn = False
    _width_in_frame = 0

    def __init__(self, *, id: str | None = None, has_cursor: bool = True, has_heading: bool = False) -> None:
        super().__init__(id=id)
        self.cursor = 0
        self.has_cursor = has_cursor
        self.has_heading = has_heading
        self.is_following = False
        self._strips: dict[int, Strip] = {}
        self._titles = ("", "")
        self._drawn_titles: dict[str, str] = {}

    # What a subclass defines.

    def line_count(self) -> int:
        return 0

    def draw_line(self, index: int, width: int) -> Line:
        """Return one line; called again only after `lines_changed` named it."""
        return ()

    def draw_heading(self, width: int) -> Line:
        """Return the line that stays on top when `has_heading`."""
        return ()

    def line_role(self, index: int) -> str:
        """Return the role that is laid over a whole line: the cursor, as a rule."""
        return "line" if self.has_cursor and index == self.cursor else ""

    # What changed.

    def lines_changed(self, indices: Iterable[int]) -> None:
        """Draw these lines again, those of them that can be seen."""
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
        """Show that there are more or fewer lines; lines that were there before are not drawn anew."""
        count = self.line_count()
        height = count + int(self.has_heading)
        if self.virtual_size.height != height:
            self.virtual_size = Size(0, height)
        last = max(0, count - 1)
        if self.is_following or self.cursor > last:
            self.move_to(last)
        self.refresh()

    def redraw(self) -> None:
        """Forget every drawn line and draw anew."""
        self._strips.clear()
        self.count_changed()

    @property
    def is_seen(self) -> bool:
        """Whether its screen is the one that is shown, and has room for it."""
        return self.screen.is_current and self.size.height > 0

    def title(self, title: str, subtitle: str = "") -> None:
        """Set the facts in the panel's border. They are text, never markup."""
        self._titles = (title, subtitle)
        self._draw_titles()

    def _draw_titles(self) -> None:
        sides = (("border_title", self._titles[0], -1), ("border_subtitle", self._titles[1], self.size.height))
        for side, text, y in sides:
            text = plain(text, 500)
            if self.outer_size.width:
                # Cut here, because Textual's own ellipsis is not ASCII.
                text = cut_text(text, max(8, self.outer_size.width - 6))
            text = text.translate(ASCII_OF) if styles_of(self).is_ascii else text
            if self._drawn_titles.get(side) == text:
                continue
            self._drawn_titles[side] = text
            # Textual draws the whole panel anew for a title, at every step of the cursor; its line alone is enough.
            self._keeps_drawn = True
            setattr(self, side, Content(text) if text else None)
            self._keeps_drawn = False
            self.refresh(Region(-2, y, self.outer_size.width, 1))

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        if self._keeps_drawn:
            return self
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    # Cursor and scroll.

    @property
    def text_width(self) -> int:
        """How many cells a line has; the place of the scrollbar is kept free always."""
        return self._width_in_frame or max(1, self.size.width - self.styles.scrollbar_size_vertical)

    @property
    def first_visible(self) -> int:
        return self.scroll_offset.y

    @property
    def visible_rows(self) -> int:
        return max(1, self.size.height - int(self.has_heading))

    def move(self, rows: int, columns: int = 0) -> None:
        """Move the cursor, or scroll where there is none."""
        if not self.has_cursor:
            self.scroll_rows(self.first_visible + rows)
        elif rows:
            self.move_to(self.cursor + rows)

    def move_page(self, pages: float) -> None:
        self.move(int(self.visible_rows * pages) or (1 if pages > 0 else -1))

    def move_end(self, is_bottom: bool) -> None:
        self.move(self.line_count() if is_bottom else -self.line_count())

    def move_to(self, index: int) -> None:
        """Put the cursor on a line and bring it into view."""
        index = max(0, min(self.line_count() - 1, index))
        old, self.cursor = self.cursor, index
        self.show_line(index)
        if old != index:
            self.lines_changed((old, index))
            self.post_message(self.CursorMoved())

    def show_line(self, index: int) -> None:
        """Scroll as little as is needed to have a line in view; before the first layout there is nothing to scroll."""
        if not self.size.height:
            return
        top, rows = self.first_visible, self.visible_rows
        if index < top:
            self.scroll_rows(index)
        elif index >= top + rows:
            self.scroll_rows(index - rows + 1)

    def scroll_rows(self, top: int) -> None:
        """Scroll so that the line `top` is the first in view."""
        top = max(0, min(top, self.line_count() - self.visible_rows))
        if top != self.first_visible:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    # Drawing.

    def render_lines(self, crop: Region) -> list[Strip]:
        # Textual looks the size up for each line that asks for it, which is a tenth of what a key costs.
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

    # Text that a person selects with the mouse.

    def _selectable(self, strip: Strip, index: int) -> Strip:
        """Return the line so that Textual knows the place of each part, with what is selected of it reversed."""
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
        """Another theme: nothing drawn before holds."""
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

    # Keys go straight to the screen's actions; the mouse does what it does in every list.

    def on_key(self, event: events.Key) -> None:
        if isinstance(self.screen, HandlesKeys) and self.screen.press_key(event):
            event.stop()
            event.prevent_default()

    def index_at(self, y: int) -> int | None:
        """Return the line at a height of the widget's content, or None."""
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
        """Put the cursor where the mouse was clicked."""
        self.move_to(index)


class TextLines(Lines):
    """A panel of ready lines: detail panels, help, previews."""

    def __init__(self, *, id: str | None = None, has_cursor: bool = False) -> None:
        super().__init__(id=id, has_cursor=has_cursor)
        self.lines: list[Line] = []

    def show(self, lines: list[Line]) -> None:
        """Show these lines; what looks the same is not drawn again."""
        old, self.lines = self.lines, lines
        if len(old) != len(lines):
            self.redraw()
            return
        self.lines_changed(index for index, (was, now) in enumerate(zip(old, lines, strict=True)) if was != now)

    def line_count(self) -> int:
        return len(self.lines)

    def draw_line(self, index: int, width: int) -> Line:
        return self.lines[index]

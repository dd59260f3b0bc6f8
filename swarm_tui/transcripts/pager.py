"""Pages of a transcript. A position is a record and a line within it, so that moving reads only one screen."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

from swarm_tui.transcripts.entries import Entry, Role, parse_record
from swarm_tui.transcripts.filters import (
    EVERYTHING,
    EntryFilter,
    Matches,
    SearchStep,
    entries_of,
    search_after,
    search_before,
)
from swarm_tui.transcripts.layout import Density, TextLine, lay_out
from swarm_tui.transcripts.window import RecordSpan, Window, WindowChange

LAYOUTS_KEPT: Final = 512
LAYOUT_CHARACTERS_KEPT: Final = 1 << 19
CALLS_KEPT: Final = 1_000
CALLS_LOOKED_BACK: Final = 8
COUNTED_AT_MOST: Final = 1 << 22


class LinePosition(NamedTuple):
    """The position of a line: the offset of its record and the line number within it."""

    offset: int
    line: int = 0


class PageLine(NamedTuple):
    """A line of the page with its position."""

    position: LinePosition
    line: TextLine


class Pager:
    """The current page of a transcript; follows the end of the file until the user moves away."""

    def __init__(self, window: Window, width: int = 80, height: int = 24, *, is_file: bool = False) -> None:
        self.window = window
        self.is_file = is_file
        """Whether the file is plain text, without times and roles."""
        self.width = width
        self.height = height
        self.density = Density.READABLE
        self.entry_filter: EntryFilter = EVERYTHING
        self.top = LinePosition(0)
        self.is_following = True
        self.unseen = 0
        """The number of new records while not following."""
        self._matches: Matches | None = None
        self._unfolded: dict[int, bool] = {}
        self._layouts: OrderedDict[tuple[int, int], tuple[TextLine, ...]] = OrderedDict()
        self._layout_characters = 0
        self._tools: OrderedDict[str, str] = OrderedDict()
        self._last_top: LinePosition | None = None

    @property
    def is_searching(self) -> bool:
        return self._matches is not None and not self._matches.is_done

    @property
    def matches(self) -> Matches | None:
        """The records that match the filter; None without a filter."""
        return self._matches

    def poll(self, now: float) -> WindowChange:
        """Read the changes of the file and return them; follow its end."""
        old_end = self.window.end
        change = self.window.poll(now)
        if change is WindowChange.RESTARTED:
            self._clear_layouts()
            self._unfolded.clear()
            self.unseen = 0
            self.set_filter(self.entry_filter)
            self.go_to_end()
        elif change is WindowChange.GREW:
            self._last_top = None
            if self._matches is not None:
                self._matches.advance(0.01)
            if self.is_following:
                self.go_to_end()
            elif self.top < self._top_of_last_page():
                self.unseen += self._count_new(old_end)
        return change

    def resize(self, width: int, height: int) -> None:
        """Change the size; keep the top record, or the end while following."""
        if (width, height) == (self.width, self.height):
            return
        if width != self.width:
            self._clear_layouts()
        self.width, self.height = width, height
        self._keep_in_range()

    def set_filter(self, entry_filter: EntryFilter) -> None:
        """Show only matching entries, at the nearest position."""
        self.entry_filter = entry_filter
        self._clear_layouts()
        self._matches = None if entry_filter.is_everything else Matches(self.window, entry_filter)
        if self._matches is not None:
            self._matches.advance(0.03)
        self._keep_in_range()

    def advance(self, seconds: float) -> None:
        """Collect more of the matching records."""
        if self._matches is not None:
            self._matches.advance(seconds)
            self._last_top = None
            if self.is_following:
                self.go_to_end()

    def set_density(self, density: Density) -> None:
        self.density = density
        self._unfolded.clear()
        self._clear_layouts()
        self._keep_in_range()

    def toggle(self, offset: int) -> None:
        self._unfolded[offset] = not self._unfolded.get(offset, self.density is Density.WHOLE)
        self._clear_layouts()
        self._keep_in_range()

    def visible_lines(self) -> list[PageLine]:
        """Return the lines of the page, at most `height`."""
        page: list[PageLine] = []
        span = self._record_from(self.top.offset)
        skipped = self.top.line if span is not None and span.start == self.top.offset else 0
        while span is not None and len(page) < self.height:
            lines = self.lines_of(span)
            for number in range(skipped, min(len(lines), skipped + self.height - len(page))):
                page.append(PageLine(LinePosition(span.start, number), lines[number]))
            skipped = 0
            span = self._record_after(span)
        return page

    def scroll(self, count: int) -> int:
        """Move the page by lines, up if negative, and return the distance; moving up stops following."""
        if count < 0:
            moved, self.top = self._position_above(self.top, -count)
            if moved:
                self.is_following = False
            return -moved
        moved, position = self._position_below(self.top, count)
        last = self._top_of_last_page()
        if position >= last:
            moved, position = self._lines_between(self.top, last, moved), last
            self._follow_end()
        self.top = position
        return moved

    def go_to_end(self) -> None:
        self.top = self._top_of_last_page()
        self._follow_end()

    def go_to_start(self) -> None:
        first = self._record_from(0)
        self.top = min(LinePosition(first.start if first is not None else 0), self._top_of_last_page())
        self.is_following = False

    def pause(self) -> None:
        """Stop following the end of the file."""
        self.is_following = False

    def go_to(self, offset: int, above: int = 2) -> None:
        """Show the record at `offset`, `above` lines below the top; if negative, that many of its lines are above."""
        start = LinePosition(offset)
        _, self.top = self._position_above(start, above) if above >= 0 else self._position_below(start, -above)
        self.is_following = False
        self.top = min(self.top, self._top_of_last_page())

    def search(self, entry_filter: EntryFilter, offset: int, is_backwards: bool) -> Iterator[SearchStep]:
        """Search from the record at `offset`, excluding it; yields at least once per slab."""
        if is_backwards:
            return search_before(self.window, entry_filter, offset)
        span = self.window.after(offset)
        return search_after(self.window, entry_filter, span.end if span is not None else self.window.end)

    def percent(self) -> int:
        """Return the position of the top of the page in percent; 100 if the end is shown."""
        if not self.window.end or self.top >= self._top_of_last_page():
            return 100
        return min(99, 100 * self.top.offset // self.window.end)

    def lines_of(self, span: RecordSpan) -> tuple[TextLine, ...]:
        """Return the lines of a record in the current layout."""
        lines = self._layouts.get(span)
        if lines is None:
            is_whole = self._unfolded.get(span.start, False)
            entries = self.entry_filter.matching(self.entries_of(span))
            density = Density.WHOLE if is_whole else self._density_of(span)
            lines = lay_out(entries, self.width, density, is_file=self.is_file)
            self._cache_layout(span, lines)
        return lines

    def entries_of(self, span: RecordSpan) -> tuple[Entry, ...]:
        """Return all entries of a record; results have the name of their tool."""
        entries = entries_of(span, self.window.read(span))
        for entry in entries:
            if entry.role is Role.CALL and entry.call:
                self._remember_tool(entry.call, entry.tool)
        return tuple(
            entry._replace(tool=self._tool_of(entry.call, span))
            if entry.role is Role.RESULT and entry.call and not entry.tool
            else entry
            for entry in entries
        )

    def _density_of(self, span: RecordSpan) -> Density:
        is_folded = self._unfolded.get(span.start) is False and self.density is Density.WHOLE
        return Density.READABLE if is_folded else self.density

    def _tool_of(self, call: str, span: RecordSpan) -> str:
        tool = self._tools.get(call)
        if tool is not None:
            return tool
        needle = call.encode()
        for index, earlier in enumerate(self.window.spans_before(span.start)):
            if index >= CALLS_LOOKED_BACK:
                break
            raw = self.window.read(earlier)
            if needle in raw:
                for entry in parse_record(raw):
                    if entry.role is Role.CALL and entry.call == call:
                        self._remember_tool(call, entry.tool)
                        return entry.tool
        self._remember_tool(call, "")
        return ""

    def _remember_tool(self, call: str, tool: str) -> None:
        self._tools[call] = tool
        if len(self._tools) > CALLS_KEPT:
            self._tools.popitem(last=False)

    def _cache_layout(self, span: RecordSpan, lines: tuple[TextLine, ...]) -> None:
        self._layouts[span] = lines
        self._layout_characters += _weight(lines)
        while len(self._layouts) > LAYOUTS_KEPT or (
            self._layout_characters > LAYOUT_CHARACTERS_KEPT and len(self._layouts) > 1
        ):
            _, gone = self._layouts.popitem(last=False)
            self._layout_characters -= _weight(gone)

    def _clear_layouts(self) -> None:
        self._layouts.clear()
        self._layout_characters = 0
        self._last_top = None

    def _keep_in_range(self) -> None:
        """Move the position to a visible line after a change of the filter or the layout."""
        self._last_top = None
        if self.is_following:
            self.go_to_end()
            return
        span = self._record_from(self.top.offset)
        if span is None:
            self.top = self._top_of_last_page()
            return
        lines = len(self.lines_of(span)) if span.start == self.top.offset else 1
        self.top = min(LinePosition(span.start, min(self.top.line, max(0, lines - 1))), self._top_of_last_page())

    def _follow_end(self) -> None:
        self.is_following = True
        self.unseen = 0

    def _count_new(self, old_end: int) -> int:
        length = min(self.window.end - old_end, COUNTED_AT_MOST)
        return max(1, self.window.source.pread(length, old_end).count(b"\n")) if length > 0 else 0

    def _record_from(self, offset: int) -> RecordSpan | None:
        """Return the visible record at `offset`, or the next one."""
        if self._matches is not None:
            return self._matches.after(offset)
        return self.window.after(offset)

    def _record_after(self, span: RecordSpan) -> RecordSpan | None:
        return self._record_from(span.end)

    def _record_before(self, offset: int) -> RecordSpan | None:
        return self._matches.before(offset) if self._matches is not None else self.window.before(offset)

    def _position_above(self, position: LinePosition, count: int) -> tuple[int, LinePosition]:
        moved = min(count, position.line)
        offset, line = position.offset, position.line - moved
        while moved < count:
            span = self._record_before(offset)
            if span is None:
                break
            length = len(self.lines_of(span))
            step = min(length, count - moved)
            moved += step
            offset, line = span.start, length - step
        return moved, LinePosition(offset, line)

    def _position_below(self, position: LinePosition, count: int) -> tuple[int, LinePosition]:
        moved = 0
        span = self._record_from(position.offset)
        line = position.line
        while span is not None:
            length = len(self.lines_of(span))
            if count - moved < length - line:
                return count, LinePosition(span.start, line + count - moved)
            moved += max(0, length - line)
            line = 0
            following = self._record_after(span)
            if following is None:
                return moved, LinePosition(span.end)
            span = following
        return moved, position

    def _top_of_last_page(self) -> LinePosition:
        if self._last_top is None:
            self._last_top = self._position_above(LinePosition(self.window.end), self.height)[1]
        return self._last_top

    def _lines_between(self, start: LinePosition, stop: LinePosition, at_most: int) -> int:
        """Return the number of lines between two positions, up to `at_most`; 0 if the second is not later."""
        if stop <= start:
            return 0
        moved = 0
        while moved < at_most and self._position_below(start, moved)[1] < stop:
            moved += 1
        return moved


def _weight(lines: tuple[TextLine, ...]) -> int:
    return sum(len(line.text) for line in lines) + 100 * len(lines)

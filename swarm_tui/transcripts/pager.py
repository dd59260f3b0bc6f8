"""A page of a transcript: a place is a record and a line within it, so moving costs a screenful."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final, NamedTuple

from swarm_tui.transcripts.entries import Entry, Role, parse_record
from swarm_tui.transcripts.filters import EVERYTHING, EntryFilter, Matches, SearchStep, search_after, search_before
from swarm_tui.transcripts.layout import Density, Line, lay_out
from swarm_tui.transcripts.window import RECORD_LIMIT, RecordSpan, Window, WindowChange

LAYOUTS_KEPT: Final = 512
LAYOUT_CHARACTERS_KEPT: Final = 1 << 19
CALLS_KEPT: Final = 1_000
CALLS_LOOKED_BACK: Final = 8
COUNTED_AT_MOST: Final = 1 << 22


class LinePosition(NamedTuple):
    """A line of the transcript: the offset of its record and its number within it."""

    offset: int
    line: int = 0


class Shown(NamedTuple):
    """A line of the page and where it comes from."""

    place: LinePosition
    line: Line


class Pager:
    """Holds the place in a transcript; gives the lines of the page; follows the end until a person moves away."""

    def __init__(self, window: Window, width: int = 80, height: int = 24, *, is_file: bool = False) -> None:
        self.window = window
        self.is_file = is_file
        """Whether it is a plain file, without times and roles."""
        self.width = width
        self.height = height
        self.density = Density.READABLE
        self.choice: EntryFilter = EVERYTHING
        self.top = LinePosition(0)
        self.is_following = True
        self.unseen = 0
        """Records that came while not following."""
        self._matches: Matches | None = None
        self._unfolded: dict[int, bool] = {}
        self._layouts: OrderedDict[tuple[int, int], tuple[Line, ...]] = OrderedDict()
        self._layout_characters = 0
        self._tools: OrderedDict[str, str] = OrderedDict()
        self._last_top: LinePosition | None = None

    @property
    def is_searching(self) -> bool:
        """Whether the records that fit are still being collected."""
        return self._matches is not None and not self._matches.is_done

    @property
    def matches(self) -> Matches | None:
        """The records that fit the choice; None when everything is shown."""
        return self._matches

    def poll(self, now: float) -> WindowChange:
        """Look whether the file changed; follow its end."""
        old_end = self.window.end
        change = self.window.poll(now)
        if change is WindowChange.RESTARTED:
            self._forget_layouts()
            self._unfolded.clear()
            self.unseen = 0
            self.choose(self.choice)
            self.to_end()
        elif change is WindowChange.GREW:
            self._last_top = None
            if self._matches is not None:
                self._matches.advance(0.01)
            if self.is_following:
                self.to_end()
            elif self.top < self._place_of_last_page():
                self.unseen += self._count_new(old_end)
        return change

    def resize(self, width: int, height: int) -> None:
        """Take another size; the top record stays, the end stays when followed."""
        if (width, height) == (self.width, self.height):
            return
        if width != self.width:
            self._forget_layouts()
        self.width, self.height = width, height
        self._settle()

    def choose(self, choice: EntryFilter) -> None:
        """Show only the entries that fit; the place stays as near as it can."""
        self.choice = choice
        self._forget_layouts()
        self._matches = None if choice.is_everything else Matches(self.window, choice)
        if self._matches is not None:
            self._matches.advance(0.03)
        self._settle()

    def advance(self, seconds: float) -> None:
        """Collect more of the records that fit."""
        if self._matches is not None:
            self._matches.advance(seconds)
            self._last_top = None
            if self.is_following:
                self.to_end()

    def set_density(self, density: Density) -> None:
        """Show more or less of each entry."""
        self.density = density
        self._unfolded.clear()
        self._forget_layouts()
        self._settle()

    def toggle(self, offset: int) -> None:
        """Fold or unfold one record."""
        self._unfolded[offset] = not self._unfolded.get(offset, self.density is Density.WHOLE)
        self._forget_layouts()
        self._settle()

    def visible(self) -> list[Shown]:
        """Return the lines of the page, at most `height`."""
        page: list[Shown] = []
        span = self._at(self.top.offset)
        skipped = self.top.line if span is not None and span.start == self.top.offset else 0
        while span is not None and len(page) < self.height:
            lines = self.lines_of(span)
            for number in range(skipped, min(len(lines), skipped + self.height - len(page))):
                page.append(Shown(LinePosition(span.start, number), lines[number]))
            skipped = 0
            span = self._next(span)
        return page

    def scroll(self, count: int) -> int:
        """Move the page by lines, up when negative; return how far it moved. Moving up stops the following."""
        if count < 0:
            moved, self.top = self._up(self.top, -count)
            if moved:
                self.is_following = False
            return -moved
        moved, place = self._down(self.top, count)
        last = self._place_of_last_page()
        if place >= last:
            moved, place = self._distance(self.top, last, moved), last
            self._see_end()
        self.top = place
        return moved

    def to_end(self) -> None:
        """Show the last page and follow."""
        self.top = self._place_of_last_page()
        self._see_end()

    def to_start(self) -> None:
        """Show the first page."""
        first = self._at(0)
        self.top = min(LinePosition(first.start if first is not None else 0), self._place_of_last_page())
        self.is_following = False

    def pause(self) -> None:
        """Stay here while the file grows."""
        self.is_following = False

    def go_to(self, offset: int, above: int = 2) -> None:
        """Show the record at `offset`, some lines below the top; negative, so many of its lines are above."""
        _, self.top = self._up(LinePosition(offset), above) if above >= 0 else self._down(LinePosition(offset), -above)
        self.is_following = False
        self.top = min(self.top, self._place_of_last_page())

    def search(self, choice: EntryFilter, offset: int, is_backwards: bool) -> Iterator[SearchStep]:
        """Search from the record at `offset`, which itself is left out; pauses at least once a slab."""
        if is_backwards:
            return search_before(self.window, choice, offset)
        span = self.window.after(offset)
        return search_after(self.window, choice, span.end if span is not None else self.window.end)

    def percent(self) -> int:
        """Return how far through the file the top of the page is; 100 when its end is shown."""
        if not self.window.end or self.top >= self._place_of_last_page():
            return 100
        return min(99, 100 * self.top.offset // self.window.end)

    def lines_of(self, span: RecordSpan) -> tuple[Line, ...]:
        """Return the lines of one record as it is shown now."""
        lines = self._layouts.get(span)
        if lines is None:
            is_whole = self._unfolded.get(span.start, False)
            entries = self.choice.matching(self.entries_of(span))
            density = Density.WHOLE if is_whole else self._density_of(span)
            lines = lay_out(entries, self.width, density, is_file=self.is_file)
            self._keep(span, lines)
        return lines

    def entries_of(self, span: RecordSpan) -> tuple[Entry, ...]:
        """Return all entries of one record, results with the name of their tool."""
        raw = self.window.read(span)
        length = span.end - span.start
        entries = parse_record(raw, length if length > RECORD_LIMIT else None)
        for entry in entries:
            if entry.role is Role.CALL and entry.call:
                self._know_tool(entry.call, entry.tool)
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
                        self._know_tool(call, entry.tool)
                        return entry.tool
        self._know_tool(call, "")
        return ""

    def _know_tool(self, call: str, tool: str) -> None:
        self._tools[call] = tool
        if len(self._tools) > CALLS_KEPT:
            self._tools.popitem(last=False)

    def _keep(self, span: RecordSpan, lines: tuple[Line, ...]) -> None:
        self._layouts[span] = lines
        self._layout_characters += _weight(lines)
        while len(self._layouts) > LAYOUTS_KEPT or (
            self._layout_characters > LAYOUT_CHARACTERS_KEPT and len(self._layouts) > 1
        ):
            _, gone = self._layouts.popitem(last=False)
            self._layout_characters -= _weight(gone)

    def _forget_layouts(self) -> None:
        self._layouts.clear()
        self._layout_characters = 0
        self._last_top = None

    def _settle(self) -> None:
        """Bring the place back to where there is something after what is shown has changed."""
        self._last_top = None
        if self.is_following:
            self.to_end()
            return
        span = self._at(self.top.offset)
        if span is None:
            self.top = self._place_of_last_page()
            return
        lines = len(self.lines_of(span)) if span.start == self.top.offset else 1
        self.top = min(LinePosition(span.start, min(self.top.line, max(0, lines - 1))), self._place_of_last_page())

    def _see_end(self) -> None:
        self.is_following = True
        self.unseen = 0

    def _count_new(self, old_end: int) -> int:
        length = min(self.window.end - old_end, COUNTED_AT_MOST)
        return max(1, self.window.source.pread(length, old_end).count(b"\n")) if length > 0 else 0

    def _at(self, offset: int) -> RecordSpan | None:
        """Return the shown record at `offset`, or the first one behind it."""
        if self._matches is not None:
            return self._matches.after(offset)
        return self.window.after(offset)

    def _next(self, span: RecordSpan) -> RecordSpan | None:
        return self._at(span.end)

    def _previous(self, offset: int) -> RecordSpan | None:
        return self._matches.before(offset) if self._matches is not None else self.window.before(offset)

    def _up(self, place: LinePosition, count: int) -> tuple[int, LinePosition]:
        moved = min(count, place.line)
        offset, line = place.offset, place.line - moved
        while moved < count:
            span = self._previous(offset)
            if span is None:
                break
            length = len(self.lines_of(span))
            step = min(length, count - moved)
            moved += step
            offset, line = span.start, length - step
        return moved, LinePosition(offset, line)

    def _down(self, place: LinePosition, count: int) -> tuple[int, LinePosition]:
        moved = 0
        span = self._at(place.offset)
        line = place.line
        while span is not None:
            length = len(self.lines_of(span))
            if count - moved < length - line:
                return count, LinePosition(span.start, line + count - moved)
            moved += max(0, length - line)
            line = 0
            following = self._next(span)
            if following is None:
                return moved, LinePosition(span.end)
            span = following
        return moved, place

    def _place_of_last_page(self) -> LinePosition:
        if self._last_top is None:
            self._last_top = self._up(LinePosition(self.window.end), self.height)[1]
        return self._last_top

    def _distance(self, start: LinePosition, stop: LinePosition, at_most: int) -> int:
        """Return how many lines lie between two places, of which the second is not before the first."""
        if stop <= start:
            return 0
        moved = 0
        while moved < at_most and self._down(start, moved)[1] < stop:
            moved += 1
        return moved


def _weight(lines: tuple[Line, ...]) -> int:
    return sum(len(line.text) for line in lines) + 100 * len(lines)

"""A diff of any length. Syntax is highlighted only for hunks that become visible."""

from __future__ import annotations

from bisect import bisect_right

from rich.cells import cell_len

from swarm_tui.model.commits import Diff, DiffFile
from swarm_tui.room.draw.code import draw_bare_line, draw_hunk
from swarm_tui.room.draw.spans import Line, Span, fold_line, width_of
from swarm_tui.room.fixes.draw import draw_diff_summary, draw_file_heading
from swarm_tui.room.widgets.lines import Lines

EMPTY: Diff = Diff((), ())


class DiffLines(Lines):
    """Shows one diff below a list of its files."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, has_cursor=False)
        self.diff = EMPTY
        self._above: list[Line] = []
        self._hunks: dict[int, list[Line]] = {}
        self._hunk_starts: list[int] = []
        self._rows: list[tuple[int, int]] = []
        """For each row: the number of its line, and the position of the row within that line."""
        self._width = 0

    def show(self, diff: Diff) -> None:
        """Show another diff from its beginning, or from its first change if that would not be visible."""
        if diff is self.diff:
            return
        self.diff = diff
        self._hunks = {}
        self._hunk_starts = [hunk for file in diff.files for hunk in file.hunks]
        self._width = 0
        self.redraw()
        self.scroll_rows(self._first_row())

    def _first_row(self) -> int:
        """Return the row to start at, so that the first change of a single file is completely visible."""
        if len(self.diff.files) != 1 or self.diff.is_truncated:
            return 0
        self._fit_width()
        changed = (row for row in range(len(self._rows)) if self.line_role(row))
        first = next(changed, 0)
        last = first
        while last + 1 < len(self._rows) and self.line_role(last + 1):
            last += 1
        return max(0, min(first, last + 1 - self.visible_rows))

    def move_hunk(self, direction: int) -> bool:
        """Scroll to the next or previous hunk. Return False if there is none."""
        self._fit_width()
        hunks = set(self._hunk_starts)
        places = [
            len(self._above) + row for row, (number, part) in enumerate(self._rows) if number in hunks and not part
        ]
        here = self.first_visible
        if direction > 0:
            after = [place for place in places if place > here]
            target = after[0] if after else None
        else:
            before = [place for place in places if place < here]
            target = before[-1] if before else None
        if target is None:
            return False
        self.scroll_rows(target)
        return True

    def line_count(self) -> int:
        self._fit_width()
        return len(self._above) + len(self._rows)

    def draw_line(self, index: int, width: int) -> Line:
        if index < len(self._above):
            return self._above[index]
        number, part = self._rows[index - len(self._above)]
        if number < 0:
            return draw_file_heading(self.diff.files[-number - 1], width)
        line = self._draw_whole(number)
        folded = fold_line(line, width) if width_of(line) > width else [line]
        return folded[min(part, len(folded) - 1)]

    def _draw_whole(self, number: int) -> Line:
        at = bisect_right(self._hunk_starts, number) - 1
        file = self._file_of(number)
        if at < 0 or file is None or self._hunk_starts[at] < file.start:
            return draw_bare_line(self.diff.lines[number])
        start = self._hunk_starts[at]
        drawn = self._hunks.get(start)
        if drawn is None:
            end = self._hunk_starts[at + 1] if at + 1 < len(self._hunk_starts) else file.end
            if len(self._hunks) > 200:
                self._hunks.clear()
            drawn = self._hunks[start] = draw_hunk(self.diff.lines[start : min(end, file.end)], file.path)
        return drawn[number - start]

    def line_role(self, index: int) -> str:
        row = index - len(self._above)
        number = self._rows[row][0] if row >= 0 else -1
        return {"+": "plus", "-": "minus"}.get(self.diff.lines[number][:1], "") if number >= 0 else ""

    def _file_of(self, number: int) -> DiffFile | None:
        at = bisect_right(self.diff.files, number, key=lambda file: file.start) - 1
        return self.diff.files[at] if at >= 0 else None

    def _fit_width(self) -> None:
        width = self.text_width
        if self._width == width:
            return
        self._width = width
        self._rows = _rows_of(self.diff, width)
        # For a single file the heading already has these numbers.
        self._above = [*draw_diff_summary(self.diff, width), []] if len(self.diff.files) > 1 else []
        if self.diff.is_truncated:
            self._above.insert(0, [Span("diff too long, the rest is not shown", "warning")])


def _rows_of(diff: Diff, width: int) -> list[tuple[int, int]]:
    """Return the rows of a diff: numbers of lines, and -1 - index for the heading of each file."""
    rows: list[tuple[int, int]] = []
    for place, file in enumerate(diff.files):
        rows.append((-1 - place, 0))
        for number in range(file.hunks[0] if file.hunks else file.end, file.end):
            line = diff.lines[number]
            # A line with fewer characters than half of the width always fits.
            parts = 1 if len(line) * 2 <= width or cell_len(line) <= width else len(fold_line([Span(line)], width))
            rows += [(number, part) for part in range(parts)]
    return rows

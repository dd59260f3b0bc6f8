"""A diff of any length: only the hunks that come into view are read as code."""

from __future__ import annotations

from bisect import bisect_right

from rich.cells import cell_len

from swarm_tui.model.diff import Diff, DiffFile
from swarm_tui.room.draw.code import draw_bare_line, draw_hunk
from swarm_tui.room.draw.fixes import draw_diff_summary, draw_file_heading
from swarm_tui.room.draw.parts import Line, Part, fold_line, width_of
from swarm_tui.room.widgets.lines import Lines

EMPTY: Diff = Diff((), ())


class DiffLines(Lines):
    """Shows one diff, above it the files that it touches."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id, has_cursor=False)
        self.diff = EMPTY
        self._above: list[Line] = []
        self._hunks: dict[int, list[Line]] = {}
        self._hunk_starts: list[int] = []
        self._rows: list[tuple[int, int]] = []
        """Each row: the number of a line, and which of the rows that it takes this is."""
        self._width = 0

    def show(self, diff: Diff) -> None:
        """Show another diff from its beginning."""
        if diff is self.diff:
            return
        self.diff = diff
        self._hunks = {}
        self._hunk_starts = [hunk for file in diff.files for hunk in file.hunks]
        self._width = 0
        self.scroll_rows(0)
        self.redraw()

    def move_hunk(self, direction: int) -> bool:
        """Scroll to the next or the previous hunk; False when there is none."""
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
        # The heading of a single file already holds everything.
        self._above = [*draw_diff_summary(self.diff, width), []] if len(self.diff.files) > 1 else []
        if self.diff.is_truncated:
            self._above.insert(0, [Part("this diff is too long to show whole", "warning")])


def _rows_of(diff: Diff, width: int) -> list[tuple[int, int]]:
    """Return what is shown of a diff: numbers of lines, and for each file's header one heading, as -1 - its place."""
    rows: list[tuple[int, int]] = []
    for place, file in enumerate(diff.files):
        rows.append((-1 - place, 0))
        for number in range(file.hunks[0] if file.hunks else file.end, file.end):
            line = diff.lines[number]
            # No line of fewer characters than half the width can be wider than it.
            parts = 1 if len(line) * 2 <= width or cell_len(line) <= width else len(fold_line([Part(line)], width))
            rows += [(number, part) for part in range(parts)]
    return rows

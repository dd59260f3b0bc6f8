"""Thousands of tests, summed up: a row for each file, or for each folder where the files are too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from swarm_tui.model.text import plain
from swarm_tui.room.draw.arrange import Group
from swarm_tui.room.draw.frame import draw_bar
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill
from swarm_tui.room.draw.layout import Row
from swarm_tui.room.draw.parts import Line, Part, align_right, cut_line, cut_middle, pad_text, whole_entries

GAP: Final = 2
COUNT_WIDTH: Final = 6
LONGEST_NAME: Final = 40
LONGEST_BAR: Final = 30


def by_folder(groups: Sequence[Group], height: int) -> list[Group]:
    """Return groups of files as they are, if they fit into the height, else those of the smallest folders that do."""
    folders = [group.tests[0].partition("::")[0].split("/")[:-1] for group in groups]
    depth = max(map(len, folders), default=0)
    found = list(groups)
    while len(found) > height and depth:
        merged: dict[str, list[str]] = {}
        for folder, group in zip(folders, groups, strict=True):
            merged.setdefault("/".join(folder[:depth]), []).extend(group.tests)
        if len(merged) < 2:
            break
        found = [Group(plain(name, 300) or "/", tuple(tests)) for name, tests in merged.items()]
        depth -= 1
    return found


class FolderCounts:
    """How many tests of each row are in which state, kept while tests change."""

    def __init__(self, rows: Sequence[Row], mark_of: Callable[[str], str]) -> None:
        self._marks = {test: mark_of(test) for row in rows for run in row for test in run.tests}
        self._counts = [Counter(self._marks[test] for run in row for test in run.tests) for row in rows]

    def of(self, row: int) -> Mapping[str, int]:
        return self._counts[row]

    def change(self, test: str, row: int, mark: str) -> bool:
        """Count a test under another mark; return whether that is one."""
        before = self._marks.get(test, "")
        if before == mark:
            return False
        self._marks[test] = mark
        self._counts[row][before] -= 1
        self._counts[row][mark] += 1
        return True


def draw_folder(label: str, counts: Mapping[str, int], width: int) -> Line:
    """Return a row: the name, the number of tests, a bar of their states, and the number of each."""
    total = sum(counts.values())
    name_width = max(8, min(LONGEST_NAME, width // 3))
    line = [
        Part(pad_text(cut_middle(label, name_width), name_width)),
        Part(align_right(f"{total:,}", COUNT_WIDTH), "faint"),
    ]
    left = width - name_width - COUNT_WIDTH - GAP
    bar = min(LONGEST_BAR, left // 2)
    if bar >= 6:
        line += [Part(" " * GAP), *(Part(part.text, part.role) for part in draw_bar(counts, bar))]
        left -= bar + GAP
    pills = []
    for pill, marks in PILLS.items():
        if number := sum(counts.get(mark, 0) for mark in marks):
            pills.append([Part(f"{mark_of_pill(pill).glyph}{number:,}", mark_of_pill(pill).role)])
    return cut_line([*line, Part(" " * GAP), *whole_entries(pills, max(0, left), 1)], width)

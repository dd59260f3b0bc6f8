"""Finds agents that edit the same lines, before their branches collide in the integration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from swarm_tui.model.state import TestRecord

Touch = tuple[int, int, str]
"""The first and the last line, and the test whose agent edits them."""


class Overlap(NamedTuple):
    """Lines of one file that the agents of several tests edit."""

    path: str
    tests: tuple[str, ...]
    lines: tuple[tuple[int, int], ...]
    """The first and the last line of each place, as they are in the base commit; (0, 0) for a new file."""

    @property
    def words(self) -> str:
        """Return `2 agents edit the same lines of src/copy.py: 88-90, 120`."""
        if self.lines == ((0, 0),):
            return f"{len(self.tests)} agents add the same file {self.path}"
        places = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in self.lines[:8])
        more = ", …" if len(self.lines) > 8 else ""
        return f"{len(self.tests)} agents edit the same lines of {self.path}: {places}{more}"


def find_overlaps(records: Iterable[TestRecord]) -> list[Overlap]:
    """Return the lines that several agents edit, one of which at least still works; by file."""
    touched: dict[str, list[Touch]] = {}
    living = set()
    for record in records:
        if not record.is_finished:
            living.add(record.test)
        for edit in record.edits:
            touched.setdefault(edit.path, []).append((edit.first, edit.last, record.test))
    return [
        overlap
        for path, touches in sorted(touched.items())
        if (overlap := _overlap_in(path, touches, living)) is not None
    ]


def _overlap_in(path: str, touches: list[Touch], living: set[str]) -> Overlap | None:
    places, tests = [], set()
    for run in _runs(touches):
        editing = {test for _, _, test in run}
        if len(editing) > 1 and editing & living:
            tests |= editing
            places.append((run[0][0], max(last for _, last, _ in run)))
    return Overlap(path, tuple(sorted(tests)), tuple(places)) if places else None


def _runs(touches: list[Touch]) -> Iterator[list[Touch]]:
    """Return the edits in runs of which each shares a line with one before it."""
    run: list[Touch] = []
    end = -1
    for touch in sorted(touches):
        if run and touch[0] > end:
            yield run
            run = []
        run.append(touch)
        end = max(end, touch[1]) if len(run) > 1 else touch[1]
    if run:
        yield run

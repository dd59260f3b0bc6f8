"""Open a sweep for reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.errors import UsageError
from swarm_tui.journal.append import engine_process_id, is_stopped
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LINE_LIMIT, BadLine, EventFollower
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.snapshot import is_cut_short, read_snapshot
from swarm_tui.journal.state import SweepState, foreign_lines_text
from swarm_tui.model.formatting import counted
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.text import plain


def integrity_warnings(state: SweepState) -> tuple[str, ...]:
    """Return a sentence for each kind of missing or ignored line, most serious first."""
    sentences = []
    if state.foreign_lines:
        sentences.append(foreign_lines_text(state.foreign_lines))
    if state.is_cut_short:
        sentences.append("the end of the journal is missing")
    if state.broken_lines:
        sentences.append(f"ignored {counted(state.broken_lines, 'invalid line')} in the journal")
    if state.lost_events:
        sentences.append(f"{counted(state.lost_events, 'event')} missing in the journal")
    return tuple(sentences)


SLICE: Final = 1 << 22
"""The number of bytes that are read between two progress reports."""


@dataclass(slots=True)
class OpenedSweep:
    """A sweep that is open for reading."""

    folder: SweepFolder
    spec: SweepSpec
    state: SweepState
    follower: EventFollower
    bad_lines: list[BadLine] = field(default_factory=list)
    is_of_past: bool = False
    """Whether this is an earlier state of the sweep."""

    def read_new_events(self, limit: int = LINE_LIMIT) -> bool:
        """Apply the events since the last call. Return whether the journal, and thus the state, was replaced."""
        new = self.follower.read(limit)
        if new.is_restarted:
            self.state = SweepState(self.spec.tests)
            self.bad_lines = []
        self.state.apply_all(new.events)
        self.state.broken_lines += len(new.bad_lines)
        self.bad_lines.extend(new.bad_lines[: max(0, 100 - len(self.bad_lines))])
        return new.is_restarted

    def read_to_end(self, tell: Callable[[int, int], object] = lambda done, size: None) -> None:
        """Apply all events up to the current end of the journal, in slices.

        `tell` is called with the bytes read so far and in total.
        """
        limit = SLICE
        try:
            size = self.follower.path.stat().st_size
        except OSError:
            size = 0
        while True:
            before = self.follower.offset
            self.read_new_events(limit)
            tell(self.follower.offset, size)
            if self.follower.offset >= size:
                return
            if self.follower.offset == before:
                if limit >= LINE_LIMIT:
                    return
                # A line is longer than the slice, or the last line is incomplete.
                limit *= 4

    @property
    def integrity_warnings(self) -> tuple[str, ...]:
        """Why the results of the sweep may be wrong, in sentences."""
        return (*filter(None, [self.spec.why_not_verified]), *integrity_warnings(self.state))

    @property
    def has_running_engine(self) -> bool:
        """Whether an engine is running on this machine, or was running at the earlier time."""
        if self.is_of_past:
            return self.state.started_at is not None and self.state.ended_why is None
        return engine_process_id(self.folder.lock) is not None

    @property
    def why_engine_is_silent(self) -> str:
        """An error and its solution if a signal has stopped the engine; otherwise empty."""
        process_id = engine_process_id(self.folder.lock)
        if not process_id or not is_stopped(process_id):
            return ""
        return f"the engine (process {process_id}) is suspended; resume it with `kill -CONT {process_id}`"

    def find_test(self, name: str) -> TestRecord:
        """Return the test with this node id or agent, this last part of a node id, or this text in either.

        The ways are tried in this order. Raise UsageError unless exactly one test matches in the first successful way.
        """
        records = list(self.state.tests())
        exact = [record for record in records if name in (record.test, record.agent, record.agent_id)]
        ends = [record for record in records if record.test.endswith((f"::{name}", f"/{name}"))]
        parts = [record for record in records if name in record.test or name in record.agent]
        for found in (exact, ends, parts):
            if len(found) == 1:
                return found[0]
            if found:
                several = ", ".join(plain(record.test, 80) for record in found[:4])
                raise UsageError(f"{plain(name, 80)!r} matches {len(found)} tests", f"use one, for example {several}")
        raise UsageError(
            f"unknown test or agent in {self.folder.name}: {plain(name, 80)!r}",
            f"list all with `swarm-tui status {self.folder.name}`",
        )


def open_at_snapshot(folder: SweepFolder) -> OpenedSweep:
    """Open a sweep in the state of its snapshot. The caller reads the later events."""
    spec = folder.read_spec()
    state, offset = read_snapshot(folder.snapshot, folder.events)
    if not offset:
        state = SweepState(spec.tests)
        state.is_cut_short = is_cut_short(folder.snapshot, folder.events)
    return OpenedSweep(folder, spec, state, EventFollower(folder.events, offset))


def open_sweep(folder: SweepFolder, tell: Callable[[int, int], object] = lambda done, size: None) -> OpenedSweep:
    """Open a sweep in its current state. `tell` is called while a long journal is read."""
    opened = open_at_snapshot(folder)
    opened.read_to_end(tell)
    return opened

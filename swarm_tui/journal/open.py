"""Opens a sweep to read it: its specification, its state so far, and the events that are appended later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.errors import UsageError
from swarm_tui.journal.append import engine_process_id, is_stopped
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LINE_LIMIT, BadLine, EventFollower
from swarm_tui.journal.seal import SealWatch, sealer_of
from swarm_tui.journal.snapshot import is_cut_short, read_snapshot
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain

SLICE: Final = 1 << 22
"""How many bytes of a journal are read between two words on how far it is."""


@dataclass(slots=True)
class OpenedSweep:
    """A sweep that is open for reading; nothing in its folder is changed."""

    folder: SweepFolder
    spec: SweepSpec
    state: SweepState
    follower: EventFollower
    bad_lines: list[BadLine] = field(default_factory=list)
    is_of_past: bool = False
    """Whether the state is that of an earlier moment."""

    def read_new_events(self, limit: int = LINE_LIMIT) -> bool:
        """Apply the events since the last call; return whether the journal was replaced, and the state with it."""
        new = self.follower.read(limit)
        if new.is_restarted:
            self.state = SweepState(self.spec.tests)
            self.bad_lines = []
        self.state.apply_all(new.events)
        self.state.is_sealed = self.follower.seals.is_sealed
        foreign = sum(line.is_foreign for line in new.bad_lines)
        if new.bad_lines:
            self.state.pass_over(len(new.bad_lines) - foreign, foreign)
        self.bad_lines.extend(new.bad_lines[: max(0, 100 - len(self.bad_lines))])
        return new.is_restarted

    def read_to_end(self, tell: Callable[[int, int], object] = lambda done, size: None) -> None:
        """Apply all events up to the present end of the journal; `tell` is called with the bytes read, and of how many.

        A journal may hold more than is read at once.
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
                # A line is longer than the slice, or the last one is not finished.
                limit *= 4

    @property
    def has_running_engine(self) -> bool:
        """Whether an engine on this machine works on the sweep now, or at the earlier moment worked on it."""
        if self.is_of_past:
            return self.state.started_at is not None and self.state.ended_why is None
        return engine_process_id(self.folder.lock) is not None

    @property
    def why_engine_is_silent(self) -> str:
        """Why a running engine does not answer, and what helps; nothing when it was not stopped by a signal."""
        process_id = engine_process_id(self.folder.lock)
        if not process_id or not is_stopped(process_id):
            return ""
        return f"the engine does not answer: process {process_id} is stopped; `kill -CONT {process_id}` lets it go on"

    def find_test(self, name: str) -> TestRecord:
        """Return the test with this node id, agent, end of a node id, or part of either.

        Raise UsageError unless exactly one test fits in the first of these ways in which any does.
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
                raise UsageError(f"{plain(name, 80)!r} fits {len(found)} tests", f"for example {several}")
        raise UsageError(
            f"there is no test or agent {plain(name, 80)!r} in {self.folder.name}",
            f"`swarm-tui status {self.folder.name}` lists all",
        )


def open_at_snapshot(folder: SweepFolder) -> OpenedSweep:
    """Open a sweep in the state of its snapshot, for readers that read the later events in slices."""
    spec = folder.read_spec()
    state, offset = read_snapshot(folder.snapshot, folder.events)
    if not offset:
        state = SweepState(spec.tests)
        state.is_cut_short = is_cut_short(folder.snapshot, folder.events)
    seals = SealWatch(sealer_of(spec.sweep), is_sealed=state.is_sealed)
    return OpenedSweep(folder, spec, state, EventFollower(folder.events, offset, seals))


def open_sweep(folder: SweepFolder, tell: Callable[[int, int], object] = lambda done, size: None) -> OpenedSweep:
    """Open a sweep in its present state; `tell` is called while a long journal is read."""
    opened = open_at_snapshot(folder)
    opened.read_to_end(tell)
    return opened

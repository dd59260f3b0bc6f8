"""The journal in the hands of its engine: taken up again at the start, and kept quick to open while the engine runs."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final

from swarm_tui.errors import JournalError
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.recover import Repair, repair_journal
from swarm_tui.journal.seal import SealWatch, sealer_of
from swarm_tui.journal.snapshot import Snapshot, keep_former_snapshot, take_snapshot, write_snapshot
from swarm_tui.model.events import AgentsStopped, Event, Noted, Queued
from swarm_tui.model.sweep import SweepSpec

CHECK_INTERVAL: Final = 2.0
SNAPSHOT_EVERY: Final = 8_000_000
"""So many bytes of a journal are read in less than half a second."""


@dataclass(frozen=True, slots=True)
class TakenUp:
    """A journal that is open for its engine."""

    writer: JournalWriter
    state: SweepState
    repair: Repair
    earlier: tuple[AgentsStopped, ...]
    """What engines before this one tell of the agents that they stopped."""
    is_resumed: bool
    """Whether an engine has worked on the sweep before, also where the line that says so is lost."""


def take_up_journal(folder: SweepFolder, spec: SweepSpec) -> TakenUp:
    """Repair the journal of a sweep, fold it, and open it for further events."""
    sealer = sealer_of(spec.sweep, is_writing=True)
    watch, state = SealWatch(sealer), SweepState(spec.tests)
    earlier: list[AgentsStopped] = []
    is_resumed = False

    def take(event: Event) -> None:
        nonlocal is_resumed
        state.apply(event)
        is_resumed = is_resumed or not isinstance(event, Queued | Noted)
        if isinstance(event, AgentsStopped):
            earlier.append(event)

    repair = repair_journal(folder.events, take, watch)
    state.is_sealed = sealer is not None
    writer = JournalWriter(folder.events, last_seq=state.last_seq, last_at=state.last_at, sealer=sealer)
    return TakenUp(writer, state, repair, tuple(earlier), is_resumed or bool(state.lost_events))


class JournalKeeper:
    """Writes snapshots of the state as the journal grows, and counts what others write into it."""

    def __init__(self, folder: SweepFolder, writer: JournalWriter, state: SweepState) -> None:
        self._folder, self._writer, self._state = folder, writer, state
        self._kept_size = 0
        self._foreign_lines = 0

    async def run(self) -> None:
        """Keep the journal until cancelled."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            self.count_foreign_lines()
            if self._writer.size - self._kept_size >= SNAPSHOT_EVERY:
                await self.keep()

    def count_foreign_lines(self) -> None:
        """Take what others have written into the state, so that it is said also where a snapshot is read."""
        new = self._writer.foreign_lines - self._foreign_lines
        if new:
            self._foreign_lines += new
            self._state.pass_over(0, new)

    async def keep(self) -> None:
        """Write a snapshot; one that cannot be written is missed by nobody, as the journal has all of it."""
        size, snapshot = self._writer.size, take_snapshot(self._state)
        self._kept_size = size
        await asyncio.to_thread(self._replace, size, snapshot)

    def _replace(self, size: int, snapshot: Snapshot) -> None:
        keep_former_snapshot(self._folder.snapshot, self._folder.former_snapshots)
        with contextlib.suppress(JournalError, OSError):
            write_snapshot(self._folder.snapshot, self._folder.events, size, snapshot)

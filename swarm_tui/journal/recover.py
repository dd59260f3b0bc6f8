"""Repair after a crash."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from swarm_tui.errors import JournalError
from swarm_tui.files import open_regular
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import AgentsStopped, LogMessage, Queued
from swarm_tui.journal.folder import SweepFolder, draft_beside, write_beside
from swarm_tui.journal.snapshot import keep_former_snapshot, take_snapshot, write_snapshot
from swarm_tui.journal.state import StoredState, SweepState
from swarm_tui.model.event import Event
from swarm_tui.model.spec import SweepSpec


@dataclass(frozen=True, slots=True)
class Repair:
    """The lines that were removed from a journal."""

    cut_lines: int = 0
    kept_aside: Path | None = None

    @property
    def summary(self) -> str:
        """A sentence for the log; empty if nothing was removed."""
        if not self.cut_lines:
            return ""
        lines = "1 invalid line" if self.cut_lines == 1 else f"{self.cut_lines} invalid lines"
        where = f" to {self.kept_aside.name}" if self.kept_aside else ""
        return f"moved {lines} from the journal{where}"


@dataclass(frozen=True, slots=True)
class Recovery(Repair):
    """The events of a journal, and the lines that were removed from it."""

    events: tuple[Event, ...] = ()


def recover_journal(path: Path) -> Recovery:
    """Repair a journal and return all its events."""
    events: list[Event] = []
    repair = repair_journal(path, events.append)
    return Recovery(repair.cut_lines, repair.kept_aside, tuple(events))


def repair_journal(path: Path, take: Callable[[Event], object]) -> Repair:
    """Call `take` for each event of a journal, and remove lines that are not events."""
    found = _BadLines()
    if not path.exists():
        return Repair()
    try:
        with open_regular(path) as file:
            found.read(file, take)
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror or error}") from error
    if not found.bad:
        return Repair()
    aside = path.with_name(f"{path.stem}.cut-{time.strftime('%Y%m%d-%H%M%S')}.jsonl")
    write_beside(aside, b"\n".join(found.bad) + b"\n")
    if len(found.bad) == 1 and found.tail_size:
        _cut_tail(path, path.stat().st_size - found.tail_size)
    else:
        _write_again(path, found.is_bad)
    return Repair(len(found.bad), aside)


@dataclass(slots=True)
class _BadLines:
    bad: list[bytes] = field(default_factory=list)
    is_bad: set[int] = field(default_factory=set)
    """The offsets of the bad lines."""
    tail_size: int = 0
    """The size of the incomplete last line."""

    def read(self, file: BinaryIO, take: Callable[[Event], object]) -> None:
        offset = 0
        for line in file:
            start, offset = offset, offset + len(line)
            content = line.rstrip(b"\n")
            if len(content) == len(line):
                self._add(start, content)
                self.tail_size = len(content)
            elif content.strip():
                try:
                    event = parse_event(content)
                except ValueError:
                    self._add(start, content)
                    continue
                take(event)

    def _add(self, start: int, line: bytes) -> None:
        self.bad.append(line)
        self.is_bad.add(start)


def _write_again(path: Path, is_bad: set[int]) -> None:
    """Rewrite a journal without the lines at these offsets and without empty lines."""
    try:
        with open_regular(path) as file, draft_beside(path) as draft:
            offset = 0
            for line in file:
                start, offset = offset, offset + len(line)
                if start not in is_bad and line.strip():
                    draft.write(line)
    except OSError as error:
        raise JournalError(f"{path} cannot be repaired: {error.strerror or error}") from error


def _cut_tail(path: Path, size: int) -> None:
    # In place, so that followers of the file do not have to start again.
    try:
        os.truncate(path, size)
    except OSError as error:
        raise JournalError(f"{path} cannot be repaired: {error.strerror or error}") from error


CHECK_INTERVAL: Final = 2.0
SNAPSHOT_EVERY: Final = 8_000_000
"""Bytes of the journal between two snapshots. Reading them takes less than half a second."""


@dataclass(frozen=True, slots=True)
class RecoveredJournal:
    """A journal that is open for its engine."""

    writer: JournalWriter
    state: SweepState
    repair: Repair
    earlier: tuple[AgentsStopped, ...]
    """The agents that earlier engines stopped."""
    is_resumed: bool
    """Whether an earlier engine ran the sweep, even if its first event is lost."""


def take_up_journal(folder: SweepFolder, spec: SweepSpec, clock: Callable[[], float] = time.time) -> RecoveredJournal:
    """Repair the journal of a sweep, fold it, and open it for further events."""
    state = SweepState(spec.tests)
    earlier: list[AgentsStopped] = []
    is_resumed = False

    def take(event: Event) -> None:
        nonlocal is_resumed
        state.apply(event)
        is_resumed = is_resumed or not isinstance(event, Queued | LogMessage)
        if isinstance(event, AgentsStopped):
            earlier.append(event)

    repair = repair_journal(folder.events, take)
    writer = JournalWriter(folder.events, last_seq=state.last_seq, last_at=state.last_at, clock=clock)
    return RecoveredJournal(writer, state, repair, tuple(earlier), is_resumed or bool(state.lost_events))


class JournalOwner:
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
        """Count the lines of other programs in the state, so that a snapshot reports them, too."""
        new = self._writer.foreign_lines - self._foreign_lines
        if new:
            self._foreign_lines += new
            self._state.ignore_lines(new)

    async def keep(self) -> None:
        """Write a snapshot. Errors are ignored, because the journal has the same data."""
        size, snapshot = self._writer.size, take_snapshot(self._state)
        self._kept_size = size
        await asyncio.to_thread(self._replace, size, snapshot)

    def _replace(self, size: int, snapshot: StoredState) -> None:
        keep_former_snapshot(self._folder.snapshot, self._folder.former_snapshots)
        with contextlib.suppress(JournalError, OSError):
            write_snapshot(self._folder.snapshot, self._folder.events, size, snapshot)

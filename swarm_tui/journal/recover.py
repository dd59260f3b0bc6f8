"""Repairs a journal after a crash: lines that are no events are moved to another file; all others stay.

Only the engine that holds the lock may repair. A killed writer leaves an incomplete last line; bad lines elsewhere
come from broken disks, editors, or programs that wrote where only the engine writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from swarm_tui.errors import JournalError
from swarm_tui.journal.folder import draft_beside, write_beside
from swarm_tui.journal.seal import SealWatch, split_seal
from swarm_tui.model.events import Event, parse_event
from swarm_tui.regular_file import open_regular


@dataclass(frozen=True, slots=True)
class Repair:
    """What was removed from a journal."""

    cut_lines: int = 0
    foreign_lines: int = 0
    """Those of the cut lines that are events which the engine did not write."""
    kept_aside: Path | None = None

    @property
    def summary(self) -> str:
        """A sentence for the log; empty when nothing was wrong."""
        if not self.cut_lines:
            return ""
        lines = "1 broken line was" if self.cut_lines == 1 else f"{self.cut_lines} broken lines were"
        where = f", kept in {self.kept_aside.name}" if self.kept_aside else ""
        foreign = f"; the engine did not write {self.foreign_lines} of them" if self.foreign_lines else ""
        return f"{lines} cut out of the journal{where}{foreign}"


@dataclass(frozen=True, slots=True)
class Recovery(Repair):
    """The events of a journal, and what was removed from it."""

    events: tuple[Event, ...] = ()


def recover_journal(path: Path) -> Recovery:
    """Return all events of a journal that fits into the memory, after removing lines that are no events."""
    events: list[Event] = []
    repair = repair_journal(path, events.append)
    return Recovery(repair.cut_lines, repair.foreign_lines, repair.kept_aside, tuple(events))


def repair_journal(path: Path, take: Callable[[Event], object], watch: SealWatch | None = None) -> Repair:
    """Hand each event of a journal to `take`, one by one, and remove lines that are no events, or not the engine's."""
    found = _Found()
    if not path.exists():
        return Repair()
    try:
        with open_regular(path) as file:
            found.read(file, take, watch or SealWatch(None))
    except OSError as error:
        raise JournalError(f"{path} cannot be read", error.strerror or str(error)) from error
    if not found.bad:
        return Repair()
    aside = path.with_name(f"{path.stem}.cut-{time.strftime('%Y%m%d-%H%M%S')}.jsonl")
    write_beside(aside, b"\n".join(found.bad) + b"\n")
    if len(found.bad) == 1 and found.tail_size:
        _cut_tail(path, path.stat().st_size - found.tail_size)
    else:
        _write_again(path, found.is_bad)
    return Repair(len(found.bad), found.foreign, aside)


@dataclass(slots=True)
class _Found:
    """The bad lines of a journal."""

    bad: list[bytes] = field(default_factory=list)
    is_bad: set[int] = field(default_factory=set)
    """Where they begin."""
    foreign: int = 0
    tail_size: int = 0
    """Of what follows the last newline, which was never acknowledged."""

    def read(self, file: BinaryIO, take: Callable[[Event], object], watch: SealWatch) -> None:
        offset = 0
        for line in file:
            start, offset = offset, offset + len(line)
            content = line.rstrip(b"\n")
            if len(content) == len(line):
                self._add(start, content)
                self.tail_size = len(content)
            elif content.strip():
                try:
                    event = parse_event(split_seal(content)[0])
                except ValueError:
                    self._add(start, content)
                    continue
                if watch.reason_against(content):
                    self.foreign += 1
                    self._add(start, content)
                    continue
                take(event)

    def _add(self, start: int, line: bytes) -> None:
        self.bad.append(line)
        self.is_bad.add(start)


def _write_again(path: Path, is_bad: set[int]) -> None:
    """Write a journal anew without the lines that begin at these offsets, and without empty ones."""
    try:
        with open_regular(path) as file, draft_beside(path) as draft:
            offset = 0
            for line in file:
                start, offset = offset, offset + len(line)
                if start not in is_bad and line.strip():
                    draft.write(line)
    except OSError as error:
        raise JournalError(f"{path} cannot be repaired", error.strerror or str(error)) from error


def _cut_tail(path: Path, size: int) -> None:
    # In place, so that followers of the file need not read it again from its beginning.
    try:
        os.truncate(path, size)
    except OSError as error:
        raise JournalError(f"{path} cannot be repaired", error.strerror or str(error)) from error

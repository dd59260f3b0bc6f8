"""Repairs a journal after a crash: lines that are no events are moved to another file; all others stay.

Only the engine that holds the lock may repair. A killed writer leaves an incomplete last line; bad lines elsewhere
come from broken disks or editors.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from swarm_tui.errors import JournalError
from swarm_tui.journal.folder import write_beside
from swarm_tui.model.events import Event, parse_event


@dataclass(frozen=True, slots=True)
class Recovery:
    """The events of a journal, and what was removed from it."""

    events: tuple[Event, ...]
    cut_lines: int = 0
    kept_aside: Path | None = None

    @property
    def summary(self) -> str:
        """A sentence for the log; empty when nothing was wrong."""
        if not self.cut_lines:
            return ""
        lines = "1 broken line was" if self.cut_lines == 1 else f"{self.cut_lines} broken lines were"
        where = f", kept in {self.kept_aside.name}" if self.kept_aside else ""
        return f"{lines} cut out of the journal{where}"


def recover_journal(path: Path) -> Recovery:
    """Return all events of a journal, after removing lines that are no events."""
    try:
        content = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise JournalError(f"{path} cannot be read", error.strerror or str(error)) from error
    events: list[Event] = []
    good: list[bytes] = []
    bad: list[bytes] = []
    lines = content.split(b"\n")
    # What follows the last newline was never acknowledged.
    tail = lines.pop()
    for line in lines:
        if not line.strip():
            continue
        try:
            events.append(parse_event(line))
            good.append(line)
        except ValueError:
            bad.append(line)
    if tail:
        bad.append(tail)
    if not bad:
        return Recovery(tuple(events))
    aside = path.with_name(f"{path.stem}.cut-{time.strftime('%Y%m%d-%H%M%S')}.jsonl")
    write_beside(aside, b"\n".join(bad) + b"\n")
    if len(bad) == 1 and tail:
        _cut_tail(path, len(content) - len(tail))
    else:
        write_beside(path, b"".join(line + b"\n" for line in good))
    return Recovery(tuple(events), len(bad), aside)


def _cut_tail(path: Path, size: int) -> None:
    # In place, so that followers of the file need not read it again from its beginning.
    try:
        os.truncate(path, size)
    except OSError as error:
        raise JournalError(f"{path} cannot be repaired", error.strerror or str(error)) from error

"""Open sweeps, and print messages on stderr and the lines that several commands have in common."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from swarm_tui.cli.sweeps import chosen_sweep
from swarm_tui.errors import UsageError
from swarm_tui.integrator.events import Integration
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.history import JournalHistory
from swarm_tui.journal.open import OpenedSweep, open_sweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.event import LogLine
from swarm_tui.model.formatting import parse_moment
from swarm_tui.model.results import PULLED_RESULTS, Result
from swarm_tui.model.text import plain

_QUIET_TIME: Final = 0.5
"""Shorter reads are not shown."""
_CLEAR_LINE: Final = "\r\x1b[K"
RELEASE_TIME: Final = 2.0
"""The time an engine may take to release its lock after its last event, and the next engine to take it."""


def print_progress(text: str) -> None:
    """Print a message on stderr."""
    print(f"{_CLEAR_LINE if sys.stderr.isatty() else ''}{text}", file=sys.stderr, flush=True)


def print_passing(text: str) -> None:
    """Print a status line on a terminal; the next message replaces it."""
    if sys.stderr.isatty():
        shown = plain(text, shutil.get_terminal_size().columns - 1)
        print(f"{_CLEAR_LINE}{shown}", end="", file=sys.stderr, flush=True)


def clear_passing() -> None:
    """Clear the status line of `print_passing`."""
    if sys.stderr.isatty():
        print(_CLEAR_LINE, end="", file=sys.stderr, flush=True)


def opened_sweep(name: str | None, folder: Path) -> OpenedSweep:
    """Open the sweep with a name, a beginning of one or a path, or the newest sweep."""
    return opened_with_progress(chosen_sweep(name, folder))


def opened_with_progress(folder: SweepFolder) -> OpenedSweep:
    """Open a sweep; on a terminal, show progress while reading a long journal."""
    begun = said_at = time.monotonic()

    def show(done: int, size: int) -> None:
        nonlocal said_at
        now = time.monotonic()
        if now - begun > _QUIET_TIME and now - said_at > _QUIET_TIME:
            said_at = now
            print_passing(f"reading the journal of {folder.name}: {100 * done // max(size, 1)} % of {size >> 20} MiB")

    opened = open_sweep(folder, show)
    if said_at > begun:
        clear_passing()
    return opened


def moment_in(folder: SweepFolder, words: str) -> tuple[JournalHistory, float]:
    """Return the history of a sweep and the time that --at names; raise UsageError if the time is invalid."""
    history = JournalHistory(folder, folder.read_spec())
    first, last = history.span
    if not last:
        raise UsageError(f"{folder.name} has no events yet")
    is_running = engine_process_id(folder.lock) is not None
    return history, parse_moment(words, first, max(last, time.time()) if is_running else last)


def log_text(line: LogLine) -> str:
    """Return a line of the log as plain text."""
    name = f"{plain(line.test, 200)}: " if line.test else ""
    return f"{time.strftime('%H:%M:%S', time.localtime(line.at))} {name}{plain(line.text, 500)}"


def integration_lines(integration: Integration, sweep: str) -> Iterator[str]:
    """Yield the problems of the integrated branch, or why there is none."""
    if integration.state == "done":
        yield from (f"problem: {plain(problem, 500)}" for problem in integration.problems)
        if integration.refused:
            yield f"the coding agent's branch is not used: {plain(integration.refused, 500)}"
    if integration.state == "failed":
        yield f"not integrated: {plain(integration.detail, 500)}"
        yield f"  to try again: `swarm-tui integrate {sweep}`"


def is_open(record: TestRecord) -> bool:
    """Return whether a test is not clean or skipped and has no work to integrate."""
    return record.result not in (Result.CLEAN, Result.SKIPPED) and record.result not in PULLED_RESULTS

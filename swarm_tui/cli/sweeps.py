"""Find the sweep that a command line names, in the current repository or by its folder."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.journal.history import JournalHistory
    from swarm_tui.journal.open import OpenedSweep

_QUIET_TIME: Final = 0.5
"""Shorter reads are not shown."""


def add_moment_option(parser: argparse.ArgumentParser) -> None:
    """Declare --at."""
    parser.add_argument(
        "--at",
        metavar="TIME",
        help="show an earlier moment: 12:04, 12:04:31, 2026-11-19T12:04, or -10m (before now, or before the end)",
    )


def moment_in(folder: SweepFolder, words: str) -> tuple[JournalHistory, float]:
    """Return the history of a sweep and the time that --at names; raise UsageError if the time is invalid."""
    from swarm_tui.errors import UsageError
    from swarm_tui.journal.append import engine_process_id
    from swarm_tui.journal.history import JournalHistory
    from swarm_tui.model.formatting import parse_moment

    history = JournalHistory(folder, folder.read_spec())
    first, last = history.span
    if not last:
        raise UsageError(f"{folder.name} has no events yet")
    is_running = engine_process_id(folder.lock) is not None
    return history, parse_moment(words, first, max(last, time.time()) if is_running else last)


def repository_root(folder: Path) -> Path:
    """Return the root of the repository that contains a folder, found by `.git` or `.swarm`, without running git."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".swarm").is_dir() or (candidate / ".git").exists():
            return candidate
    return folder


def chosen_sweep(name: str | None, folder: Path) -> SweepFolder:
    """Return the sweep with a name, a beginning of one or a path, or the newest sweep."""
    from swarm_tui.journal.folder import find_sweep

    return find_sweep(repository_root(folder), name)


def opened_sweep(name: str | None, folder: Path) -> OpenedSweep:
    """Open the sweep with a name, a beginning of one or a path, or the newest sweep."""
    return opened_with_progress(chosen_sweep(name, folder))


def opened_with_progress(folder: SweepFolder) -> OpenedSweep:
    """Open a sweep; on a terminal, show progress while reading a long journal."""
    from swarm_tui.cli.progress import clear_passing, print_passing
    from swarm_tui.journal.open import open_sweep

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

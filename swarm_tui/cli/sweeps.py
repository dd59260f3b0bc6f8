"""Finds the sweep that a command line names, in the repository of the current folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.journal.open import OpenedSweep

_QUIET_TIME: Final = 0.5
"""What takes no longer is not told of."""


def repository_root(folder: Path) -> Path:
    """Return the top of the repository that holds a folder, found by its `.git` or `.swarm`, without asking git."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".swarm").is_dir() or (candidate / ".git").exists():
            return candidate
    return folder


def chosen_sweep(name: str | None, folder: Path) -> SweepFolder:
    """Return the sweep of that name, beginning or path, or the newest one."""
    from swarm_tui.journal.folder import find_sweep

    return find_sweep(repository_root(folder), name)


def opened_sweep(name: str | None, folder: Path) -> OpenedSweep:
    """Open the sweep of that name, beginning or path, or the newest one."""
    return opened_with_progress(chosen_sweep(name, folder))


def opened_with_progress(folder: SweepFolder) -> OpenedSweep:
    """Open a sweep; on a terminal it is shown how far a long journal is read."""
    from swarm_tui.cli.progress import clear_passing, print_passing
    from swarm_tui.journal.open import open_sweep

    begun = said_at = time.monotonic()

    def tell(done: int, size: int) -> None:
        nonlocal said_at
        now = time.monotonic()
        if now - begun > _QUIET_TIME and now - said_at > _QUIET_TIME:
            said_at = now
            print_passing(f"reading the journal of {folder.name}: {100 * done // max(size, 1)} % of {size >> 20} MiB")

    opened = open_sweep(folder, tell)
    if said_at > begun:
        clear_passing()
    return opened

"""Finds the sweep that a command line names, in the repository of the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.journal.open import OpenedSweep


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
    from swarm_tui.journal.open import open_sweep

    return open_sweep(chosen_sweep(name, folder))

"""Find the sweep that a command line names, in the current repository or by its folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from swarm_tui.journal.folder import SweepFolder, find_sweep


def add_moment_option(parser: argparse.ArgumentParser) -> None:
    """Declare --at."""
    parser.add_argument(
        "--at",
        metavar="TIME",
        help="show an earlier moment: 12:04, 12:04:31, 2026-11-19T12:04, or -10m (before now, or before the end)",
    )


def repository_root(folder: Path) -> Path:
    """Return the root of the repository that contains a folder, found by `.git` or `.swarm`, without running git."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".swarm").is_dir() or (candidate / ".git").exists():
            return candidate
    return folder


def chosen_sweep(name: str | None, folder: Path) -> SweepFolder:
    """Return the sweep with a name, a beginning of one or a path, or the newest sweep."""
    return find_sweep(repository_root(folder), name)

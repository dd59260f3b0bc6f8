"""Installs the slash command with which Claude Code fills and tests a tutorial in an interactive session."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.folder import write_beside
from swarm_tui.model.text import plain

COMMAND_FILE: Final = Path(".claude/commands/swarm-tutorial.md")
TEXT: Final = Path(__file__).parent / "swarm-tutorial.md"
_MARK: Final = b"<!-- written by `swarm-tui tutorial install-command`"


def install_slash_command(project: Path) -> Path:
    """Write the command into a project and return its path; raise UsageError where another file is in its place."""
    if not project.is_dir():
        raise UsageError(f"{plain(str(project), 200)} is not a folder", "give the project's folder with --dir")
    place = project / COMMAND_FILE
    try:
        if place.is_symlink() or (place.exists() and not _is_ours(place)):
            raise UsageError(
                f"{plain(str(place), 200)} is there, and swarm-tui did not write it", "move it away, or remove it"
            )
        place.parent.mkdir(parents=True, exist_ok=True)
        write_beside(place, TEXT.read_bytes())
    except OSError as error:
        raise SwarmError(f"{plain(str(place), 200)} cannot be written", error.strerror or str(error)) from error
    return place


def _is_ours(place: Path) -> bool:
    return place.is_file() and _MARK in place.read_bytes()

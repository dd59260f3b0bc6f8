"""Installs the slash command with which Claude Code fills and tests a tutorial in an interactive session."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.folder import write_beside
from swarm_tui.model.text import plain
from swarm_tui.regular_file import read_regular

COMMAND_FILE: Final = Path(".claude/commands/swarm-tutorial.md")
TEXT: Final = Path(__file__).parent / "swarm-tutorial.md"
_MARK: Final = b"<!-- written by `swarm-tui tutorial install-command`"


def install_slash_command(project: Path) -> Path:
    """Write the command into a project and return its path; raise UsageError where another file is in its path."""
    if not project.is_dir():
        raise UsageError(f"{plain(str(project), 200)} is not a folder", "give the project's folder with --dir")
    path = project / COMMAND_FILE
    try:
        if path.is_symlink() or (path.exists() and not _is_ours(path)):
            raise UsageError(
                f"{plain(str(path), 200)} is there, and swarm-tui did not write it", "move it away, or remove it"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        write_beside(path, TEXT.read_bytes())
    except OSError as error:
        raise SwarmError(f"{plain(str(path), 200)} cannot be written", error.strerror or str(error)) from error
    return path


def _is_ours(path: Path) -> bool:
    return path.is_file() and _MARK in read_regular(path)

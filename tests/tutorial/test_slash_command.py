"""Installing the slash command for Claude Code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.cli.tutorial import COMMAND_FILE, install_slash_command
from swarm_tui.errors import SwarmError, UsageError


def test_command_file_is_written_and_updated(tmp_path: Path) -> None:
    place = install_slash_command(tmp_path)
    text = place.read_text()
    assert text.startswith("---\ndescription: ")
    assert "$ARGUMENTS" in text
    place.write_text(text.replace("##", "# #"))
    assert install_slash_command(tmp_path).read_text() == text


def test_foreign_file_is_not_overwritten(tmp_path: Path) -> None:
    place = tmp_path / COMMAND_FILE
    place.parent.mkdir(parents=True)
    place.write_text("mine")
    with pytest.raises(UsageError, match="swarm-tui did not write it"):
        install_slash_command(tmp_path)
    assert place.read_text() == "mine"
    place.unlink()
    os.symlink(tmp_path / "elsewhere.md", place)
    with pytest.raises(UsageError, match="swarm-tui did not write it"):
        install_slash_command(tmp_path)
    assert not (tmp_path / "elsewhere.md").exists()


def test_invalid_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a folder"):
        install_slash_command(tmp_path / "missing")
    (tmp_path / ".claude").write_text("a file in the way")
    with pytest.raises(SwarmError, match="cannot write"):
        install_slash_command(tmp_path)

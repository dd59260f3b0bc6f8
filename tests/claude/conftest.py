"""Fixtures of the tests with the real Claude Code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.claude.installed import PACKAGE, claude_folder
from tests.programs import require_program, skip_without_program


@pytest.fixture(scope="session")
def claude() -> Path:
    """Return the folder with the pinned `claude`."""
    # mngr's hooks for Claude Code are shell scripts that use jq.
    require_program("jq")
    folder = claude_folder()
    if folder is None:
        require_program("npm")
        skip_without_program("claude", f"npm could not install {PACKAGE}")
    return folder

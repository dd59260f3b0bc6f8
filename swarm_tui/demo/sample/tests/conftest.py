"""Puts this checkout's larder on the PATH of every test, on one fixed day."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def larder_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `larder` the one of this checkout, and today the 2nd of March 2026."""
    bin_folder = Path(__file__).resolve().parent.parent / "bin"
    monkeypatch.setenv("PATH", f"{bin_folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LARDER_PYTHON", sys.executable)
    monkeypatch.setenv("LARDER_TODAY", "2026-03-02")


@pytest.fixture
def family_share() -> str:
    """Give the folder that the whole family sees; it is on the server in the hallway."""
    folder = os.environ.get("LARDER_SHARE")
    if not folder:
        pytest.fail("LARDER_SHARE is not set: the family's folder is not mounted on this machine")
    return folder

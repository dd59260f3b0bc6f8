"""Appending to files of a sweep never follows a symbolic link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.errors import JournalError
from swarm_tui.journal.append import EngineLock, JournalWriter
from swarm_tui.journal.events import Queued
from swarm_tui.journal.folder import make_own_folder


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """Return a symbolic link to a file outside the sweep."""
    (tmp_path / "of-others").write_text("root:x:0:0\n")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "of-others")
    return link


def test_engine_lock_refuses_symlink(link: Path) -> None:
    with pytest.raises(JournalError, match="it is a link, not a file"):
        EngineLock(link).acquire()
    assert link.read_text() == "root:x:0:0\n"


def test_append_refuses_symlink(link: Path) -> None:
    with pytest.raises(JournalError), JournalWriter(link) as journal:
        journal.append(Queued(test="a::b"))
    assert link.read_text() == "root:x:0:0\n"
    assert os.path.islink(link)


def test_make_own_folder_replaces_symlink(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    own = tmp_path / "sweep" / "integrator"
    own.parent.mkdir()
    own.symlink_to(elsewhere)
    (make_own_folder(own) / "inputs.json").write_text("{}")
    assert not own.is_symlink()
    assert list(elsewhere.iterdir()) == []
    assert (make_own_folder(own) / "inputs.json").exists()

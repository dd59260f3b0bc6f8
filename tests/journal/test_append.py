"""What is written of a sweep goes into its own files: a link in their place leads nowhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.errors import JournalError
from swarm_tui.journal.append import EngineLock, JournalWriter
from swarm_tui.journal.folder import make_own_folder
from swarm_tui.model.events import Queued


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """Return a link to a file of somebody else."""
    (tmp_path / "of-others").write_text("root:x:0:0\n")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "of-others")
    return link


def test_the_lock_of_an_engine_is_no_link(link: Path) -> None:
    with pytest.raises(JournalError, match="it is a link, not a file"):
        EngineLock(link).acquire()
    assert link.read_text() == "root:x:0:0\n"


def test_no_event_is_appended_through_a_link(link: Path) -> None:
    with pytest.raises(JournalError), JournalWriter(link) as journal:
        journal.append(Queued(test="a::b"))
    assert link.read_text() == "root:x:0:0\n"
    assert os.path.islink(link)


def test_a_link_gives_way_to_a_folder_of_the_sweep(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    own = tmp_path / "sweep" / "integrator"
    own.parent.mkdir()
    own.symlink_to(elsewhere)
    (make_own_folder(own) / "inputs.json").write_text("{}")
    assert not own.is_symlink()
    assert list(elsewhere.iterdir()) == []
    assert (make_own_folder(own) / "inputs.json").exists()

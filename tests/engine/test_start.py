"""A sweep is begun whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.engine.order import begin_sweep
from swarm_tui.engine.start import start_engine
from swarm_tui.errors import JournalError, SwarmError
from swarm_tui.journal.folder import list_sweeps, runs_folder
from swarm_tui.model.sweep import MngrSettings, SweepSpec, derive_tests
from tests.engine.full_disk import little_space


def test_a_sweep_that_cannot_be_written_down_leaves_nothing(tmp_path: Path) -> None:
    spec = SweepSpec(sweep="1", repository=str(tmp_path), base="a", created_at=1.0, mngr=MngrSettings(path="mngr"))
    tests = derive_tests("1", [(f"a.py::test_{number}", "a.py", number) for number in range(50)])
    for size in (16, 4096):
        # Too little for what is asked, then for the queue of tests.
        with little_space(size), pytest.raises(JournalError, match="cannot be written"):
            begin_sweep(spec, tests)
        assert list(runs_folder(tmp_path).iterdir()) == []
    assert list_sweeps(tmp_path) == []
    assert len(begin_sweep(spec, tests).events.read_bytes().splitlines()) == 50


def test_without_space_no_engine_is_started_and_it_is_said(tmp_path: Path) -> None:
    spec = SweepSpec(sweep="1", repository=str(tmp_path), base="a", created_at=1.0, mngr=MngrSettings(path="mngr"))
    folder = begin_sweep(spec, derive_tests("1", [("a.py::test_a", "a.py", 1)]))
    before = folder.events.read_bytes()
    with little_space(4096), pytest.raises(SwarmError, match=r"cannot write in .*`swarm-tui resume [0-9-]+` goes on"):
        start_engine(folder)
    assert folder.events.read_bytes() == before
    assert not list(folder.root.glob(".space-*"))

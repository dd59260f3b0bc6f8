"""A sweep is begun whole or not at all."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from swarm_tui.engine.order import begin_sweep
from swarm_tui.errors import JournalError
from swarm_tui.journal.folder import list_sweeps, runs_folder
from swarm_tui.model.sweep import MngrSettings, SweepSpec, derive_tests


def test_a_sweep_that_cannot_be_written_down_leaves_nothing(tmp_path: Path) -> None:
    spec = SweepSpec(sweep="1", repository=str(tmp_path), base="a", created_at=1.0, mngr=MngrSettings(path="mngr"))
    tests = derive_tests("1", [(f"a.py::test_{number}", "a.py", number) for number in range(50)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (16, 4096):
        # Too little for what is asked, then for the queue of tests.
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
        try:
            with pytest.raises(JournalError, match="cannot be written"):
                begin_sweep(spec, tests)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert list(runs_folder(tmp_path).iterdir()) == []
    assert list_sweeps(tmp_path) == []
    assert len(begin_sweep(spec, tests).events.read_bytes().splitlines()) == 50

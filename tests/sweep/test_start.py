"""A sweep is started completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.errors import JournalError, SwarmError
from swarm_tui.journal.folder import find_sweep, list_sweeps, runs_folder
from swarm_tui.model.spec import MngrSettings, SweepSpec, derive_tests, integrator_of
from swarm_tui.sweep.agent_context import session_of
from swarm_tui.sweep.order import begin_sweep
from swarm_tui.sweep.start import new_sweep_name, start_engine
from tests.sweep.full_disk import little_space


def test_unwritable_sweep_leaves_nothing(tmp_path: Path) -> None:
    spec = SweepSpec(sweep="1", repository=str(tmp_path), base="a", created_at=1.0, mngr=MngrSettings(path="mngr"))
    tests = derive_tests("1", [(f"a.py::test_{number}", "a.py", number) for number in range(50)])
    for size in (16, 4096):
        # Too little for the options, then for the queue of tests.
        with little_space(size), pytest.raises(JournalError, match="cannot be written"):
            begin_sweep(spec, tests)
        assert list(runs_folder(tmp_path).iterdir()) == []
    assert list_sweeps(tmp_path) == []
    assert len(begin_sweep(spec, tests).events.read_bytes().splitlines()) == 50


def test_engine_is_not_started_on_full_disk(tmp_path: Path) -> None:
    spec = SweepSpec(sweep="1", repository=str(tmp_path), base="a", created_at=1.0, mngr=MngrSettings(path="mngr"))
    folder = begin_sweep(spec, derive_tests("1", [("a.py::test_a", "a.py", 1)]))
    before = folder.events.read_bytes()
    with little_space(4096), pytest.raises(SwarmError, match=r"cannot write in .*run `swarm-tui resume [0-9a-z-]+`"):
        start_engine(folder)
    assert folder.events.read_bytes() == before
    assert not list(folder.root.glob(".space-*"))


def test_sweeps_of_same_second_have_different_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents of two repositories have the same mngr, and worktrees share refs."""
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.0)
    names: set[str] = set()
    for repository in (tmp_path / "one", tmp_path / "two"):
        spec = SweepSpec(
            sweep="1", repository=str(repository), base="a", created_at=1.0, mngr=MngrSettings(path="mngr")
        )
        spec = begin_sweep(spec, derive_tests("1", [("a.py::test_a", "a.py", 1)])).read_spec()
        (test,) = derive_tests(spec.sweep, [("a.py::test_a", "a.py", 1)])
        found = {spec.sweep, test.agent, test.branch, integrator_of(spec), session_of(spec, test.agent)}
        assert not names & found
        names |= found


def test_sweeps_of_repository_are_sorted_by_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1_800_000_000.0)
    names = [new_sweep_name(tmp_path) for _ in range(3)]
    assert [name[:15] for name in names] == ["20270115-080000", "20270115-080001", "20270115-080002"]


def test_sweep_of_older_version_is_found_by_time(tmp_path: Path) -> None:
    for name in ("20261118-061200", "20261118-061200-abcde"):
        folder = runs_folder(tmp_path) / name
        folder.mkdir(parents=True)
        (folder / "sweep.json").write_text("{}")
    assert find_sweep(tmp_path, "20261118-061200").name == "20261118-061200"
    assert find_sweep(tmp_path, "20261118-061200-a").name == "20261118-061200-abcde"


def test_folder_of_sweeps_is_private(tmp_path: Path) -> None:
    new_sweep_name(tmp_path)
    assert (tmp_path / ".swarm").stat().st_mode & 0o777 == 0o700


def test_existing_folder_of_sweeps_becomes_private(tmp_path: Path) -> None:
    (tmp_path / ".swarm/runs").mkdir(parents=True)
    (tmp_path / ".swarm").chmod(0o755)
    (tmp_path / ".swarm/runs").chmod(0o775)
    new_sweep_name(tmp_path)
    for folder in (tmp_path / ".swarm", tmp_path / ".swarm/runs"):
        assert folder.stat().st_mode & 0o777 == 0o700

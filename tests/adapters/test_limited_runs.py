"""Runs of tests keep to their limits: a hang is one failed test, memory has an end, HOME is not the user's."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.pytest import SessionsHere, TestRun, run_tests
from swarm_tui.model.run_limits import RunLimits, own_variables
from tests.git_project import PYTEST_INI
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

LIMIT = 3.0
"""Far more than the other tests take on a busy machine."""

TESTS = """\
import os, signal, threading, time


def test_good(): pass


def test_hangs():
    try:
        threading.Event().wait()
    except Exception:
        pass


def test_hangs_in_a_fixture(tmp_path): threading.Lock().acquire() and threading.Event().wait()


def test_cannot_be_interrupted():
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
    threading.Event().wait()


def test_eats(): assert len(bytearray(2 << 30)) < 0


def test_home():
    from pathlib import Path
    (Path.home() / "left").touch()
    assert os.environ["HOME"] == os.environ["TMPDIR"] + "/home" and "XDG_CACHE_HOME" not in os.environ


def test_processor():
    import subprocess, sys
    question = "import os; print(os.cpu_count(), *os.sched_getaffinity(0))"
    told = subprocess.check_output([sys.executable, "-c", question], text=True).split()
    assert len(told) == 2


def test_last(): pass
"""


async def run(tmp_path: Path, limits: RunLimits, *names: str) -> TestRun:
    (tmp_path / "pytest.ini").write_text(PYTEST_INI)
    (tmp_path / "test_it.py").write_text(TESTS)
    own = own_variables(1, str(tmp_path), limits)
    Path(own["TMPDIR"]).mkdir(exist_ok=True)
    return await run_tests(
        SessionsHere(sys.executable, tmp_path, variables=own, timeout=PATIENCE),
        {f"test_it.py::test_{name}": f"test_it.py::test_{name}" for name in names},
    )


async def test_hanging_test_fails_alone(tmp_path: Path) -> None:
    made = await run(tmp_path, RunLimits(LIMIT), "good", "hangs", "hangs_in_a_fixture", "last")
    assert [made.outcomes[f"test_it.py::test_{name}"] for name in ("good", "hangs", "hangs_in_a_fixture", "last")] == [
        "passed", "failed", "failed", "passed",
    ]  # fmt: skip
    assert made.is_complete
    assert "did not finish within 3 s (--test-timeout)" in made.failures["test_it.py::test_hangs"]


async def test_uninterruptible_test_costs_only_itself(
    tmp_path: Path,
) -> None:
    made = await run(tmp_path, RunLimits(LIMIT), "good", "cannot_be_interrupted", "last")
    assert dict(made.outcomes) == {
        "test_it.py::test_good": "passed",
        "test_it.py::test_cannot_be_interrupted": "failed",
        "test_it.py::test_last": "passed",
    }


async def test_run_without_limit_waits(tmp_path: Path) -> None:
    assert (await run(tmp_path, RunLimits(), "good")).outcomes == {"test_it.py::test_good": "passed"}


async def test_memory_is_limited(tmp_path: Path) -> None:
    made = await run(tmp_path, RunLimits(memory_limit=512 << 20), "eats", "last")
    assert dict(made.outcomes) == {"test_it.py::test_eats": "failed", "test_it.py::test_last": "passed"}
    assert "MemoryError" in made.failures["test_it.py::test_eats"]


async def test_run_and_children_share_processors(tmp_path: Path) -> None:
    assert (await run(tmp_path, RunLimits(cpu_limit=1), "processor")).is_green("test_it.py::test_processor")
    own = own_variables(3, str(tmp_path), RunLimits(cpu_limit=2))
    assert own["SWARM_CPU_LIMIT"] == "2"


async def test_tests_have_separate_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert (await run(tmp_path, RunLimits(has_own_home=True), "home")).is_green("test_it.py::test_home")
    assert os.listdir(tmp_path / "1/home") == ["left"]

"""Confined test runs see only their copy, and runs that start too many processes are killed."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.processes.confinement import BWRAP, check_confinement, make_box
from swarm_tui.adapters.pytest import TestRun
from swarm_tui.errors import ProgramMissing, SwarmError, UsageError
from swarm_tui.model.run_limits import Confinement, RunLimits
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.settings import TestSettings
from tests.git_project import PYTEST_INI, GitProject
from tests.programs import make_path, make_program
from tests.waiting import PATIENCE

ATTEMPTS = """\
import os, pathlib, socket, subprocess, sys, tempfile


def test_home_is_empty():
    assert pathlib.Path.home() == pathlib.Path({home!r}) and not pathlib.Path({home!r}, "private").exists()
    pathlib.Path.home().joinpath("written").write_text("x")


def test_readable(): assert pathlib.Path({home!r}, "given/file").read_text() == "given"


def test_given_is_not_written():
    try:
        pathlib.Path({home!r}, "given/file").write_text("x")
    except OSError:
        return
    raise AssertionError("written")


def test_no_server_is_reached(): assert socket.socket().connect_ex(("127.0.0.1", {port})) != 0


def test_own_servers_are():
    server = socket.create_server(("127.0.0.1", 0))
    assert socket.socket().connect_ex(server.getsockname()) == 0


def test_nothing_is_written_outside():
    for folder in (sys.prefix, "/", "/etc", "/usr", "/var"):
        try:
            pathlib.Path(folder, "left-behind").write_text("x")
        except OSError:
            continue
        raise AssertionError(folder)


def test_the_checkout_is_hidden():
    assert not os.path.exists({checkout!r} + "/pytest.ini")
    pathlib.Path({checkout!r}, "left-behind").write_text("in memory")


def test_no_other_process_is_seen():
    others = [name for name in os.listdir("/proc") if name.isdigit()]
    assert len(others) < 5, others


def test_the_copy_and_its_git_can_be_used():
    pathlib.Path("new").write_text("x")
    tempfile.mkdtemp()
    assert subprocess.check_output(["git", "log", "--format=%s", "-1", "HEAD~"], text=True) == "base\\n"
"""
BOMB = """\
import os, time


def test_good(): pass


def test_bomb():
    for _ in range(60):
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
    time.sleep(600)


def test_last(): pass
"""
CONFINED = [
    name.partition("(")[0] for line in ATTEMPTS.splitlines() if line.startswith("def ") for name in [line.split()[1]]
]


@pytest.fixture
def confined_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitProject:
    """Return a project in a home with private files, and a folder that runs may read."""
    home = tmp_path / "home"
    (home / "given").mkdir(parents=True)
    (home / "given/file").write_text("given")
    (home / "private").write_text("a secret\n")
    monkeypatch.setenv("HOME", str(home))
    return GitProject(home / "project")


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as made:
        yield made


async def run(project: GitProject, limits: RunLimits, file: str, names: list[str]) -> TestRun:
    settings = TestSettings(sys.executable, checkout=str(project.root), limits=limits, timeout=PATIENCE)
    with ObjectSpace(Repository.open(project.root)) as space:
        base = project.git("rev-parse", "HEAD")
        async with TestCopies(space, settings, base=base, count=1) as copies:
            tree = project.git("rev-parse", "HEAD^{tree}")
            return await copies.run(tree, [f"{file}::{name}" for name in names])


@pytest.mark.slow
@pytest.mark.needs(BWRAP)
@pytest.mark.usefixtures("namespaces")
@pytest.mark.parametrize("has_network", [False, True])
async def test_confined_run_cannot_access_outside_files(
    confined_project: GitProject, server: socket.socket, tmp_path: Path, has_network: bool
) -> None:
    home = tmp_path / "home"
    attempts = ATTEMPTS.format(home=str(home), port=server.getsockname()[1], checkout=str(confined_project.root))
    confined_project.commit("base", {"test_out.py": attempts, "pytest.ini": PYTEST_INI})
    wanted = RunLimits(confinement=Confinement(has_network, ("~/given",)))
    made = await run(confined_project, wanted, "test_out.py", CONFINED)
    reached = {"test_no_server_is_reached"} if has_network else set()
    expected = {f"test_out.py::{name}": "failed" if name in reached else "passed" for name in CONFINED}
    assert dict(made.outcomes) == expected, (made.failures, made.complaint)
    assert sorted(path.name for path in home.iterdir()) == ["given", "private", "project"]
    assert confined_project.git("status", "--porcelain") == ""


@pytest.mark.slow
async def test_run_with_too_many_processes_is_killed(confined_project: GitProject) -> None:
    confined_project.commit("base", {"test_bomb.py": BOMB, "pytest.ini": PYTEST_INI})
    made = await run(
        confined_project, RunLimits(process_limit=20), "test_bomb.py", ["test_good", "test_bomb", "test_last"]
    )
    assert list(made.outcomes.values()) == ["passed", "failed", "passed"]
    told = made.failures["test_bomb.py::test_bomb"]
    assert told == "stopped because of more than 20 processes (raise the limit with --process-limit)"


@pytest.mark.slow
async def test_fork_bomb_during_collection_is_not_retried(confined_project: GitProject, tmp_path: Path) -> None:
    tried = tmp_path / "tried"
    bomb = BOMB.replace("def test_bomb():", f"if open({str(tried)!r}, 'a').write('x'):")
    confined_project.commit("base", {"test_bomb.py": bomb, "pytest.ini": PYTEST_INI})
    made = await run(confined_project, RunLimits(process_limit=20), "test_bomb.py", ["test_good", "test_last"])
    assert (made.outcomes, tried.read_text()) == ({}, "x")
    assert made.complaint.startswith("stopped because of more than 20 processes")


@pytest.mark.parametrize(
    ("prepare", "error", "told"),
    [
        (make_path, ProgramMissing, "--confine requires bwrap, which is not installed"),
        (
            lambda folder: make_program(folder / BWRAP, "echo 'bwrap: setting up uid map: denied' >&2; exit 1"),
            UsageError,
            "this machine does not let bwrap create namespaces: bwrap: setting up uid map: denied",
        ),
    ],
)
def test_missing_confinement_is_reported_before_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[Path], object],
    error: type[SwarmError],
    told: str,
) -> None:
    prepare(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(error) as refused:
        asyncio.run(check_confinement(Confinement()))
    assert str(refused.value).startswith(told)
    assert refused.value.exit_code == 2
    assert "leave out --confine" in refused.value.hint


def test_home_on_a_search_path_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{tmp_path.parent}:{tmp_path}/tools:.:/usr/bin")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    box = make_box(Confinement(), ".venv/bin/python", str(tmp_path), [])
    assert box.readable == (f"{tmp_path}/.local/share/uv/python", f"{tmp_path}/.pyenv", f"{tmp_path}/tools")

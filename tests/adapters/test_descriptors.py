"""No program that we start gets a file that we have open, even one that a library has made inheritable."""

from __future__ import annotations

import ast
import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.processes.confinement import UNCONFINED
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.foreground import run_in_foreground
from swarm_tui.adapters.processes.run import run_process, run_process_blocking, start_detached
from swarm_tui.adapters.processes.terminal import spawn_on_terminal
from swarm_tui.adapters.pytest import run_command
from swarm_tui.hosts.link import LineProcess
from tests.git_project import GitProject
from tests.programs import make_program
from tests.test_architecture import parsed, shown, sources
from tests.waiting import PATIENCE, until

OPENED: Final = "opened-by-the-engine"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    """Return a descriptor that every child would inherit."""
    descriptor = os.open(tmp_path / OPENED, os.O_RDWR | os.O_CREAT)
    os.set_inheritable(descriptor, True)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@pytest.fixture
def program(tmp_path: Path) -> str:
    """Return a program that writes down what it has open."""
    listing = f"ls -l /proc/$$/fd > {tmp_path}/part && mv {tmp_path}/part {tmp_path}/seen"
    return str(make_program(tmp_path / "program", listing))


def run_git(program: str, folder: Path) -> None:
    project = GitProject(folder / "project")
    project.commit("base", {"file": "x\n"})
    Repository.open(project.root).run("-c", f"alias.list=!{program}", "list")


def run_mngr(program: str, folder: Path) -> None:
    asyncio.run(Mngr(program, scrubbed_environment(), folder).plugins())


def run_lines(program: str, folder: Path) -> None:
    async def run() -> None:
        process = LineProcess([program], cwd=folder)
        await process.lines()
        process.close()

    asyncio.run(run())


def run_test_command(program: str, folder: Path) -> None:
    asyncio.run(run_command(program, folder, import_roots=(), variables={}, timeout=PATIENCE))


def run_on_terminal(program: str, folder: Path) -> None:
    spawn_on_terminal([program], rows=24, columns=80, environment=os.environ, cwd=folder).wait()


STARTERS: Final[dict[str, Callable[[str, Path], object]]] = {
    "programs": lambda program, folder: asyncio.run(run_process([program])),
    "bounded runs": lambda program, folder: asyncio.run(
        UNCONFINED.run([program], cwd=folder, environment=os.environ, timeout=PATIENCE)
    ),
    "without a loop": lambda program, folder: run_process_blocking([program]),
    "the engine": lambda program, folder: start_detached(
        [program], cwd=folder, environment=os.environ, log=folder / "log"
    ),
    "editors": lambda program, folder: run_in_foreground([program], cwd=folder, environment=os.environ),
    "git": run_git,
    "mngr": run_mngr,
    "test commands": run_test_command,
    "terminals": run_on_terminal,
    "kept programs": run_lines,
}


@pytest.mark.parametrize("name", STARTERS)
@pytest.mark.usefixtures("opened")
def test_open_files_reach_no_program(name: str, program: str, tmp_path: Path) -> None:
    STARTERS[name](program, tmp_path)
    until((tmp_path / "seen").exists, "the program to write down what it has open")
    seen = (tmp_path / "seen").read_text()
    assert " -> " in seen
    assert OPENED not in seen


def test_programs_inherit_no_descriptors() -> None:
    words = {
        shown(path): word.arg
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg in ("close_fds", "pass_fds", "inheritable")
    }
    # The connection on which a test run reports is the one exception, here and on hosts.
    assert words == {"adapters/processes/group.py": "pass_fds", "hosts/test_run.py": "pass_fds"}

"""Fixtures for all tests, and how they are run: in parallel when all of them are asked for."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from swarm_tui.adapters.processes import keep_ignored_signals_to_ourselves
from swarm_tui.adapters.processes.confinement import check_confinement
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.model.run_limits import Confinement
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.leftovers import RunFolder
from tests.programs import require_program, summary_of_skips
from tests.waiting import time_limit

__all__ = ["IsolatedMngr"]

# Examples are the same in every run, so that none is red by luck; `--hypothesis-profile=search` looks for new ones.
# How long one example takes says more about the machine than about the law.
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("search", derandomize=False, deadline=None, max_examples=2000)
settings.load_profile("fixed")

MOST_WORKERS = 8

# Without bytecode, each worker compiles all tests, and each program that they start compiles what it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Under `nohup`, too, the programs of the tests are interrupted as at a terminal.
keep_ignored_signals_to_ourselves()

# All temporary files are below this folder; it and all that tests have started are gone after the run.
_FOLDER = RunFolder()

# What was seen of each sweep is kept for the tests alone; programs that they start share it.
os.environ["XDG_STATE_HOME"] = str(_FOLDER.path / "state")


EXTRA_SUITES = frozenset({"contract", "docker"})
"""Folders that are run only if they are named: they need minutes for each agent program, or a Docker daemon."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the extra suites unless an argument names them."""
    is_extra = collection_path.parent == Path(__file__).parent and collection_path.name in EXTRA_SUITES
    is_named = any(collection_path.name in Path(argument.partition("::")[0]).parts for argument in config.args)
    return True if is_extra and not is_named else None


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run all tests in parallel, unless -n is given: `-n 0` for no workers."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or hasattr(config, "workerinput"):
        return
    has_a_say = any(config.getoption(name, None) for name in ("usepdb", "collectonly", "lf", "failedfirst", "stepwise"))
    if has_a_say or not config.pluginmanager.hasplugin("xdist") or config.getoption("numprocesses") is not None:
        return
    # Most tests wait for real programs more than they compute: three workers suit two cores.
    config.option.numprocesses = min(len(os.sched_getaffinity(0)) + 1, MOST_WORKERS)
    if config.option.dist == "no":
        config.option.dist = "loadfile"
    # Files are given out in our order, not by how many tests they have.
    config.option.loadscopereorder = False


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what the tests have left, but for environments of the `e2e` fixture that are to be kept."""
    _FOLDER.close(is_kept=config.getoption("--swarm-e2e-keep-env", "never") != "never")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with slow tests first: many short ones in the end keep all workers at work until the last."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Skip a test if one of its programs is missing, and limit the time of its fixtures."""
    for marker in item.iter_markers("needs"):
        for name in marker.args:
            require_program(name)
    with time_limit():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Limit the time of a test."""
    with time_limit():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Iterator[None]:
    """Limit the time of a test's cleanup."""
    with time_limit():
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print at the end which programs were missing for skipped tests."""
    skipped = terminalreporter.stats.get("skipped", ())
    summary = summary_of_skips(str(report.longrepr) for report in skipped)
    if summary:
        terminalreporter.write_line(f"not tried here: {summary}", yellow=True)


@pytest.fixture(scope="session")
def mngr_path() -> str:
    """Return the mngr that the tests use: SWARM_MNGR, PATH, or the private environment."""
    try:
        return asyncio.run(find_mngr()).path
    except AdapterError as error:
        missing = error.message
    pytest.fail(f"these tests need mngr 0.3 ({missing}): run `swarm-tui doctor --fix`", pytrace=False)


@pytest.fixture(scope="session")
def isolated_mngr(mngr_path: str) -> Iterator[IsolatedMngr]:
    """Return a real mngr that sees nothing of the user's: own home, own tmux server, own repository."""
    with isolate_mngr(mngr_path) as isolated:
        yield isolated


@pytest.fixture
def namespaces() -> None:
    """Skip where bwrap is there but the kernel refuses: no package brings that."""
    try:
        asyncio.run(check_confinement(Confinement()))
    except UsageError as error:
        pytest.skip(f"not tried here for want of namespaces: {error}")


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Show all times in UTC, as the expected screens do."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()

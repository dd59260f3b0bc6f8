"""A pytest plugin that reports to swarm-tui: an agent's runs of its test, or the collected tests.

swarm-tui adds it to PYTHONPATH, and pytest finds it through its entry point, so it runs in any project's interpreter:
Python 3.6 and newer, pytest 5.4 and newer, the standard library only. Without its variables in the environment it does
nothing, and its errors never affect the test run.

SWARM_TASK      the agent's task file, with the agent's test and the path of the user's checkout
SWARM_TRIES     the file for tries; the default is a file in the agent's state folder
SWARM_COLLECT   write the collected tests to this file as JSON
SWARM_TOP       folders, such as the top of the repository; modules that were imported from them are recorded
SWARM_NAMED_IN  the user's checkout, whose paths appear in node ids; SWARM_COPY is the copy (see `names`)
SWARM_OWN_HOME, SWARM_TEST_TIMEOUT, SWARM_MEMORY_LIMIT, SWARM_CPU_LIMIT   isolate and limit test runs (see `limits`)

In runs that swarm-tui starts, `run_pytest` sets `channel`, which receives the result of each test.
"""

import os
import sys
from typing import Any

import pytest

from .collection import Collection, write_no_reports
from .limits import TimeLimit, limit_memory, limit_processors, take_own_home
from .names import FirstNames, as_here, short_name
from .report import QUIETLY
from .results import Results
from .selection import SETTING, SelectById, add_setting
from .tries import Tries, Witness, read_task, tries_file

_STARTUP_PATH = list(sys.path)
_STARTED_IN = os.getcwd()
_OUTER = "SWARM_LIVE_OUTER"
_is_inside: bool = False
channel: Any = None

with QUIETLY:
    take_own_home()
with QUIETLY:
    limit_memory()
with QUIETLY:
    limit_processors()


def pytest_addoption(parser: Any) -> None:
    with QUIETLY:
        add_setting(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: Any) -> None:
    with QUIETLY:
        _configure(config)


def pytest_make_parametrize_id(config: Any, val: Any) -> Any:
    with QUIETLY:
        name = short_name(val)
        if name is None or config.getini("disable_test_id_escaping_and_forfeit_all_rights_to_community_support"):
            return name
        return name.encode("unicode_escape").decode("ascii")
    return None


def pytest_unconfigure(config: Any) -> None:
    with QUIETLY:
        _unconfigure(config)


def _configure(config: Any) -> None:
    global _is_inside
    config.args[:] = [as_here(str(word)) for word in config.args]
    if config.getini(SETTING) and not config.pluginmanager.hasplugin("swarm-live-selection"):
        config.pluginmanager.register(SelectById(config, _STARTED_IN), "swarm-live-selection")
    seconds = os.environ.get("SWARM_TEST_TIMEOUT")
    if seconds and not config.pluginmanager.hasplugin("swarm-live-time-limit"):
        config.pluginmanager.register(TimeLimit(float(seconds)), "swarm-live-time-limit")
    task = read_task(os.environ.get("SWARM_TASK"))
    if hasattr(config, "workerinput") or hasattr(config, "slaveinput"):
        # The controller gets all results. Only the workers can see imports and exceptions.
        if task:
            config.pluginmanager.register(FirstNames(), "swarm-live-first-names")
            config.pluginmanager.register(Witness(config, task, tries_file()), "swarm-live-witness")
        return
    if _is_inside or os.environ.get(_OUTER):
        return  # a session inside a session: the project tests pytest plugins
    recorders = _recorders(config, task)
    for number, recorder in enumerate(recorders):
        config.pluginmanager.register(recorder, f"swarm-live-recorder-{number}")
    if recorders:
        config.pluginmanager.register(FirstNames(), "swarm-live-first-names")
        _is_inside = True
        os.environ[_OUTER] = str(os.getpid())


def _recorders(config: Any, task: Any) -> Any:
    target = os.environ.get("SWARM_COLLECT")
    is_collecting = getattr(config.option, "collectonly", False)
    if target and is_collecting:
        write_no_reports(config, target)
    if target:
        return [Collection(config, target, _STARTUP_PATH, _STARTED_IN)]
    global channel
    if channel is not None:
        # The tested code must not find it here.
        own, channel = channel, None
        return [Results(own)]
    return [Tries(config, task, tries_file())] if task and not is_collecting else []


def _unconfigure(config: Any) -> None:
    global _is_inside
    if config.pluginmanager.hasplugin("swarm-live-recorder-0"):
        _is_inside = False
        os.environ.pop(_OUTER, None)

"""Applies resource limits to test runs, and gives them a separate HOME. Python 3.6, the standard library only."""

import os
import signal
import sys
import threading
import time
from typing import Any

import pytest

from .report import QUIETLY
from .results import Results

# The most extra seconds for a test that ignores its alarm, before its process is killed.
_MOST_GRACE = 5.0


def take_own_home() -> None:
    """Set a separate home before any test code runs. git still reads the user's settings."""
    home = os.environ.get("SWARM_OWN_HOME")
    if not home or os.environ.get("HOME") == home:
        return
    settings = os.path.join(os.path.expanduser("~"), ".gitconfig")
    if os.path.exists(settings):
        os.environ.setdefault("GIT_CONFIG_GLOBAL", settings)
    if not os.path.isdir(home):
        os.makedirs(home)
    os.environ["HOME"] = home
    for name in ("CONFIG", "CACHE", "DATA", "STATE"):
        os.environ.pop("XDG_" + name + "_HOME", None)


def limit_memory() -> None:
    """Raise MemoryError in a process that allocates too much memory. Child processes inherit the limit."""
    size = os.environ.get("SWARM_MEMORY_LIMIT")
    if size:
        import resource

        # Limit data, not address space: programs reserve much more address space than they use.
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        limit = int(size) if hard == resource.RLIM_INFINITY else min(int(size), hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def limit_processors() -> None:
    """Restrict this process and its children to some of the processors. Agents get different ones."""
    limit = os.environ.get("SWARM_CPU_LIMIT")
    if limit and hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        count = min(int(limit), len(allowed))
        first = int(os.environ.get("SWARM_AGENT_NUMBER") or 0) * count
        os.sched_setaffinity(0, {allowed[(first + place) % len(allowed)] for place in range(count)})


class TimeLimit:
    """Fails a test that takes too long, at the line that hangs. Kills the process if the test cannot be interrupted."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.reason = f"did not finish within {seconds:g} s (--test-timeout)"
        self.test: Any = None
        self.reporter: Any = None
        self.deadline = 0.0
        self.changed = threading.Condition()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        with QUIETLY:
            self._begin(item)
        yield
        with QUIETLY:
            self._end()

    def _begin(self, item: Any) -> None:
        self.reporter = item.ihook
        with self.changed:
            if self.test is None and not any(thread.name == "swarm-time-limit" for thread in threading.enumerate()):
                threading.Thread(target=self._watch, name="swarm-time-limit", daemon=True).start()
            self.test, self.deadline = item, time.monotonic() + self.seconds + min(self.seconds, _MOST_GRACE)
            self.changed.notify()
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL:
            signal.signal(signal.SIGALRM, self._interrupt)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def _end(self) -> None:
        with self.changed:
            self.test = None
            self.changed.notify()
        if signal.getsignal(signal.SIGALRM) == self._interrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _interrupt(self, *_: Any) -> None:
        pytest.fail(self.reason, pytrace=True)

    def _watch(self) -> None:
        while True:
            with self.changed:
                left = self.deadline - time.monotonic() if self.test is not None else None
                if left is None or left > 0:
                    self.changed.wait(left)
                    continue
                test = self.test
            self._report(test)
            sys.stderr.write(f"\n{test.nodeid} {self.reason}: killing the process\n")
            sys.stderr.flush()
            os._exit(1)

    def _report(self, test: Any) -> None:
        """Report to the recorders, because pytest cannot report any more."""
        with QUIETLY:
            from _pytest.reports import TestReport

            for plugin in test.config.pluginmanager.get_plugins():
                if isinstance(plugin, Results):
                    plugin.end_overdue(test.nodeid, self.reason)
                    return
            parts: Any = (("call", "failed", self.reason), ("teardown", "passed", None))
            for when, outcome, reason in parts:
                report = TestReport(test.nodeid, test.location, {}, outcome, reason, when)
                for plugin in test.config.pluginmanager.get_plugins():
                    if type(plugin).__module__.split(".")[0] == "swarm_live" and hasattr(
                        plugin, "pytest_runtest_logreport"
                    ):
                        plugin.pytest_runtest_logreport(report)

"""Reports the result of each test to the parent process. Python 3.6, the standard library only."""

import json
import os
from typing import Any

import pytest

from .names import as_there
from .report import FAILURE_LIMIT, QUIETLY, ReportSum


class Channel:
    """The inherited connection to the parent process.

    Its first line is a secret, which only one process can read. Every record begins with the secret. A record without
    it, or with a wrong number, shows that another process has written to the connection.
    """

    def __init__(self, descriptor: int) -> None:
        # Programs that a test starts do not inherit it.
        os.set_inheritable(descriptor, False)
        secret = b""
        while not secret.endswith(b"\n"):
            byte = os.read(descriptor, 1)
            if not byte:
                raise OSError("the connection was closed before its first line")
            secret += byte
        process, number = os.getpid(), 0

        def send(**fields: Any) -> None:
            nonlocal number
            # A forked copy of this process runs the same code.
            if os.getpid() != process:
                return
            line = secret[:-1] + json.dumps(dict(fields, number=number)).encode("utf-8") + b"\n"
            number += 1
            while line:
                line = line[os.write(descriptor, line) :]

        self.send = send


class Results:
    """Sends a record when a test starts and when it finishes, so that the results survive a crash."""

    def __init__(self, channel: Channel) -> None:
        self.send = channel.send
        self.verdicts: Any = {}
        self.errors: Any = {}
        """The exception of the last call of each test function; empty if it returned."""

    def pytest_runtest_logstart(self, nodeid: Any) -> None:
        with QUIETLY:
            self._verdict_on(nodeid)

    # Runs inside the wrappers of other plugins, which may replace the exception.
    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> Any:
        outcome = yield
        with QUIETLY:
            self.errors[pyfuncitem.nodeid] = _in_a_line(outcome.excinfo[1]) if outcome.excinfo else ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        with QUIETLY:
            verdict = self._verdict_on(report.nodeid)
            verdict.add(report)
            if verdict.is_finished:
                del self.verdicts[report.nodeid]
                error = self.errors.pop(report.nodeid, "")
                if verdict.outcome == "passed" and error:
                    reason = "a hook reported it as passed, although it raised " + error
                    verdict.outcome, verdict.text = "failed", reason[:FAILURE_LIMIT]
                if verdict.outcome:
                    self.send(kind="finish", test=as_there(report.nodeid), text=verdict.text, **verdict.fields)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, exitstatus: Any) -> None:
        with QUIETLY:
            # pytest's exit code may differ, and a later hook may end the process before pytest exits.
            self.send(kind="end", code=code_of(exitstatus))

    def end_overdue(self, nodeid: Any, reason: Any) -> None:
        """Report the test that blocks the process, which is about to be killed."""
        with QUIETLY:
            self.send(kind="overdue", test=as_there(nodeid), text=reason)

    def _verdict_on(self, test: Any) -> Any:
        verdict = self.verdicts.get(test)
        if verdict is None:
            verdict = self.verdicts[test] = ReportSum()
            self.send(kind="start", test=as_there(test))
        return verdict


def code_of(status: Any) -> int:
    """Return the exit code for a status, which a hook may have replaced with any object."""
    return int(status) & 255 if isinstance(status, int) else int(status is not None)


def _in_a_line(error: Any) -> str:
    first_line = str(error).strip().split("\n")[0]
    return type(error).__name__ + (": " + first_line if first_line else "")

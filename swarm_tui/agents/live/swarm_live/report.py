"""Combines pytest's reports about one test, and writes lines to files. Python 3.6, the standard library only."""

import contextlib
import json
import os
import re
import time
from typing import Any

# Errors in this plugin must not affect the test run.
QUIETLY = contextlib.suppress(Exception)
FAILURE_LIMIT = 400
# The modules in an exception's name, which would leave no room for the message in a list.
_QUALIFIED = re.compile(r"^(?:\w+\.)+(?=\w+(?:: |$))")


class ReportSum:
    """The combined reports about one test. Its last run in this session counts, and any failure in it is a failure."""

    def __init__(self) -> None:
        self.reruns = 0
        self.seconds = 0.0
        self.is_finished = False
        self.clear()

    def clear(self) -> None:
        self.has_begun = False
        self.outcome = ""
        self.text = ""
        self.detail: Any = None

    def add(self, report: Any) -> None:
        self.seconds += getattr(report, "duration", 0.0) or 0.0
        if report.outcome not in ("passed", "failed", "skipped"):
            # The plugin runs the test again ("rerun" and similar), so this result does not count.
            self.reruns += 1
            self.clear()
            return
        # A crashed xdist worker reports its test with "???" as the phase.
        self.is_finished = report.when not in ("setup", "call")
        # Subtests are reported like tests, before the report of the test itself. Plugins that run tests again withhold
        # the reports of the test itself, including its set-up.
        is_part = type(report).__name__.lower() == "subtestreport"
        if report.when == "setup" and not is_part:
            if self.has_begun:
                self.clear()
            self.has_begun = True
        if report.outcome == "failed":
            if self.outcome != "failed":
                self.outcome, self.text = "failed", failure_line(report)
                self.detail = getattr(report, "swarm_failure", None)
        elif self.outcome == "" and not is_part:
            if report.outcome == "skipped":
                self.outcome = "xfailed" if hasattr(report, "wasxfail") else "skipped"
                self.text = skip_reason(report)
            elif report.when == "call":
                self.outcome = "xpassed" if hasattr(report, "wasxfail") else "passed"

    @property
    def is_green(self) -> bool:
        return self.outcome in ("passed", "xfailed", "xpassed")

    @property
    def fields(self) -> Any:
        return {"outcome": self.outcome, "seconds": round(self.seconds, 4), "reruns": self.reruns}


def long_text(report: Any) -> str:
    try:
        return str(report.longrepr)[:20000]
    except Exception:
        return "(no text)"


def failure_line(report: Any) -> str:
    """Return the line of a report that shows why the test failed."""
    longrepr = report.longrepr
    crash: Any = getattr(longrepr, "reprcrash", None)
    message = getattr(crash, "message", None)
    if message:
        line = _QUALIFIED.sub("", str(message).strip().split("\n")[0])
        return f"{os.path.basename(str(crash.path))}:{crash.lineno}: {line}"[:FAILURE_LIMIT]
    lines = [line for line in long_text(report).split("\n") if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    prefix = "" if report.outcome != "failed" or getattr(report, "when", None) == "call" else "error: "
    return (prefix + (marked or lines or ["failed"])[-1])[:FAILURE_LIMIT]


def skip_reason(report: Any) -> str:
    """Return why a test was skipped or is expected to fail."""
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail).replace("reason: ", "", 1)[:FAILURE_LIMIT]
    longrepr = report.longrepr
    reason = str(longrepr[2]) if isinstance(longrepr, tuple) else failure_line(report)
    return reason.replace("Skipped: ", "", 1)[:FAILURE_LIMIT]


def append(path: Any, **fields: Any) -> None:
    line = json.dumps(dict(fields, at=time.time())) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode("utf-8"))
    finally:
        os.close(descriptor)

"""Records which runs an agent makes of its test. Python 3.6, the standard library only."""

import json
import os
import time
from typing import Any

import pytest

from .failure import describe_failure
from .imports import is_written_by_build, modules_inside, root_of
from .names import as_there
from .report import FAILURE_LIMIT, QUIETLY, ReportSum, append, failure_line, skip_reason
from .used_code import UseWatch, can_watch


def read_task(path: Any) -> Any:
    """Return the content of the agent's task file; None if there is none."""
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def tries_file() -> str:
    """Return the file for tries; create its folder."""
    path = os.environ.get("SWARM_TRIES")
    if not path:
        path = os.path.join(os.environ["MNGR_AGENT_STATE_DIR"], "plugin", "swarm", "tries.jsonl")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.makedirs(folder)
    return path


class Witness:
    """Records facts that are only available in the process that runs the agent's test.

    Adds to each report why the test failed; xdist sends it to the controller. Records modules that were imported from
    the user's checkout instead of the agent's copy.
    """

    def __init__(self, config: Any, task: Any, path: Any) -> None:
        self.path = path
        self.root = root_of(config)
        self.file, self.rest = task["file"], task["rest"]
        self.repository = os.path.realpath(task["repository"])
        self.copy = os.path.realpath(os.environ.get("MNGR_AGENT_WORK_DIR") or os.getcwd())

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
        outcome = yield
        with QUIETLY:
            if call.excinfo is not None and self._is_own_test(item.nodeid):
                self._describe(outcome.get_result(), call.excinfo.value)

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: Any) -> Any:
        outcome = yield
        with QUIETLY:
            report = outcome.get_result()
            if report.failed and collector.nodeid and self._is_own_file(collector.nodeid):
                self._describe(report, report.call.excinfo.value)

    def _describe(self, report: Any, error: Any) -> None:
        if report.outcome == "failed":
            report.swarm_failure = describe_failure(error, self.copy, os.path.join(self.copy, self.file))

    def pytest_sessionfinish(self) -> None:
        with QUIETLY:
            found = modules_inside(self.repository, (self.copy,))
            foreign = [name for name in found if not is_written_by_build(name, self.repository, self.copy)]
            if foreign:
                append(self.path, kind="foreign", modules=sorted(foreign)[:20])

    def _is_own_test(self, nodeid: Any) -> bool:
        file, _, rest = as_there(nodeid).partition("::")
        # xdist's loadgroup appends its group to the id.
        return (rest == self.rest or rest.startswith(self.rest + "@")) and self._is_own_file(file)

    def _is_own_file(self, file: Any) -> bool:
        # Resolve only the path of the root: node ids contain the project's own symbolic links unresolved.
        path = os.path.normpath(os.path.join(os.path.realpath(self.root), file))
        return bool(path == os.path.join(self.copy, self.file))


class Tries(Witness):
    """Records each run of the agent's own test."""

    def __init__(self, config: Any, task: Any, path: Any) -> None:
        Witness.__init__(self, config, task, path)
        self.run = f"{os.getpid()}-{int(time.time() * 1000):x}"
        self.verdict: Any = None
        used = os.path.join(os.path.dirname(path), "used.json")
        self.used: Any = UseWatch(self.copy, used) if can_watch() else None

    def pytest_runtest_logstart(self, nodeid: Any) -> None:
        with QUIETLY:
            if self._is_own_test(nodeid):
                self._start()

    def pytest_runtest_logreport(self, report: Any) -> None:
        with QUIETLY:
            if self._is_own_test(report.nodeid):
                self._start()
                self.verdict.add(report)
                if self.verdict.is_finished:
                    self._finish()

    def pytest_collectreport(self, report: Any) -> None:
        with QUIETLY:
            # Show a collection error to the agent as a run of its test.
            if report.outcome != "passed" and report.nodeid and self._is_own_file(report.nodeid):
                self._start()
                self.verdict.outcome = report.outcome
                self.verdict.text = failure_line(report) if report.failed else skip_reason(report)
                self.verdict.detail = getattr(report, "swarm_failure", None)
                self._finish()

    def _start(self) -> None:
        if self.verdict is None:
            self.verdict = ReportSum()
            append(self.path, kind="start", run=self.run)
            if self.used:
                self.used.begin()

    def _finish(self) -> None:
        verdict, self.verdict = self.verdict, None
        if self.used:
            self.used.end(verdict.outcome)
        if verdict.outcome:
            failure = f"skipped: {verdict.text}" if verdict.outcome == "skipped" else verdict.text
            failure = failure[:FAILURE_LIMIT]
            fields = dict(verdict.fields, detail=verdict.detail) if verdict.detail else verdict.fields
            append(self.path, kind="finish", run=self.run, passed=verdict.is_green, failure=failure, **fields)

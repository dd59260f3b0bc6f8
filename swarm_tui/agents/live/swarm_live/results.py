"""Records what each test of a run came to. Python 3.6, the standard library only."""

from typing import Any

from .named_paths import as_there
from .verdict import ReportSum
from .writing import QUIETLY, append


class Results:
    """Appends a line when a test begins and one when it ends, so that a process which dies leaves what it knew."""

    def __init__(self, path: Any) -> None:
        self.path = path
        self.verdicts: Any = {}

    def pytest_runtest_logstart(self, nodeid: Any) -> None:
        with QUIETLY:
            self._verdict_on(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        with QUIETLY:
            verdict = self._verdict_on(report.nodeid)
            verdict.add(report)
            if verdict.is_finished:
                del self.verdicts[report.nodeid]
                if verdict.outcome:
                    append(self.path, kind="finish", test=as_there(report.nodeid), text=verdict.text, **verdict.fields)

    def _verdict_on(self, test: Any) -> Any:
        verdict = self.verdicts.get(test)
        if verdict is None:
            verdict = self.verdicts[test] = ReportSum()
            append(self.path, kind="start", test=as_there(test))
        return verdict

"""Records the code and files of the copy that the agent's test uses. Python 3.6, the standard library only.

Since Python 3.12 this has almost no cost (sys.monitoring). In older versions it is optional (sys.setprofile).
"""

import json
import os
import sys
import threading
from typing import Any

from .imports import files_inside
from .report import QUIETLY

_TOOL = 4
_LIMIT = 20000
_PROGRAMS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system", "os.fork", "os.forkpty")
_audited: Any = None


def can_watch() -> bool:
    """Return whether used code should be recorded in this process."""
    return hasattr(sys, "monitoring") or bool(os.environ.get("SWARM_USED") and not sys.getprofile())


class UseWatch:
    """The code that the first run of a test uses. In later runs, the agent may have changed the tree."""

    def __init__(self, copy: str, path: str) -> None:
        self.copy = copy
        self.path = path
        self.codes: Any = set()
        self.opened: Any = set()
        self.has_programs = False
        self.is_open = not os.path.exists(path)
        if self.is_open and hasattr(sys, "addaudithook"):
            global _audited
            if _audited is None:
                sys.addaudithook(_audit)
            _audited = self

    def begin(self) -> None:
        """Start recording called functions."""
        with QUIETLY:
            if not self.is_open:
                return
            monitoring: Any = getattr(sys, "monitoring", None)
            if monitoring is None:
                threading.setprofile(self._called)
                sys.setprofile(self._called)
                return
            monitoring.use_tool_id(_TOOL, "swarm_live")
            monitoring.register_callback(_TOOL, monitoring.events.PY_START, self._started)
            monitoring.set_events(_TOOL, monitoring.events.PY_START)

    def end(self, outcome: str) -> None:
        """Stop recording, and write the used code and the result of the test."""
        with QUIETLY:
            if not self.is_open:
                return
            self.is_open = False
            monitoring: Any = getattr(sys, "monitoring", None)
            if monitoring is None:
                sys.setprofile(None)
                threading.setprofile(None)
            else:
                monitoring.set_events(_TOOL, 0)
                monitoring.free_tool_id(_TOOL)
            self._write(outcome)

    def _started(self, code: Any, _offset: Any) -> Any:
        self.codes.add(code)
        return sys.monitoring.DISABLE  # type: ignore[attr-defined]

    def _called(self, frame: Any, event: Any, _argument: Any) -> None:
        if event == "call":
            self.codes.add(frame.f_code)

    def _write(self, outcome: str) -> None:
        functions: Any = {}
        for code in list(self.codes):
            file = self._inside(code.co_filename)
            if file:
                functions.setdefault(file, set()).add(code.co_firstlineno)
        loaded = {self._inside(path) for path in files_inside(self.copy)} - {None}
        opened = {self._inside(path) for path in list(self.opened)} - {None}
        content = {
            "outcome": outcome,
            "functions": {file: sorted(lines) for file, lines in functions.items()},
            "loaded": sorted(loaded)[:_LIMIT],
            "opened": sorted(file for file in opened if not file.endswith((".py", ".pyc")))[:_LIMIT],
            "has_programs": self.has_programs,
            "is_whole": hasattr(sys, "addaudithook"),
        }
        draft = self.path + ".draft"
        with open(draft, "w", encoding="utf-8") as target:
            json.dump(content, target)
        os.rename(draft, self.path)

    def _inside(self, path: Any) -> Any:
        """Return a file's path relative to the copy; None if it is elsewhere or was created by the run."""
        if not isinstance(path, str) or not path or path.startswith("<"):
            return None
        below = os.path.relpath(os.path.realpath(path), self.copy)
        parts = below.split(os.sep)
        if parts[0] == os.pardir or "site-packages" in parts or parts[0] in (".git", ".test_output", ".pytest_cache"):
            return None
        return below


def _audit(event: str, arguments: Any) -> None:
    watch = _audited
    if watch is None or not watch.is_open:
        return
    if event == "open":
        if isinstance(arguments[0], str):
            watch.opened.add(os.path.abspath(arguments[0]))
    elif event in _PROGRAMS:
        watch.has_programs = True

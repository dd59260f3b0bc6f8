"""A pytest plugin that records for swarm-tui what pytest reports: an agent's runs of its test, or what was collected.

It is put on PYTHONPATH and found through its entry point, so it runs inside any project's interpreter:
Python 3.6 and newer, pytest 5.4 and newer, the standard library only. Without its variables in the
environment it does nothing, and an error in it never reaches the run that it records.

SWARM_TASK      the agent's task file: which test is its own, and where the user's checkout lies
SWARM_TRIES     where the tries go; else a file in the agent's state folder
SWARM_COLLECT   write what was collected to this file as JSON, and the results of a run behind it
"""

import contextlib
import json
import os
import sys
import time
from typing import Any

_STARTUP_PATH = list(sys.path)
_OUTER = "SWARM_LIVE_OUTER"
_FAILURE_LIMIT = 400
# No error in this plugin may reach the run that it records.
_QUIETLY = contextlib.suppress(Exception)
_is_inside: bool = False


def pytest_configure(config: Any) -> None:
    with _QUIETLY:
        _configure(config)


def pytest_unconfigure(config: Any) -> None:
    with _QUIETLY:
        _unconfigure(config)


def _configure(config: Any) -> None:
    global _is_inside
    task = _read_task(os.environ.get("SWARM_TASK"))
    if hasattr(config, "workerinput") or hasattr(config, "slaveinput"):
        # The controller gets every result; only the workers know what was imported.
        if task:
            config.pluginmanager.register(_Imports(task, _tries_file()), "swarm-live-imports")
        return
    if _is_inside or os.environ.get(_OUTER):
        return  # a session inside a session: the project tests pytest plugins
    target = os.environ.get("SWARM_COLLECT")
    if target:
        recorder: Any = _Collection(config, target)
    elif task and not getattr(config.option, "collectonly", False):
        recorder = _Tries(config, task, _tries_file())
    else:
        return
    config.pluginmanager.register(recorder, "swarm-live-recorder")
    _is_inside = True
    os.environ[_OUTER] = str(os.getpid())


def _unconfigure(config: Any) -> None:
    global _is_inside
    if config.pluginmanager.hasplugin("swarm-live-recorder"):
        _is_inside = False
        os.environ.pop(_OUTER, None)


def _read_task(path: Any) -> Any:
    if not path:
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _tries_file() -> str:
    path = os.environ.get("SWARM_TRIES")
    if not path:
        path = os.path.join(os.environ["MNGR_AGENT_STATE_DIR"], "plugin", "swarm", "tries.jsonl")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        os.makedirs(folder)
    return path


def _append(path: Any, **fields: Any) -> None:
    line = json.dumps(dict(fields, at=time.time())) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode("utf-8"))
    finally:
        os.close(descriptor)


def _root_of(config: Any) -> str:
    return str(getattr(config, "rootpath", None) or config.rootdir)


class _Imports:
    """Records modules that were imported from the user's checkout instead of the agent's copy."""

    def __init__(self, task: Any, path: Any) -> None:
        self.path = path
        self.repository = os.path.realpath(task["repository"])
        self.copy = os.path.realpath(os.environ.get("MNGR_AGENT_WORK_DIR") or os.getcwd())

    def pytest_sessionfinish(self) -> None:
        with _QUIETLY:
            foreign = _modules_inside(self.repository, (self.copy,))
            if foreign:
                _append(self.path, kind="foreign", modules=sorted(foreign)[:20])


class _Tries(_Imports):
    """Records each run of the agent's own test."""

    def __init__(self, config: Any, task: Any, path: Any) -> None:
        _Imports.__init__(self, task, path)
        self.root = _root_of(config)
        self.file, self.rest = task["file"], task["rest"]
        self.run = f"{os.getpid()}-{int(time.time() * 1000):x}"
        self.is_started = self.is_finished = False
        self.seconds = 0.0
        self.failure: Any = None

    def pytest_runtest_logstart(self, nodeid: Any) -> None:
        with _QUIETLY:
            if self._is_own_test(nodeid):
                self._start()

    def pytest_runtest_logreport(self, report: Any) -> None:
        with _QUIETLY:
            if not self._is_own_test(report.nodeid):
                return
            self._start()
            self.seconds += getattr(report, "duration", 0.0) or 0.0
            is_good = report.outcome == "passed" or (report.outcome == "skipped" and hasattr(report, "wasxfail"))
            if report.when == "setup" or report.outcome == "rerun":
                # A test that is run again in the same session is judged by its last run.
                self.failure = None
            if report.outcome == "rerun":
                return
            if self.failure is None and not is_good:
                self.failure = _failure_line(report)
            if report.when not in ("setup", "call"):
                self._finish()

    def pytest_collectreport(self, report: Any) -> None:
        with _QUIETLY:
            # The agent sees an error in the test's file as a failed run of the test.
            if report.failed and report.nodeid and self._is_own_file(report.nodeid):
                self._start()
                self.failure = _failure_line(report)
                self._finish()

    def _start(self) -> None:
        if not self.is_started or self.is_finished:
            self.is_started, self.is_finished = True, False
            self.seconds, self.failure = 0.0, None
            _append(self.path, kind="start", run=self.run)

    def _finish(self) -> None:
        self.is_finished = True
        _append(
            self.path,
            kind="finish",
            run=self.run,
            passed=self.failure is None,
            seconds=round(self.seconds, 4),
            failure=self.failure or "",
        )

    def _is_own_test(self, nodeid: Any) -> bool:
        file, _, rest = nodeid.partition("::")
        # xdist's loadgroup appends its group to the id.
        return (rest == self.rest or rest.startswith(self.rest + "@")) and self._is_own_file(file)

    def _is_own_file(self, file: Any) -> bool:
        path = os.path.realpath(os.path.join(self.root, file))
        return bool(path == os.path.join(self.copy, self.file))


class _Collection:
    """Records what was collected, and in a run the outcome of each test."""

    def __init__(self, config: Any, target: Any) -> None:
        self.config = config
        self.target = target
        self.errors: Any = []
        self.outcomes: Any = {}
        self.content: Any = None

    def pytest_collectreport(self, report: Any) -> None:
        with _QUIETLY:
            if report.failed:
                self.errors.append({"id": report.nodeid, "text": _long_text(report)})

    def pytest_collection_finish(self, session: Any) -> None:
        with _QUIETLY:
            root = _root_of(self.config)
            option = self.config.option
            self.content = {
                "root": root,
                "python": sys.version.split()[0],
                "prefix": sys.prefix,
                "items": [_describe(item) for item in session.items],
                "errors": self.errors,
                "outcomes": self.outcomes,
                "startup_path": [os.path.abspath(entry) for entry in _STARTUP_PATH],
                "path": [os.path.abspath(entry) for entry in sys.path],
                "loaded": _modules_inside(root, ()),
                "positional": [str(word) for word in getattr(option, "file_or_dir", None) or ()],
            }
            self._write()

    def pytest_runtest_logreport(self, report: Any) -> None:
        with _QUIETLY:
            nodeid = report.nodeid
            if report.outcome == "failed":
                self.outcomes[nodeid] = "failed"
            elif report.when == "call" and self.outcomes.get(nodeid) != "failed":
                self.outcomes[nodeid] = report.outcome

    def pytest_sessionfinish(self) -> None:
        with _QUIETLY:
            if self.content is None:
                self.content = {"root": _root_of(self.config), "items": [], "errors": self.errors}
            self.content["outcomes"] = self.outcomes
            self._write()

    def _write(self) -> None:
        draft = self.target + ".draft"
        with open(draft, "w", encoding="utf-8") as file:
            # Escaped, so that an id with half a surrogate pair can be written too.
            json.dump(self.content, file, ensure_ascii=True)
        os.rename(draft, self.target)


def _describe(item: Any) -> Any:
    location = getattr(item, "location", None) or ("", None, "")
    return {"id": item.nodeid, "line": (location[1] or 0) + 1}


def _modules_inside(folder: Any, left_out: Any) -> Any:
    """Return {top-level module: the folder it was found in} for modules that lie in a folder, but not in its venv."""
    outside = [os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)]
    found = {}
    for name, module in list(sys.modules.items()):
        if "." in name or name in ("__main__", "swarm_live", "conftest"):
            continue
        path = _path_of(module)
        if not path or not _is_below(path, folder) or "site-packages" in path.split(os.sep):
            continue
        if any(_is_below(path, left) for left in left_out):
            continue
        # A venv often lies in the project, but a project may also lie in the folder of its interpreter.
        if any(_is_below(path, other) and not _is_below(folder, other) for other in outside):
            continue
        found[name] = os.path.dirname(path)
    return found


def _path_of(module: Any) -> Any:
    """Return the file of a module, or the folder of a package."""
    try:
        paths = list(getattr(module, "__path__", None) or ())
        path = paths[0] if paths else getattr(module, "__file__", None)
        return os.path.realpath(path) if isinstance(path, str) and path else None
    except Exception:
        return None


def _is_below(path: Any, folder: Any) -> bool:
    return bool(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep))


def _long_text(report: Any) -> str:
    try:
        return str(report.longrepr)[:20000]
    except Exception:
        return "(no text)"


def _failure_line(report: Any) -> str:
    """Return the line of a report that says why the test failed."""
    longrepr = report.longrepr
    if report.outcome == "skipped" and isinstance(longrepr, tuple):
        reason = str(longrepr[2]).replace("Skipped: ", "", 1)
        return f"skipped: {reason}"[:_FAILURE_LIMIT]
    crash: Any = getattr(longrepr, "reprcrash", None)
    message = getattr(crash, "message", None)
    if message:
        line = str(message).strip().split("\n")[0]
        return f"{os.path.basename(str(crash.path))}:{crash.lineno}: {line}"[:_FAILURE_LIMIT]
    lines = [line for line in _long_text(report).split("\n") if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    prefix = "" if report.outcome != "failed" or getattr(report, "when", None) == "call" else "error: "
    return (prefix + (marked or lines or ["failed"])[-1])[:_FAILURE_LIMIT]

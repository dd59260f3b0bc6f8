"""Records what pytest collected, and how the project has set it up. Python 3.6, the standard library only."""

import json
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

from .imports import compiled_inside, modules_inside, root_of
from .verdict import long_text
from .writing import QUIETLY

# Options of pytest and its plugins that name a file of results; nothing was run, so there is nothing to write.
_REPORTS = (
    "xmlpath",
    "htmlpath",
    "report_log",
    "json_report",
    "log_file",
    "resultlog",
    "csv_path",
    "allure_report_dir",
)
_TRAIT_LIMIT = 80
_MARKERS_OF_PYTEST = frozenset(("marker parametrize", "marker usefixtures"))


class Collection:
    """Records what was collected."""

    def __init__(self, config: Any, target: Any, startup_path: Any) -> None:
        self.config = config
        self.target = target
        self.startup_path = startup_path
        self.errors: Any = []
        self.content: Any = None

    def pytest_collectreport(self, report: Any) -> None:
        with QUIETLY:
            if report.failed:
                self.errors.append({"id": report.nodeid, "text": long_text(report)})

    def pytest_internalerror(self, excrepr: Any) -> None:
        with QUIETLY:
            self.errors.append({"id": "", "text": f"INTERNALERROR\n{excrepr}"[-20000:]})

    def pytest_collection_finish(self, session: Any) -> None:
        with QUIETLY:
            top = os.path.realpath(os.environ.get("SWARM_TOP") or root_of(self.config))
            tests = {str(getattr(item, "fspath", "")) for item in session.items}
            self.content = {
                "root": root_of(self.config),
                "python": sys.version.split()[0],
                "prefix": sys.prefix,
                "items": [_describe(item) for item in session.items],
                "errors": self.errors,
                "startup_path": [os.path.abspath(entry) for entry in self.startup_path],
                "path": [os.path.abspath(entry) for entry in sys.path],
                "loaded": modules_inside(top, (), tests),
                "compiled": compiled_inside(top),
                "installed": sorted({name.split(".")[0] for name in _installed(())}),
                "installed_compiled": sorted({name.split(".")[0] for name in _installed(EXTENSION_SUFFIXES)}),
                "positional": [str(word) for word in getattr(self.config.option, "file_or_dir", None) or ()],
                "single_run": single_run_words(self.config),
            }
            self._write()

    def pytest_sessionfinish(self) -> None:
        with QUIETLY:
            if self.content is None:
                self.content = {"root": root_of(self.config), "items": [], "errors": self.errors}
            self._write()

    def _write(self) -> None:
        draft = self.target + ".draft"
        with open(draft, "w", encoding="utf-8") as file:
            # Escaped, so that an id with half a surrogate pair can be written too.
            json.dump(self.content, file, ensure_ascii=True)
        os.rename(draft, self.target)


def single_run_words(config: Any) -> Any:
    """Return the words by which the project's own plugins leave out what the run of one test has no use for."""
    option, has_plugin = config.option, config.pluginmanager.hasplugin
    words = []
    if has_plugin("xdist") and (getattr(option, "numprocesses", None) or getattr(option, "tx", None)):
        words.append("-n0")
    if has_plugin("pytest_cov") and getattr(option, "cov_source", None):
        words.append("--no-cov")
    if getattr(option, "lf", False) and getattr(option, "last_failed_no_failures", "") == "none":
        words.append("--lfnf=all")
    if not has_plugin("cacheprovider"):
        words += ["-p", "no:cacheprovider"]
    if getattr(option, "disable_plugin_autoload", False):
        words += ["-p", "swarm_live"]
    return words


def write_no_reports(config: Any) -> None:
    """Let a session that only collects leave no file of results in the checkout."""
    for name in _REPORTS:
        if getattr(config.option, name, None):
            setattr(config.option, name, os.devnull if name == "log_file" else None)


def _describe(item: Any) -> Any:
    location = getattr(item, "location", None) or ("", None, "")
    described = {"id": item.nodeid, "line": (location[1] or 0) + 1}
    with QUIETLY:
        described["traits"] = _traits_of(item)
    with QUIETLY:
        described["group"] = _group_of(item)
    return described


def _traits_of(item: Any) -> Any:
    """Return what a test may share with others: its fixtures, markers and parameters, as words."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    names = [name for name in getattr(item, "fixturenames", ()) if name != "request" and name not in parameters]
    fixtures = [f"fixture {name}" for name in names]
    markers = {f"marker {mark.name}" for mark in item.iter_markers()} - _MARKERS_OF_PYTEST
    values = [f"parameter {name}={value}" for name, value in parameters.items() if _is_plain(value)]
    return [trait[:_TRAIT_LIMIT] for trait in (*fixtures[:30], *sorted(markers)[:20], *values[:10])]


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (str, int, float, bool)


def _group_of(item: Any) -> str:
    """Return the group whose tests xdist runs in one worker, one after the other."""
    mark = item.get_closest_marker("xdist_group")
    return "" if mark is None else str(mark.args[0] if mark.args else mark.kwargs.get("name", "default"))[:200]


def _installed(endings: Any) -> Any:
    """Return the modules that were loaded from where packages are installed, and whose file ends in one way."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and "site-packages" in file.split(os.sep) and file.endswith(tuple(endings) or ""):
            yield name

"""Records the tests that pytest collected, and the project's configuration. Python 3.6, the standard library only."""

import argparse
import copy
import json
import os
import shlex
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any

import pytest

from .imports import compiled_inside, files_inside, installed_modules, modules_inside, root_of
from .names import as_there, first_name_of
from .report import QUIETLY, long_text
from .selection import WORDS as SELECTION_WORDS
from .selection import is_found_by_id

# Options of pytest and its plugins that name a result file. A collection run has no results to write.
_REPORTS = (
    "xmlpath",
    "htmlpath",
    "report_log",
    "json_report",
    "resultlog",
    "csv_path",
    "allure_report_dir",
)
# Sections that make a file a configuration file of pytest.
_SETTINGS = {
    "pytest.toml": "",
    ".pytest.toml": "",
    "pytest.ini": "",
    ".pytest.ini": "",
    "pyproject.toml": "[tool.pytest",
    "tox.ini": "[pytest]",
    "setup.cfg": "[tool:pytest]",
}
_ROOT_MARKS = ("pyproject.toml", "setup.py")
_TRAIT_LIMIT = 80
_FILES_LIMIT = 20000
_MARKERS_OF_PYTEST = frozenset(("marker parametrize", "marker usefixtures"))


class Collection:
    """Records the collected tests."""

    def __init__(self, config: Any, target: Any, startup_path: Any, started_in: str) -> None:
        self.config = config
        self.target = target
        self.startup_path = startup_path
        self.started_in = started_in
        self.errors: Any = []
        self.content: Any = None
        self.count = 0
        self.importing = ""
        self.is_complete = False

    def pytest_collectstart(self, collector: Any) -> None:
        with QUIETLY:
            if isinstance(collector, pytest.File):
                self._begin_import(collector.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        with QUIETLY:
            if report.nodeid == self.importing:
                self._begin_import("")
            if report.failed:
                self.errors.append({"id": report.nodeid, "text": long_text(report)})
            self.count += sum(hasattr(found, "runtest") for found in report.result or ())
            with open(self.target + ".count", "w", encoding="ascii") as file:
                file.write(f"{self.count}\n")

    def pytest_internalerror(self, excrepr: Any) -> None:
        with QUIETLY:
            self.errors.append({"id": "", "text": f"INTERNALERROR\n{excrepr}"[-20000:]})

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self) -> Any:
        outcome = yield
        # pytest calls pytest_collection_finish even after an error, but not this hook.
        self.is_complete = outcome.excinfo is None

    def pytest_collection_finish(self, session: Any) -> None:
        with QUIETLY:
            tops = (os.environ.get("SWARM_TOP") or root_of(self.config)).split(os.pathsep)
            tests = {str(getattr(item, "fspath", "")) for item in session.items}
            self.content = {
                "root": root_of(self.config),
                "python": sys.version.split()[0],
                "prefix": sys.prefix,
                "items": [_describe(item) for item in session.items],
                "errors": self.errors,
                "is_complete": self.is_complete,
                "startup_path": [os.path.join(self.started_in, entry) for entry in self.startup_path],
                "path": [os.path.join(self.started_in, entry) for entry in sys.path],
                "loaded": _in_each(tops, lambda top: modules_inside(top, (), tests)),
                "compiled": _in_each(tops, compiled_inside),
                "files": _files_inside(os.environ.get("SWARM_COPY") or root_of(self.config), tests),
                "installed": installed_modules(),
                "installed_compiled": installed_modules(EXTENSION_SUFFIXES),
                "outside": sorted(file for file in tests if _is_outside(file, root_of(self.config)))[:20],
                "positional": [str(word) for word in getattr(self.config.option, "file_or_dir", None) or ()],
                "single_run": [
                    *single_run_words(self.config),
                    *place_words(self.config, self.started_in, tests),
                    *([] if all(map(is_found_by_id, session.items)) else SELECTION_WORDS),
                ],
            }
            self._write()

    def pytest_sessionfinish(self) -> None:
        with QUIETLY:
            if self.content is None:
                self.content = {"root": root_of(self.config), "items": [], "errors": self.errors}
            self._write()

    def _begin_import(self, nodeid: str) -> None:
        """Write the name of the file that is being imported, in case the import ends the process."""
        self.importing = nodeid
        with open(self.target + ".importing", "w", encoding="utf-8", errors="replace") as file:
            file.write(nodeid)

    def _write(self) -> None:
        draft = self.target + ".draft"
        with open(draft, "w", encoding="utf-8") as file:
            # Escaped, so that ids with half a surrogate pair can be written.
            json.dump(self.content, file, ensure_ascii=True)
        os.rename(draft, self.target)


def _in_each(tops: Any, find: Any) -> Any:
    found: Any = {}
    for top in tops:
        found.update(find(os.path.realpath(top)))
    return found


def _files_inside(top: str, tests: Any) -> Any:
    """Return the loaded files below a folder as relative paths, and those of the tests."""
    top = os.path.realpath(top)
    files = {os.path.relpath(path, top) for path in files_inside(top) | {os.path.realpath(test) for test in tests}}
    kept = (file for file in files if file.endswith(".py") and "site-packages" not in file.split(os.sep))
    return sorted(file for file in kept if not file.startswith(os.pardir))[:_FILES_LIMIT]


def single_run_words(config: Any) -> Any:
    """Return the arguments that switch off plugins of the project that are useless when one test is run."""
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
    with QUIETLY:
        words += _words_without_paths(config)
    return words


def _words_without_paths(config: Any) -> Any:
    """Return arguments that remove files from the setting addopts, because pytest would run those with any test."""
    addopts = [str(word) for word in config.getini("addopts")]
    options, paths = _parsed(config, addopts)
    kept = []
    for index, word in enumerate(addopts):
        # The same word may be the value of an option, and removing it would change the meaning.
        if word not in paths or _parsed(config, addopts[:index] + addopts[index + 1 :])[0] != options:
            kept.append(word)
    return ["-o", "addopts=" + " ".join(shlex.quote(word) for word in kept)] if len(kept) < len(addopts) else []


def _parsed(config: Any, words: Any) -> Any:
    """Return the options for some arguments, or None if they are invalid, and the files that they name."""
    # Options like --cov-report append to a list. Without a copy, reports would be written.
    values = argparse.Namespace(**{name: _copy_of(value) for name, value in vars(config.option).items()})
    try:
        options = dict(vars(config._parser.parse_known_args(list(words), namespace=values)))
    except pytest.UsageError:
        return None, []
    return options, options.pop("file_or_dir", [])


def _copy_of(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:
        return value


def place_words(config: Any, started_in: str, files: Any) -> Any:
    """Return the arguments that give a run of one test the settings of this session, and therefore the same node id.

    pytest looks for settings near the files on the command line. Those of a single test may be in a nearer folder.
    """
    if getattr(config.option, "inifilename", None) or getattr(config.option, "rootdir", None):
        return []
    settings = str(getattr(config, "inipath", None) or getattr(config, "inifile", None) or "")
    has_settings = bool(settings) and _is_settings(settings)
    root = root_of(config)
    folders = {os.path.dirname(file) for file in files}
    if not any(_has_nearer_settings(folder, root, has_settings) for folder in folders):
        return []
    named = os.path.relpath(settings, started_in) if has_settings else os.devnull
    return ["-c", named, "--rootdir", os.path.relpath(root, started_in)]


def _has_nearer_settings(folder: str, root: str, has_settings: bool) -> bool:
    """Return whether pytest may find other settings or another rootdir above a folder."""
    if _is_outside(folder, root):
        return True
    while folder != root and folder != os.path.dirname(folder):
        if any(_is_settings(os.path.join(folder, name)) for name in _SETTINGS):
            return True
        # Without settings, these files determine the rootdir.
        if not has_settings and any(os.path.exists(os.path.join(folder, name)) for name in _ROOT_MARKS):
            return True
        folder = os.path.dirname(folder)
    return False


def _is_outside(path: str, folder: str) -> bool:
    return os.path.relpath(path, folder).split(os.sep)[0] == os.pardir


def _is_settings(path: str) -> bool:
    """Return whether pytest accepts a file as its configuration file."""
    if not os.path.isfile(path):
        return False
    section = _SETTINGS.get(os.path.basename(path), "")
    with open(path, "rb") as file:
        return section.encode() in file.read()


def write_no_reports(config: Any, target: str) -> None:
    """Prevent result files in the checkout in a session that only collects. The target's folder is removed later."""
    for name in _REPORTS:
        if getattr(config.option, name, None):
            setattr(config.option, name, None)
    coverage = config.pluginmanager.getplugin("_cov")
    if coverage is not None:
        # The object already has this option.
        coverage.options.cov_report.clear()
    if hasattr(config.option, "benchmark_storage"):
        config.option.benchmark_storage = "file://" + os.path.dirname(target)
    # pytest-monitor and pytest-profiling write next to the tests whenever they are loaded.
    if hasattr(config.option, "mtr_none"):
        config.option.mtr_none = True
    for name in ("profile", "profile_svg"):
        if getattr(config.option, name, None) is True:
            setattr(config.option, name, False)
    if hasattr(config.option, "log_file"):
        # The settings may name it too, and they apply without an option.
        config.option.log_file = os.devnull


def _describe(item: Any) -> Any:
    location = getattr(item, "location", None) or ("", None, "")
    described = {"id": as_there(first_name_of(item)), "line": (location[1] or 0) + 1}
    with QUIETLY:
        described["traits"] = _traits_of(item)
    with QUIETLY:
        described["group"] = _group_of(item)
    return described


def _traits_of(item: Any) -> Any:
    """Return the fixtures, markers and parameters that a test may share with others, as words."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    names = [name for name in getattr(item, "fixturenames", ()) if name != "request" and name not in parameters]
    fixtures = [f"fixture {name}" for name in names]
    markers = {f"marker {mark.name}" for mark in item.iter_markers()} - _MARKERS_OF_PYTEST
    values = [f"parameter {name}={value}" for name, value in parameters.items() if _is_plain(value)]
    return [trait[:_TRAIT_LIMIT] for trait in (*fixtures[:30], *sorted(markers)[:20], *values[:10])]


def _is_plain(value: Any) -> bool:
    return value is None or type(value) in (str, int, float, bool)


def _group_of(item: Any) -> str:
    """Return the xdist group of a test. xdist runs a group in one worker, one test after the other."""
    mark = item.get_closest_marker("xdist_group")
    return "" if mark is None else str(mark.args[0] if mark.args else mark.kwargs.get("name", "default"))[:200]

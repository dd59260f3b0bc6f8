"""Detects commits that can make a test pass by changing how tests run. Such commits are not measured without review.

Detected are changes to `conftest.py`, to pytest's settings, hooks and plugins, modules that shadow those of pytest, and
program code that mentions pytest's internals. Code can evade any such list, so review the diff as well.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple

from swarm_tui.adapters.git.command import KeptProcess
from swarm_tui.adapters.git.repository import Repository
from swarm_tui.adapters.git.trees import FILE_MODES, read_object
from swarm_tui.model.commits import FileChange
from swarm_tui.model.text import plain

_SETTINGS_FILES: Final = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
_SHARED_SETTINGS: Final = frozenset({"pyproject.toml", "setup.cfg", "tox.ini"})
_LARGEST: Final = 1_000_000
_MOST_FILES: Final = 1_000
# Python imports these at startup, and pytest imports conftest files before test files.
_HIDING: Final = re.compile(
    r"(?:.*/)?(?:sitecustomize\.py|usercustomize\.py|[^/]*\.pth|(?:pytest|_pytest|pluggy|swarm_live)(?:\.py|/.*))"
)
_ENTRY_POINTS: Final = re.compile(r"(?:.*/)?(?:setup\.py|[^/]+\.(?:dist|egg)-info/entry_points\.txt)")
_HOOK: Final = re.compile(
    r"\bpytest_(?:addhooks|addoption|assert|cmdline|collect|configure|deselected|exception|fixture|generate|ignore|internal"
    r"|item|load|make|plugin|pycollect|pyfunc|report|runtest|session|terminal|unconfigure|warning)\w*|pytest\.hookimpl\b"
)
_INTERNAL: Final = re.compile(
    r"\b(PYTEST_\w+|SWARM_\w+|_pytest|swarm_live|os\._exit|pluginmanager|f_locals|gc\.get_\w+)\b|^\s*(?:import|from)\s+(pytest)\b|[\"'](pytest)[\"']",
    re.MULTILINE,
)

LOADED_BEFORE: Final = "which is loaded before the tests"
"""Ends the doubts about code that the runs of swarm-tui take from the environment, not from the commit."""

ReadBlob = Callable[[str], bytes]


class ChangedFiles(NamedTuple):
    """The changes of one or several commits."""

    changes: Sequence[FileChange]
    is_program_fix: bool = True
    """False for tests and documentation, which may change fixtures in conftest.py but neither settings nor hooks."""


def why_not_measured(repository: Repository, changed: Sequence[ChangedFiles]) -> list[tuple[str, ...]]:
    """Return how each entry may tamper with results, such as "changes conftest.py"; empty if it does not."""
    reader = KeptProcess(lambda: repository.start("cat-file", "--batch"))

    def read(name: str) -> bytes:
        found = reader.request(name.encode() + b"\n", read_object)
        return found[1] if found is not None else b""

    try:
        return [_doubts(entry, read) for entry in changed]
    finally:
        reader.close()


def _doubts(entry: ChangedFiles, read: ReadBlob) -> tuple[str, ...]:
    if len(entry.changes) > _MOST_FILES:
        return (f"changes {len(entry.changes):,} files, too many to check",)
    found = (_doubt(change, read, is_program_fix=entry.is_program_fix) for change in entry.changes)
    return tuple(dict.fromkeys(filter(None, found)))


def _doubt(change: FileChange, read: ReadBlob, *, is_program_fix: bool) -> str:
    path, shown = PurePosixPath(change.path), plain(change.path, 100)
    if path.name in _SETTINGS_FILES or (is_program_fix and path.name == "conftest.py"):
        return f"changes {shown}"
    if _HIDING.fullmatch(change.path):
        return f"changes {shown}, {LOADED_BEFORE}"
    if path.name not in _SHARED_SETTINGS and path.suffix != ".py" and not _ENTRY_POINTS.fullmatch(change.path):
        return ""
    blobs = ((change.old_id, change.old_mode), (change.new_id, change.new_mode))
    contents = [read(name) if mode in FILE_MODES else b"" for name, mode in blobs]
    if max(map(len, contents)) > _LARGEST:
        return f"changes {shown}, which is too large to check"
    before, after = (content.decode("utf-8", "replace") for content in contents)
    if path.name in _SHARED_SETTINGS:
        return f"changes pytest's settings in {shown}" if _are_settings_changed(path.name, before, after) else ""
    added = _added(before, after)
    if _ENTRY_POINTS.fullmatch(change.path):
        return f"declares a pytest plugin in {shown}" if "pytest11" in added else ""
    if hook := _HOOK.search(added):
        return f"adds {hook[0]} in {shown}"
    if is_program_fix and not _is_test(path) and (internal := _INTERNAL.search(added)):
        return f"mentions {internal[1] or internal[2] or internal[3]} in {shown}"
    return ""


def _added(before: str, after: str) -> str:
    old_lines = frozenset(before.splitlines())
    return "\n".join(line for line in after.splitlines() if line not in old_lines)


def _is_test(path: PurePosixPath) -> bool:
    in_tests = not {"test", "tests"}.isdisjoint(path.parts[:-1])
    return in_tests or path.name.startswith("test_") or path.stem.endswith("_test") or path.name == "conftest.py"


def _are_settings_changed(name: str, before: str, after: str) -> bool:
    if name == "pyproject.toml":
        return _toml_settings(before) != _toml_settings(after) or _toml_settings(after) is None
    return _ini_settings(before) != _ini_settings(after) or _ini_settings(after) is None


def _toml_settings(text: str) -> Any:
    """Return the tables of pytest and the plugins that a package declares; None if they are unreadable."""
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    declared = _table(content, "project", "entry-points", "pytest11"), _table(content, "tool", "poetry", "plugins")
    return _table(content, "tool", "pytest"), declared


def _table(content: Any, *names: str) -> Any:
    for name in names:
        content = content.get(name, {}) if isinstance(content, Mapping) else {}
    return content


def _ini_settings(text: str) -> Any:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except (configparser.Error, ValueError):
        return None
    sections = [dict(parser[name]) if parser.has_section(name) else {} for name in ("pytest", "tool:pytest")]
    entry_points = dict(parser["options.entry_points"]) if parser.has_section("options.entry_points") else {}
    return sections, entry_points.get("pytest11", "")

"""Find the tests that a change affects, from the code that each used in its last run. When in doubt, run the test."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Final

from swarm_tui.journal.pulled_files import UsedCode
from swarm_tui.model.text import read_python

# Files that affect how all tests run, or the installed packages.
_SETTINGS: Final = frozenset(
    {"pyproject.toml", "setup.cfg", "setup.py", "pytest.ini", ".pytest.ini", "tox.ini", "pytest.toml", ".coveragerc"}
    | {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile", "Pipfile.lock", "environment.yml", "constraints.txt"}
)
MODULE: Final = ""
"""The name of module-level code, outside functions."""


@dataclass(frozen=True, slots=True)
class ChangedSource:
    """The difference of one file between two commits."""

    path: str
    is_new: bool = False
    is_gone: bool = False
    parts: frozenset[str] | None = None
    """The changed functions of a Python file, possibly with MODULE; None if unknown, or if the file is not Python."""


def compare_sources(path: str, old: str | None, new: str | None) -> ChangedSource:
    """Return the difference between two versions of a file; None means that the file does not exist."""
    if old is None or new is None:
        return ChangedSource(path, is_new=old is None, is_gone=new is None)
    if not path.endswith(".py"):
        return ChangedSource(path)
    before, after = _parts_of(old), _parts_of(new)
    if before is None or after is None:
        return ChangedSource(path)
    names = before.keys() | after.keys()
    return ChangedSource(path, parts=frozenset(name for name in names if before.get(name) != after.get(name)))


def functions_at(source: str, lines: Iterable[int]) -> frozenset[str]:
    """Return the names of the functions that contain these lines, and MODULE for lines outside functions."""
    spans = _spans(source)
    names = set()
    for line in lines:
        around = [(first, name) for first, last, name in spans if first <= line <= last]
        names.add(around[-1][1] if around else MODULE)
    return frozenset(names)


def reason_to_run(
    test_file: str,
    used: UsedCode | None,
    changes: Iterable[ChangedSource],
    functions: Mapping[str, frozenset[str]] = MappingProxyType({}),
) -> str:
    """Return why a change affects a test, or "" if it does not.

    `functions` are the names of the functions in `used` by file; code outside functions is MODULE.
    """
    every = list(changes)
    folders = {str(folder) for folder in PurePosixPath(test_file).parents}
    for change in every:
        name, folder = PurePosixPath(change.path).name, str(PurePosixPath(change.path).parent)
        if change.path == test_file:
            return "its file is new" if change.is_new else "its file has changed"
        if name == "conftest.py" and folder in folders:
            return f"{change.path} has changed"
        if name in _SETTINGS or (name.startswith("requirements") and name.endswith((".txt", ".in"))):
            return f"{change.path} has changed, which may affect every test"
    if used is None:
        return "the code that it uses is unknown" if every else ""
    if not every:
        return ""
    if not used.is_green:
        return "it did not pass in its last run, so its recorded code may be incomplete"
    if used.has_programs:
        return "it starts other programs, whose code is not recorded"
    return next((reason for change in every if (reason := _reason(used, functions, change))), "")


def _reason(used: UsedCode, functions: Mapping[str, frozenset[str]], change: ChangedSource) -> str:
    path = change.path
    folder = PurePosixPath(path).parent
    is_python = path.endswith(".py")
    neighbours = used.loaded if is_python else used.opened
    if change.is_new:
        is_beside = any(PurePosixPath(other).parent == folder for other in neighbours)
        return f"{path} is new in a folder that it uses" if is_beside else ""
    if path in used.opened:
        return f"it reads {path}, which {'was deleted' if change.is_gone else 'has changed'}"
    if not is_python:
        return "" if used.is_whole else f"{path} has changed, and it is unknown whether the test reads it"
    if path not in used.loaded and path not in used.functions:
        return ""
    if change.is_gone:
        return f"it imports {path}, which was deleted"
    if change.parts is None:
        return f"it imports {path}, which has changed"
    if MODULE in change.parts:
        return f"it imports {path}, which has changed outside functions"
    called = sorted(change.parts & functions.get(path, frozenset()))
    return f"it runs {called[0]} of {path}, which has changed" if called else ""


def _parts_of(source: str) -> dict[str, str] | None:
    """Return a dump of the body of each function, and of module-level code under MODULE."""
    tree = read_python(source)
    if tree is None:
        return None
    parts: dict[str, str] = {}
    for name, node in _functions(tree, ""):
        body = ast.Module(body=[_without_bodies(statement) for statement in node.body], type_ignores=[])
        parts[name] = parts.get(name, "") + ast.dump(body)
    parts[MODULE] = ast.dump(ast.Module(body=[_without_bodies(node) for node in tree.body], type_ignores=[]))
    return parts


def _without_bodies(node: ast.stmt) -> ast.stmt:
    emptied = copy.deepcopy(node)
    for function in ast.walk(emptied):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            function.body = []
    return emptied


_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(node: ast.AST, prefix: str) -> Iterable[tuple[str, _Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
            yield from _functions(child, f"{prefix}{child.name}.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


@lru_cache(maxsize=200)
def _spans(source: str) -> tuple[tuple[int, int, str], ...]:
    """Return the first line, last line and name of each function, in order. Decorators are included."""
    tree = read_python(source)
    if tree is None:
        return ()
    spans = []
    for name, node in _functions(tree, ""):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        spans.append((first, node.end_lineno or node.lineno, name))
    return tuple(sorted(spans))

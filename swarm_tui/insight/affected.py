"""Which tests a change concerns, from what each used when it was last run; when in doubt, it is concerned."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Final

from swarm_tui.model.python_source import read_python
from swarm_tui.model.used_code import UsedCode

# What decides how all tests are run, or what is installed.
_SETTINGS: Final = frozenset(
    {"pyproject.toml", "setup.cfg", "setup.py", "pytest.ini", ".pytest.ini", "tox.ini", "pytest.toml", ".coveragerc"}
    | {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile", "Pipfile.lock", "environment.yml", "constraints.txt"}
)
MODULE: Final = ""
"""Names what a module does when it is imported, beside the functions that it has."""


@dataclass(frozen=True, slots=True)
class ChangedSource:
    """How one file differs between two commits; for a Python file, which of its parts do."""

    path: str
    is_new: bool = False
    is_gone: bool = False
    parts: frozenset[str] | None = None
    """The functions that differ, and MODULE; None when that is not known, or the file is no Python."""


@dataclass(frozen=True, slots=True)
class KnownUse:
    """What is known of one test: what it used, and the names of the functions among it."""

    used: UsedCode
    functions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By file. What is no function of the file, such as its own code, is MODULE."""


def compare_sources(path: str, old: str | None, new: str | None) -> ChangedSource:
    """Return how a file differs; None stands for no file."""
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
    """Return the names of the functions that begin in these lines; MODULE for what belongs to none."""
    spans = _spans(source)
    found = set()
    for line in lines:
        around = [(first, name) for first, last, name in spans if first <= line <= last]
        found.add(around[-1][1] if around else MODULE)
    return frozenset(found)


def reason_to_run(test_file: str, known: KnownUse | None, changes: Iterable[ChangedSource]) -> str:
    """Return why a change concerns a test, or nothing when it does not."""
    every = list(changes)
    folders = {str(folder) for folder in PurePosixPath(test_file).parents}
    for change in every:
        name, folder = PurePosixPath(change.path).name, str(PurePosixPath(change.path).parent)
        if change.path == test_file:
            return "its file is new" if change.is_new else "its file has changed"
        if name == "conftest.py" and folder in folders:
            return f"{change.path} has changed"
        if name in _SETTINGS or (name.startswith("requirements") and name.endswith((".txt", ".in"))):
            return f"{change.path} has changed, which may concern every test"
    if known is None:
        return "nothing is known of what it runs" if every else ""
    if not every:
        return ""
    if not known.used.is_green:
        return "it did not pass when it was last looked at, so not all that it runs is known"
    if known.used.has_programs:
        return "it starts other programs, whose code is not seen"
    return next((reason for change in every if (reason := _reason(known, change))), "")


def _reason(known: KnownUse, change: ChangedSource) -> str:
    used, path = known.used, change.path
    folder = PurePosixPath(path).parent
    is_python = path.endswith(".py")
    neighbours = used.loaded if is_python else used.opened
    if change.is_new:
        is_beside = any(PurePosixPath(other).parent == folder for other in neighbours)
        return f"{path} is new beside files that it uses" if is_beside else ""
    if path in used.opened:
        return f"it reads {path}, which {'is gone' if change.is_gone else 'has changed'}"
    if not is_python:
        return "" if used.is_whole else f"{path} has changed, and whether it reads that is not known"
    if path not in used.loaded and path not in used.functions:
        return ""
    if change.is_gone:
        return f"it imports {path}, which is gone"
    if change.parts is None:
        return f"it imports {path}, which has changed"
    if MODULE in change.parts:
        return f"it imports {path}, which has changed outside of its functions"
    called = sorted(change.parts & known.functions.get(path, frozenset()))
    return f"it runs {called[0]} of {path}, which has changed" if called else ""


def _parts_of(source: str) -> dict[str, str] | None:
    """Return the body of each function, and under MODULE all that is done when the file is imported."""
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
    class Emptied(ast.NodeTransformer):
        def visit_FunctionDef(self, function: ast.FunctionDef) -> ast.FunctionDef:
            function.body = []
            return function

        def visit_AsyncFunctionDef(self, function: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
            function.body = []
            return function

    emptied: ast.stmt = Emptied().visit(copy.deepcopy(node))
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
    """Return first line, last line and name of each function, in their order; a decorator belongs to it."""
    tree = read_python(source)
    if tree is None:
        return ()
    found = []
    for name, node in _functions(tree, ""):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        found.append((first, node.end_lineno or node.lineno, name))
    return tuple(sorted(found))

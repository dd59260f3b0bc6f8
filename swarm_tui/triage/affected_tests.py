"""Chooses the tests that a fix may affect, by the files that it changes; rather too many than too few. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

from swarm_tui.model.fixes import Fix
from swarm_tui.model.state import TestRecord

_LARGEST_SOURCE = 1_000_000


def affected_tests(fix: Fix, records: Iterable[TestRecord], imports: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """Return the tests of a fix: its own agents' first, then those that import what it changes, then all that were red.

    `imports` maps each test file to the modules it imports.
    """
    known = list(records)
    files = affected_test_files(fix.commit.paths, imports)
    own = [record.test for record in known if record.agent in fix.agents or record.branch in fix.branches]
    importing = [record.test for record in known if record.file in files]
    red = [record.test for record in known if record.harvest.passing_before is False]
    return tuple(dict.fromkeys([*own, *importing, *red]))


def affected_test_files(paths: Iterable[str], imports: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the test files that are changed, import a changed module, or lie under a changed conftest."""
    changed = frozenset(paths)
    modules = {name for path in changed for name in module_names(path)}
    folders = [str(PurePosixPath(path).parent) for path in changed if PurePosixPath(path).name == "conftest.py"]
    return frozenset(
        file
        for file, imported in imports.items()
        if file in changed
        or any(PurePosixPath(file).is_relative_to(folder) for folder in folders)
        or any(_is_related(name, modules) for name in imported)
    )


def is_test_file(path: str) -> bool:
    """Return whether pytest would look for tests in a file of that name."""
    name = PurePosixPath(path).name
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def module_names(path: str) -> tuple[str, ...]:
    """Return all names by which a file may be imported, since the import root is not known."""
    if not path.endswith(".py"):
        return ()
    parts = list(PurePosixPath(path).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return tuple(".".join(parts[start:]) for start in range(len(parts)))


def _is_related(imported: str, modules: Iterable[str]) -> bool:
    # Importing a package may run any module below it, and importing a module runs the packages above it.
    return any(
        imported == module or module.startswith(f"{imported}.") or imported.startswith(f"{module}.")
        for module in modules
    )


def imported_modules(source: bytes) -> frozenset[str]:
    """Return the modules that a source file imports by name; nothing when it is no Python."""
    if len(source) > _LARGEST_SOURCE:
        return frozenset()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)

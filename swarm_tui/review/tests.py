"""The tests that fixes affect, and scratch copies to run them on any previewed tree.

Results are cached in the review's folder together with those of the integrator, so that no test runs twice on a tree.
"""

from __future__ import annotations

import ast
import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from swarm_tui.adapters.git.trees import FILE_MODES
from swarm_tui.adapters.pytest import pytest_argument
from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.pulled_files import read_used_code
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Change
from swarm_tui.review.review import Review
from swarm_tui.testing.affected import compare_sources, functions_at, reason_to_run
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.settings import TestSettings

_LARGEST_SOURCE = 1_000_000


def affected_tests(
    fix: Change,
    records: Iterable[TestRecord],
    imports: Mapping[str, frozenset[str]],
    concerned: Mapping[str, bool] | None = None,
) -> tuple[str, ...]:
    """Return the tests of a fix: its own agents' first, then those that it affects, then all failing tests.

    `concerned` maps traced tests to whether they execute changed code. Other tests are affected if they import it.
    `imports` maps each test file to the modules that it imports.
    """
    all_tests = list(records)
    files = affected_test_files(fix.commit.paths, imports)
    own = [record.test for record in all_tests if record.agent in fix.agents or record.branch in fix.branches]
    traced = concerned or {}
    importing = [record.test for record in all_tests if traced.get(record.test, record.file in files)]
    red = [record.test for record in all_tests if record.pulled.passing_before is False]
    return tuple(dict.fromkeys([*own, *importing, *red]))


def affected_test_files(paths: Iterable[str], imports: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the test files that are changed, import a changed module, or are below a changed conftest."""
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
    """Return whether pytest collects files with this name."""
    name = PurePosixPath(path).name
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def module_names(path: str) -> tuple[str, ...]:
    """Return all names that a file may be imported as, because the import root is unknown."""
    if not path.endswith(".py"):
        return ()
    parts = list(PurePosixPath(path).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return tuple(".".join(parts[start:]) for start in range(len(parts)))


def _is_related(imported: str, modules: Iterable[str]) -> bool:
    # Importing a package may run any module below it. Importing a module runs the packages above it.
    return any(
        imported == module or module.startswith(f"{imported}.") or imported.startswith(f"{module}.")
        for module in modules
    )


def imported_modules(source: bytes) -> frozenset[str]:
    """Return the modules that a source file imports by name; empty if it is not Python."""
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


class ReviewTests:
    """The tests that the fixes of a review affect, and the copies to run them in."""

    def __init__(
        self,
        review: Review,
        settings: TestSettings,
        records: Iterable[TestRecord] = (),
        sweep: SweepFolder | None = None,
    ) -> None:
        """`records` are the tests of the sweep in that folder. Without records, tests are collected in a copy."""
        self.records = tuple(records)
        self._sweep = sweep
        results = review.store.folder.results
        self.copies = TestCopies(review.space, settings, base=review.branch.base, results=results)
        for record in self.records:
            self.copies.arguments[record.test] = pytest_argument(record.test, record.file, settings.folder)
        self._review = review
        self._imports: dict[str, frozenset[str]] = {}

    async def affected_by(self, fixes: Sequence[Change]) -> tuple[str, ...]:
        """Return the tests that these fixes affect. If none is known, return all tests, or the one command."""
        if self.copies.settings.command:
            return (self.copies.settings.command,)
        tree = self._review.branch.tip_tree
        imports = await asyncio.to_thread(self._imports_of, tree)
        if self.records:
            concerned = {fix.id: await asyncio.to_thread(self._concerned, fix) for fix in fixes}
            chosen = (affected_tests(fix, self.records, imports, concerned[fix.id]) for fix in fixes)
            return tuple(dict.fromkeys(test for tests in chosen for test in tests))
        paths = frozenset(path for fix in fixes for path in fix.commit.paths)
        files = sorted(affected_test_files(paths, imports)) or sorted(imports)
        return await self._collect(tree, files) if files else ()

    async def all_tests(self) -> Sequence[str]:
        """Return all tests of the sweep or the one command; without both, the tests that any fix affects."""
        if self.records and not self.copies.settings.command:
            return [record.test for record in self.records]
        return await self.affected_by(self._review.fixes)

    async def _collect(self, tree: str, files: Sequence[str]) -> tuple[str, ...]:
        settings = self.copies.settings
        words = [pytest_argument(file, file, settings.folder) for file in files]
        copy, collected = await self.copies.collect(tree, [*settings.options, *words])
        if collected.errors and not collected.tests:
            raise SwarmError(
                f"pytest cannot collect {files[0]}: {plain(collected.errors[0].text, 300)}", "install the project"
            )
        root = os.path.relpath(collected.root.resolve(), copy.resolve())
        for found in collected.tests:
            file = os.path.normpath(os.path.join(root, found.test.partition("::")[0]))
            self.copies.arguments[found.test] = pytest_argument(found.test, file, settings.folder)
        return tuple(found.test for found in collected.tests)

    def _concerned(self, fix: Change) -> dict[str, bool]:
        """Return for each traced test whether a fix changes code that it executed."""
        if self._sweep is None:
            return {}
        commit = fix.commit
        changes = [
            compare_sources(path, self._source(commit.parent_tree, path), self._source(commit.tree, path))
            for path in sorted(commit.paths)
        ]
        base = {path: self._source(self._review.branch.base_tree, path) for path in commit.paths}
        found = {}
        for record in self.records:
            used = read_used_code(self._sweep, record.agent) if record.agent else None
            if used is not None:
                # The names of functions are needed only for the files that the fix changes.
                ran = {path: used.functions.get(path, ()) for path in base}
                functions = {path: functions_at(base[path] or "", lines) for path, lines in ran.items() if lines}
                found[record.test] = bool(reason_to_run(record.file, used, changes, functions))
        return found

    def _source(self, tree: str, path: str) -> str | None:
        entry = self._review.space.entry(tree, path)
        is_file = entry is not None and entry.mode in FILE_MODES
        return self._review.space.read(entry.id)[1].decode("utf-8", "replace") if entry and is_file else None

    def _imports_of(self, tree: str) -> dict[str, frozenset[str]]:
        """Return the imports of each test file of a tree."""
        space = self._review.space
        listed = space.repository.run("ls-tree", "-r", "-z", "--format=%(objectname) %(path)", tree)
        found = {}
        for blob, _, path in (line.partition(" ") for line in listed.fields):
            if is_test_file(path):
                if blob not in self._imports:
                    self._imports[blob] = imported_modules(space.read(blob)[1])
                found[path] = self._imports[blob]
        return found

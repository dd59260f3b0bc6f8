"""The tests of a review: which of them a fix affects, and the copies in which they are run on any previewed tree.

Results are cached in the review's folder, where the integrator has put its own: what was run before is not run again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence

from swarm_tui.adapters.pytest import PytestAdapter, pytest_argument
from swarm_tui.errors import SwarmError
from swarm_tui.model.fixes import Fix
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.results import ResultCache
from swarm_tui.testing.settings import TestSettings
from swarm_tui.triage.affected_tests import affected_test_files, affected_tests, imported_modules, is_test_file
from swarm_tui.triage.review import Review


class ReviewTests:
    """The tests that the fixes of one review affect, and the copies to run them in."""

    def __init__(self, review: Review, settings: TestSettings, records: Iterable[TestRecord] = ()) -> None:
        """`records` are the tests of the sweep; without any, tests are collected in a copy."""
        self.records = tuple(records)
        cache = ResultCache(review.store.folder.results, settings.key)
        self.copies = TestCopies(review.space, settings, cache, base=review.branch.base)
        for record in self.records:
            self.copies.arguments[record.test] = pytest_argument(record.test, record.file, settings.folder)
        self._review = review
        self._imports: dict[str, frozenset[str]] = {}

    async def affected_by(self, fixes: Sequence[Fix]) -> tuple[str, ...]:
        """Return the tests that some of these fixes affect."""
        tree = self._review.branch.tip_tree
        imports = await asyncio.to_thread(self._imports_of, tree)
        if self.records:
            return tuple(dict.fromkeys(test for fix in fixes for test in affected_tests(fix, self.records, imports)))
        paths = frozenset(path for fix in fixes for path in fix.commit.paths)
        files = sorted(affected_test_files(paths, imports))
        return await self._collect(tree, files) if files else ()

    async def _collect(self, tree: str, files: Sequence[str]) -> tuple[str, ...]:
        settings = self.copies.settings
        async with self.copies.checked_out(tree) as copy:
            roots = [copy / root for root in settings.import_roots]
            adapter = PytestAdapter(settings.python, copy / settings.folder, roots)
            words = [pytest_argument(file, file, settings.folder) for file in files]
            collected = await adapter.collect([*settings.options, *words])
        if collected.errors and not collected.tests:
            raise SwarmError(
                f"pytest cannot collect {files[0]}: {plain(collected.errors[0], 300)}", "is its project set up?"
            )
        root = os.path.relpath(collected.root.resolve(), copy.resolve())
        for found in collected.tests:
            file = os.path.normpath(os.path.join(root, found.test.partition("::")[0]))
            self.copies.arguments[found.test] = pytest_argument(found.test, file, settings.folder)
        return tuple(found.test for found in collected.tests)

    def _imports_of(self, tree: str) -> dict[str, frozenset[str]]:
        """Return what each test file of a tree imports."""
        space = self._review.space
        listed = space.repository.run("ls-tree", "-r", "-z", "--format=%(objectname) %(path)", tree)
        found = {}
        for blob, _, path in (line.partition(" ") for line in listed.fields):
            if is_test_file(path):
                if blob not in self._imports:
                    self._imports[blob] = imported_modules(space.read(blob)[1])
                found[path] = self._imports[blob]
        return found

"""The teeth of the tests that a branch under review changes: what their sources say at once, and the rest measured.

teeth = ReviewTeeth(review, settings, records)
teeth.known()                         a few milliseconds: the signs, and what was measured before
await teeth.measure(on_progress)      in scratch copies; kept in the review's folder
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from swarm_tui.adapters.git.history import read_tree_changes
from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.adapters.pytest import pytest_argument
from swarm_tui.agents.integrator.classify import is_test_or_doc
from swarm_tui.model.fixes import FileChange
from swarm_tui.model.state import TestRecord
from swarm_tui.model.teeth import TestTeeth, weakest_first
from swarm_tui.teeth.measure import MeasuredTest, MeasuredTrees, OnProgress, TeethMeasurement
from swarm_tui.teeth.signs import signs_of
from swarm_tui.teeth.sources import ChangedTest, changed_tests
from swarm_tui.teeth.store import TeethStore
from swarm_tui.teeth.turn import TeethTurn
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.results import ResultCache
from swarm_tui.testing.settings import TestSettings
from swarm_tui.testing.traced import without_case
from swarm_tui.triage.review import Review
from swarm_tui.triage.verify import is_test_file

_WAY: Final = "1"
"""Changed where the same measurement would come to something else."""


class ReviewTeeth:
    """What is known of the tests that a branch changes."""

    def __init__(self, review: Review, settings: TestSettings, records: Iterable[TestRecord] = ()) -> None:
        self._review = review
        self._settings = settings
        known = list(records)
        self._test_files = {record.file for record in known if record.file}
        # pytest names files from its root folder, git from the top of the repository.
        self._names = {record.file: record.test.partition("::")[0] for record in known if record.file}
        branch = review.branch
        words = (_WAY, settings.key, branch.base_tree, branch.tip_tree)
        self._store = TeethStore(review.store.folder.root, hashlib.sha256("\0".join(words).encode()).hexdigest()[:16])
        self.turn = TeethTurn(review.store.folder.root)
        self.cost = 0.0
        """What the last measurement cost, in runs of the changed tests."""

    def known(self) -> list[TestTeeth]:
        """Return the changed tests, the weakest first: measured ones as measured, others by their signs."""
        measured = self._store.read()
        return weakest_first([measured.get(test.teeth.test, test.teeth) for test in self._tests])

    def of_test(self, test: str, known: Iterable[TestTeeth]) -> TestTeeth | None:
        """Return what is known of a test of the sweep, or None when the branch leaves it as it was."""
        wanted = without_case(test)
        return next((teeth for teeth in known if teeth.test == wanted), None)

    @property
    def unmeasured(self) -> int:
        """How many tests have not been measured yet."""
        measured = self._store.read()
        return sum(test.teeth.test not in measured for test in self._tests if test.after)

    async def measure(self, on_progress: OnProgress) -> list[TestTeeth]:
        """Measure what was not measured yet, and return all changed tests, the weakest first."""
        if await asyncio.to_thread(lambda: self.unmeasured):
            await self.turn.run(self._measure_rest, on_progress)
        return await asyncio.to_thread(self.known)

    async def _measure_rest(self, on_progress: OnProgress) -> None:
        # Whoever had the turn before us may have measured the same.
        measured = await asyncio.to_thread(self._store.read)
        wanted = [test for test in self._tests if test.teeth.test not in measured]
        if not any(test.after for test in wanted):
            return
        cache = ResultCache(self._review.store.folder.results, self._settings.key)
        space, branch = self._review.space, self._review.branch
        async with TestCopies(space, self._settings, cache, base=branch.base) as copies:
            copies.hold_objects()
            for test, file in self._arguments().items():
                copies.arguments[test] = pytest_argument(test, file, self._settings.folder)
            trees = await asyncio.to_thread(self._trees)
            measurement = TeethMeasurement(space, copies, trees, wanted, self._is_program, on_progress)
            found = await measurement.measure()
            self.cost = measurement.cost
        await asyncio.to_thread(self._store.add, found)

    # What is changed

    @cached_property
    def _changes(self) -> list[FileChange]:
        branch = self._review.branch
        return read_tree_changes(self._review.space.repository, branch.base_tree, branch.tip_tree)

    @cached_property
    def _changed_tests(self) -> list[ChangedTest]:
        files = [change for change in self._changes if is_test_file(change.path)]
        read = self._review.space.read
        before = {
            each.path: read(each.old_id)[1] for each in files if each.status != "A" and each.old_mode[:3] == "100"
        }
        after = {each.path: read(each.new_id)[1] for each in files if each.status != "D" and each.new_mode[:3] == "100"}
        return changed_tests(before, after)

    @cached_property
    def _tests(self) -> list[MeasuredTest]:
        return [
            MeasuredTest(
                TestTeeth(
                    test=self._name(changed.file, changed.name),
                    file=changed.file,
                    is_new=changed.before is None,
                    signs=signs_of(changed),
                ),
                after=self._name(changed.file, changed.name) if changed.after else "",
                before=self._name(changed.file_before, changed.before.name) if changed.before else "",
            )
            for changed in self._changed_tests
        ]

    def _arguments(self) -> dict[str, str]:
        """Return the file of each name that pytest is called with."""
        found = {}
        for changed in self._changed_tests:
            if changed.after:
                found[self._name(changed.file, changed.name)] = changed.file
            if changed.before:
                found[self._name(changed.file_before, changed.before.name)] = changed.file_before
        return found

    def _name(self, file: str, name: str) -> str:
        return f"{self._names.get(file, file)}::{name}"

    def _is_test_side(self, path: str) -> bool:
        return is_test_or_doc(path, self._test_files)

    def _is_program(self, path: str) -> bool:
        return path.endswith(".py") and not self._is_test_side(path)

    def _trees(self) -> MeasuredTrees:
        branch, space = self._review.branch, self._review.space
        sides = [change for change in self._changes if self._is_test_side(change.path)]
        before = {each.path: TreeEntry(each.old_mode, each.old_id) if each.status != "A" else None for each in sides}
        after = {each.path: TreeEntry(each.new_mode, each.new_id) if each.status != "D" else None for each in sides}
        return MeasuredTrees(
            base=branch.base_tree,
            tip=branch.tip_tree,
            old_tests=space.with_entries(branch.tip_tree, before),
            old_program=space.with_entries(branch.base_tree, after),
        )

"""Test strength of a review."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from swarm_tui.adapters.git import GitError
from swarm_tui.adapters.git.history import read_tree_changes
from swarm_tui.adapters.git.trees import TreeEntry
from swarm_tui.adapters.pytest import pytest_argument
from swarm_tui.errors import SwarmError
from swarm_tui.files import read_from_holder, regular_descriptor
from swarm_tui.journal.append import append_line
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LineFollower
from swarm_tui.journal.open import OpenedSweep, open_sweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.commits import Commit, FileChange, is_test_or_doc
from swarm_tui.model.formatting import Progress
from swarm_tui.model.test_strength import StrengthChange, StrengthChangeKind, TestStrength, weakest_first
from swarm_tui.review.changes import Change
from swarm_tui.review.review import Review
from swarm_tui.review.tests import is_test_file
from swarm_tui.review.verdicts import review_of_sweep
from swarm_tui.strength.measure import (
    BUDGET,
    MeasuredTest,
    MeasuredTrees,
    OnProgress,
    StrengthMeasurement,
    measuring_progress,
)
from swarm_tui.strength.signs import signs_of
from swarm_tui.strength.source import ChangedTest, changed_tests, compare_tests
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.settings import TestSettings, guess_settings, settings_of_sweep
from swarm_tui.testing.traced import without_case

LOCK_FILE: Final = "strength.lock"
STOP_FILE: Final = "strength.stop"
STOPPED_MEASURING: Final = "measuring test strength is stopped; run `swarm-tui fixes --strength` to continue"
_POLL: Final = 0.3
_LONGEST: Final = 200
"""Maximum size of the line in the lock file, in bytes."""


class MeasuringStopped(SwarmError):
    """Another process requested the measuring process to stop."""


class MeasureLock:
    """The lock of one review. The kernel releases it when its process exits."""

    def __init__(self, folder: Path) -> None:
        self._lock = folder / LOCK_FILE
        self._stop = folder / STOP_FILE

    def progress(self) -> Progress | None:
        """Return the progress of the measuring process; None if there is none."""
        line = read_from_holder(self._lock, _LONGEST)
        return None if line is None else _parse(line)

    def stop(self) -> bool:
        """Request the measuring process to stop; return False if there is none."""
        if self.progress() is None:
            return False
        self._stop.touch()
        return True

    def stop_and_wait(self, seconds: float = 15.0) -> bool:
        """Stop the measuring process and wait until it has stopped; return False if there was none."""
        if not self.stop():
            return False
        end = time.monotonic() + seconds
        while self.progress() is not None and time.monotonic() < end:
            time.sleep(0.05)
        return True

    async def run(self, work: Callable[[OnProgress], Awaitable[None]], on_progress: OnProgress) -> None:
        """Wait for the lock and do the work. Raise MeasuringStopped if another process requests it meanwhile."""
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = regular_descriptor(self._lock, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise SwarmError(f"cannot open {self._lock}: {error.strerror or error}") from error
        try:
            while not _is_ours(descriptor):
                on_progress(_parse(os.pread(descriptor, _LONGEST, 0)))
                await asyncio.sleep(_POLL)
            os.ftruncate(descriptor, 0)
            self._stop.unlink(missing_ok=True)

            def show(progress: Progress) -> None:
                _write(descriptor, progress)
                on_progress(progress)

            await self._until_stopped(asyncio.ensure_future(work(show)))
        finally:
            os.close(descriptor)

    async def _until_stopped(self, task: asyncio.Future[None]) -> None:
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=_POLL)
                # If the folder was removed, writing would create it again.
                if self._stop.exists() or not self._lock.exists():
                    self._stop.unlink(missing_ok=True)
                    raise MeasuringStopped("stopped", "finished runs are kept: start it again to continue")
            task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _is_ours(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # Some network file systems have no locks. At worst, two processes measure the same tests.
    return True


def _write(descriptor: int, progress: Progress) -> None:
    line = json.dumps([progress.done, progress.total, progress.seconds_left]).encode()
    os.pwrite(descriptor, line.ljust(_LONGEST), 0)


def _parse(line: bytes) -> Progress:
    try:
        done, total, left = json.loads(line)
        return measuring_progress(int(done), int(total), None if left is None else float(left))
    except (ValueError, TypeError):
        return measuring_progress()


STRENGTH_FILE: Final = "strength.jsonl"


class StrengthFile:
    """Measurements by test. Only measurements with the same key are used, because trees or methods may change."""

    def __init__(self, folder: Path, key: str) -> None:
        self._path = folder / STRENGTH_FILE
        self._key = key

    def read(self) -> dict[str, TestStrength]:
        """Return the last measurement of each test; invalid lines are ignored."""
        found: dict[str, TestStrength] = {}
        for _, line in LineFollower(self._path).read()[0]:
            try:
                entry = json.loads(line)
                if entry["key"] == self._key:
                    strength = TestStrength.model_validate(entry["strength"])
                    found[strength.test] = strength
            except (ValueError, KeyError, TypeError, ValidationError):
                continue
        return found

    def add(self, measured: Iterable[TestStrength]) -> None:
        lines = [
            json.dumps({"at": time.time(), "key": self._key, "strength": strength.model_dump(mode="json")})
            for strength in measured
        ]
        if lines:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            append_line(self._path, "\n".join(lines))


_WAY: Final = "1"
"""Changed when the same measurement would have another result."""


class ReviewStrength:
    """The strength of the tests that a branch changes."""

    def __init__(
        self,
        review: Review,
        settings: TestSettings,
        records: Iterable[TestRecord] = (),
        *,
        budget: float = BUDGET,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._review = review
        self._budget = budget
        self._clock = clock
        self._settings = settings
        known = list(records)
        self._test_files = {record.file for record in known if record.file}
        # pytest's paths start at its rootdir, git's at the top of the repository.
        self._names = {record.file: record.test.partition("::")[0] for record in known if record.file}
        branch = review.branch
        words = (_WAY, settings.key, branch.base_tree, branch.tip_tree)
        self._store = StrengthFile(review.store.folder.root, hashlib.sha256("\0".join(words).encode()).hexdigest()[:16])
        self.turn = MeasureLock(review.store.folder.root)
        self._of_commits: dict[str, list[TestStrength]] = {}
        self.cost = 0.0
        """The cost of the last measurement, in runs of the changed tests."""

    def known(self) -> list[TestStrength]:
        """Return the changed tests, weakest first: with measured results, or with results from their sources."""
        measured = self._store.read()
        return weakest_first([measured.get(test.strength.test, test.strength) for test in self._tests])

    def of_test(self, test: str, known: Iterable[TestStrength]) -> TestStrength | None:
        """Return the strength of a test of the sweep, or None if the branch does not change it."""
        name = without_case(test)
        return next((strength for strength in known if strength.test == name), None)

    def of_commit(self, commit: Commit, known: Iterable[TestStrength] = ()) -> list[TestStrength]:
        """Return the tests that one commit weakens, removes or renames, weakest first.

        Tests in `known` that became weaker are returned from there.
        """
        if commit.id not in self._of_commits:
            self._of_commits[commit.id] = self._read_commit(commit)
        measured = {strength.test: strength for strength in known if strength.is_weaker}
        return weakest_first([measured.get(found.test, found) for found in self._of_commits[commit.id]])

    def sentences(self, fixes: Iterable[Change]) -> dict[str, tuple[str, ...]]:
        """Return sentences by commit about tests that fixes weaken, remove or rename; other fixes are left out."""
        known = self.known()
        found = {fix.id: self.of_commit(fix.commit, known) for fix in fixes}
        return {
            commit: tuple(f"{strength.test}: {strength.words}" for strength in changed)
            for commit, changed in found.items()
            if changed
        }

    def _read_commit(self, commit: Commit) -> list[TestStrength]:
        try:
            before, after = self._sources(commit.changes)
        except GitError:
            # `clean` has removed the ref to the agent's own commit.
            return []
        found: dict[str, TestStrength] = {}
        for changed in compare_tests(before, after):
            if changed.before is not None:
                name = self._name(changed.file_before, changed.before.name)
                signs = signs_of(changed) if changed.is_changed else ()
                if changed.is_renamed:
                    now = self._name(changed.file, changed.name)
                    signs += (StrengthChange(kind=StrengthChangeKind.RENAMED, before=name, after=now),)
                found[name] = TestStrength(test=name, file=changed.file, signs=signs)
        return [strength for strength in found.values() if strength.is_weaker or strength.is_renamed]

    def _sources(self, changes: Iterable[FileChange]) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """Return the changed test files, as they were before and as they are after."""
        files = [each for each in changes if is_test_file(each.path) or each.path in self._test_files]
        read = self._review.space.read
        before = {
            each.path: read(each.old_id)[1] for each in files if each.status != "A" and each.old_mode[:3] == "100"
        }
        after = {each.path: read(each.new_id)[1] for each in files if each.status != "D" and each.new_mode[:3] == "100"}
        return before, after

    @property
    def unmeasured(self) -> int:
        """The number of tests that are not measured yet."""
        measured = self._store.read()
        return sum(test.strength.test not in measured for test in self._tests if test.after)

    async def measure(self, on_progress: OnProgress) -> list[TestStrength]:
        """Measure all unmeasured tests, and return all changed tests, weakest first."""
        if await asyncio.to_thread(lambda: self.unmeasured):
            await self.turn.run(self._measure_rest, on_progress)
        return await asyncio.to_thread(self.known)

    async def _measure_rest(self, on_progress: OnProgress) -> None:
        # Another process may have measured the same tests while we waited for the lock.
        measured = await asyncio.to_thread(self._store.read)
        unmeasured = [test for test in self._tests if test.strength.test not in measured]
        if not any(test.after for test in unmeasured):
            return
        space, base, results = self._review.space, self._review.branch.base, self._review.store.folder.results
        async with TestCopies(space, self._settings, base=base, results=results) as copies:
            copies.hold_objects()
            for test, file in self._arguments().items():
                copies.arguments[test] = pytest_argument(test, file, self._settings.folder)
            trees = await asyncio.to_thread(self._trees)
            measurement = StrengthMeasurement(
                space, copies, trees, unmeasured, self._is_program, on_progress, budget=self._budget, clock=self._clock
            )
            found = await measurement.measure()
            self.cost = measurement.cost
        await asyncio.to_thread(self._store.add, found)

    # Changes

    @cached_property
    def _changes(self) -> list[FileChange]:
        branch = self._review.branch
        return read_tree_changes(self._review.space.repository, branch.base_tree, branch.tip_tree)

    @cached_property
    def _changed_tests(self) -> list[ChangedTest]:
        return changed_tests(*self._sources(self._changes))

    @cached_property
    def _tests(self) -> list[MeasuredTest]:
        return [
            MeasuredTest(
                TestStrength(
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
        """Return the file for each name in the arguments of pytest."""
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


def strength_of_review(review: Review, folder: SweepFolder | None) -> tuple[ReviewStrength, dict[str, str]]:
    """Return the test strength of a review, and the agents' own claims about each test."""
    if folder is None:
        return ReviewStrength(review, guess_settings(review.repository)), {}
    opened = open_sweep(folder)
    return strength_of_sweep(review, opened), claims_of(opened.state.tests())


def strength_of_sweep(review: Review, opened: OpenedSweep) -> ReviewStrength:
    """Return the strength of the tests that a sweep changed."""
    # In a tutorial sweep, agents do not have their own tests.
    records = opened.state.tests() if opened.spec.kind == "tests" else ()
    return ReviewStrength(review, settings_of_sweep(opened.spec), records)


def turn_of_sweep(folder: SweepFolder) -> MeasureLock:
    """Return the lock for measuring the tests of a sweep."""
    return MeasureLock(review_of_sweep(folder.root).root)


def claims_of(records: Iterable[TestRecord]) -> dict[str, str]:
    """Return the summaries of the agents' reports, by the test names used in measurements."""
    return {without_case(record.test): record.pulled.summary for record in records if record.pulled.summary}

"""Which tests a fix concerns: those that run a function which it changes, as far as one traced run of them tells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import PurePosixPath
from typing import Final

from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.pytest_runs import TestRun
from swarm_tui.insight.affected import MODULE, compare_sources, functions_at
from swarm_tui.testing.traced import Place, TracedRun, without_case


@dataclass(frozen=True, slots=True)
class Concerned:
    """The tests that a fix concerns."""

    seen: frozenset[str]
    """They were seen to run what it changes."""
    possible: frozenset[str] | None = frozenset()
    """It is not known what they run. None: whatever the tests run, it may concern all of them."""

    def may_be(self, test: str) -> bool:
        return self.possible is None or test in self.possible or test in self.seen


ALL_POSSIBLE: Final = Concerned(frozenset(), None)


class Concerns:
    """What was seen of the tests on one tree without any fix."""

    def __init__(self, space: ObjectSpace, tree: str, traced: TracedRun, before: TestRun) -> None:
        self._space = space
        self._tree = tree
        self._prepared = _by_file(traced.prepared)
        self._lines = {test: _by_file(traced.lines.get(without_case(test), ())) for test in before.outcomes}
        self._unknown = frozenset(
            test
            for test, outcome in before.outcomes.items()
            # Where nothing of its own file was seen, another tracer has taken the place of ours.
            if test.partition("::")[0] not in _names(self._lines[test])
            or without_case(test) in traced.starting_programs
            or traced.run.outcomes.get(test) != outcome
        )
        self._source = cache(self._read_source)

    def of(self, paths: Iterable[str], tree: str) -> Concerned:
        """Return what a fix concerns that changes these files, and makes `tree` of the one without it.

        A test that runs none of the functions that differ ends as it did, be it green or red.
        """
        seen: set[str] = set()
        for path in paths:
            parts = self._changed_functions(path, tree)
            if parts is None or parts & self._functions(path, self._prepared):
                return ALL_POSSIBLE
            seen.update(test for test, lines in self._lines.items() if parts & self._functions(path, lines))
        return Concerned(frozenset(seen), self._unknown)

    def _changed_functions(self, path: str, tree: str) -> frozenset[str] | None:
        """Return the functions of a file that differ, or None where more than functions does."""
        if PurePosixPath(path).name == "conftest.py":
            return None
        change = compare_sources(path, self._source(self._tree, path), self._source(tree, path))
        return None if change.parts is None or MODULE in change.parts else change.parts

    def _functions(self, path: str, lines: Mapping[str, frozenset[int]]) -> frozenset[str]:
        source = self._source(self._tree, path)
        return functions_at(source, lines[path]) if source is not None and path in lines else frozenset()

    def _read_source(self, tree: str, path: str) -> str | None:
        entry = self._space.entry(tree, path)
        if entry is None or not entry.mode.startswith("100"):
            return None
        return self._space.read(entry.id)[1].decode("utf-8", "replace")


def _by_file(places: Collection[Place]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for path, line in places:
        found.setdefault(path, set()).add(line)
    return {path: frozenset(lines) for path, lines in found.items()}


def _names(lines: Mapping[str, object]) -> frozenset[str]:
    """Return the ends of paths: pytest names files from its root folder, which may lie below the top of the copy."""
    every = (path.split("/") for path in lines)
    return frozenset("/".join(parts[start:]) for parts in every for start in range(len(parts)))

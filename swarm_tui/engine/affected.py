"""Chooses the tests that a change concerns: what earlier sweeps saw of each, compared with the commits in between."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from swarm_tui.adapters.git import Repository
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.insight.affected import ChangedSource, KnownUse, compare_sources, functions_at, reason_to_run
from swarm_tui.journal.folder import list_sweeps
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.pulled_files import read_used_code
from swarm_tui.model.used_code import UsedCode

_SWEEPS_READ = 50


@dataclass(frozen=True, slots=True)
class SeenUse:
    """What a sweep saw of one test."""

    base: str
    used: UsedCode


class ChangedCode:
    """What lies between two commits of a repository, and what is known of its tests."""

    def __init__(self, repository: Repository, revision: str) -> None:
        self._repository = repository
        try:
            self._since = repository.resolve(revision)
        except SwarmError as error:
            raise UsageError(f"--affected-by {revision} names no commit", "give a commit, a branch or a tag") from error
        self._head = repository.head()
        self._changes = cache(self._find_changes)
        self._source = cache(self._read_source)

    def reasons(self, tests: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return why each test (node id, file) is concerned; an empty reason for one that is not."""
        seen = self._seen()
        return {test: self._reason(file, seen.get(test)) for test, file in tests}

    def _reason(self, file: str, seen: SeenUse | None) -> str:
        changes = self._changes(self._since)
        known = self._known(seen) if seen is not None else None
        reason = reason_to_run(file, known, changes)
        if reason or seen is None or known is None or seen.base == self._since:
            return reason
        # What it used may have changed since it was looked at: then it may use something else now.
        doubt = reason_to_run(file, known, self._changes(seen.base))
        return f"{doubt} since it was last looked at, at {seen.base[:10]}" if doubt else ""

    def _known(self, seen: SeenUse) -> KnownUse | None:
        functions = {}
        for file, lines in seen.used.functions.items():
            source = self._source(seen.base, file)
            functions[file] = functions_at(source, lines) if source is not None else frozenset[str]()
        return KnownUse(seen.used, functions)

    def _find_changes(self, since: str) -> tuple[ChangedSource, ...]:
        names = self._repository.run("diff", "--name-only", "-z", "--no-renames", since, self._head).fields
        return tuple(compare_sources(name, self._source(since, name), self._source(self._head, name)) for name in names)

    def _read_source(self, commit: str, path: str) -> str | None:
        found = self._repository.run("cat-file", "blob", f"{commit}:{path}", codes=(0, 128))
        return found.stdout.decode("utf-8", "replace") if found.code == 0 else None

    def _seen(self) -> Mapping[str, SeenUse]:
        """Return what is known of each test, from the newest sweep that has looked at it."""
        found: dict[str, SeenUse] = {}
        for folder in reversed(list_sweeps(self._repository.root)[-_SWEEPS_READ:]):
            try:
                opened = open_sweep(folder)
                self._repository.resolve(opened.spec.base)
            except SwarmError:
                continue
            for record in opened.state.tests():
                if record.test not in found and (used := read_used_code(folder, record.agent)) is not None:
                    found[record.test] = SeenUse(opened.spec.base, used)
        return found

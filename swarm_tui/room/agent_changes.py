"""Reads what one agent has changed: its commits, and what is not committed, also while it works on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import Repository, init_repository
from swarm_tui.adapters.git.history import DiffReader, read_commits
from swarm_tui.adapters.git.names import is_commit_id
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.working_copy import WorkingCopy
from swarm_tui.agents.contract import OUTPUT_FOLDER
from swarm_tui.errors import SwarmError
from swarm_tui.model.commit_kinds import kinds_of, without_marks
from swarm_tui.model.diff import Diff
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.regular_file import read_regular

_TITLE_LIMIT: Final = 300
_ENVIRONMENT_LIMIT: Final = 1 << 16
_BASE_VARIABLE: Final = "MNGR_GIT_BASE_BRANCH="


@dataclass(frozen=True, slots=True)
class AgentChange:
    """One row of an agent's changes."""

    kind: str
    """The kind of a commit, such as FIX_IMPL; else all, uncommitted, or ""."""
    title: str
    commit: str
    """Empty for what is no commit."""
    diff: Diff = field(compare=False)
    trees: tuple[str, str] = ("", "")

    @property
    def added(self) -> int:
        return sum(file.added for file in self.diff.files)

    @property
    def removed(self) -> int:
        return sum(file.removed for file in self.diff.files)


@dataclass(frozen=True, slots=True)
class AgentChanges:
    """All changes of one agent, the whole first."""

    rows: tuple[AgentChange, ...] = ()
    is_live: bool = False
    """They were read from the copy in which the agent works."""
    problem: str = ""
    """Why there is nothing, or not everything, to see."""


class ChangesReader:
    """Reads the changes of one agent again and again; what has not changed is not read twice. Close it."""

    def __init__(self, repository: Repository, base: str, record: TestRecord) -> None:
        self.test = record.test
        self._repository = repository
        self._base = base
        self._copy = _copy_of(repository, record)
        borrowed = self._copy.object_folders if self._copy is not None else ()
        self._space = ObjectSpace(repository, borrowed=borrowed)
        self._diffs = DiffReader(self._space)
        self._known: dict[tuple[str, str], Diff] = {}

    def close(self) -> None:
        self._diffs.close()
        self._space.close()
        if self._copy is not None:
            self._copy.close()

    def is_outdated(self, record: TestRecord) -> bool:
        """Return whether there is a copy now that was not there before, or another one."""
        return (self._copy.folder if self._copy is not None else None) != _folder_of(record)

    def read(self, record: TestRecord) -> AgentChanges:
        """Return the changes as they are now; to be called from a thread."""
        try:
            if self._copy is not None and self._copy.folder.is_dir():
                rows = self._rows(self._copy.head(), self._copy.snapshot())
                return AgentChanges(rows, not record.is_finished, "" if rows else "it has changed nothing yet")
        except SwarmError as error:
            if not record.harvest.tip:
                return AgentChanges(problem=f"its copy cannot be read: {plain(str(error), 200)}")
        return self._harvested(record)

    def _harvested(self, record: TestRecord) -> AgentChanges:
        tip = record.harvest.tip
        if not tip:
            return AgentChanges(problem=_why_nothing(record))
        try:
            commit = self._repository.resolve(tip)
            rows = self._rows(commit, self._repository.tree_of(commit))
        except SwarmError:
            return AgentChanges(problem="its commits are gone: `swarm-tui clean` has removed what held them")
        problem = "what it had not committed is not kept" if record.harvest.has_uncommitted else ""
        return AgentChanges(rows, problem=problem)

    def _rows(self, head: str, tree: str) -> tuple[AgentChange, ...]:
        repository = self._space.repository
        base_tree, head_tree = repository.tree_of(self._base), repository.tree_of(head)
        rows = []
        if tree != head_tree:
            rows.append(AgentChange("uncommitted", "not committed", "", self._diff(head_tree, tree), (head_tree, tree)))
        rows += self._commits(head)
        if len(rows) > 1:
            rows.insert(0, AgentChange("all", "all of it", "", self._diff(base_tree, tree), (base_tree, tree)))
        return tuple(rows)

    def _commits(self, head: str) -> Sequence[AgentChange]:
        """Return the commits, the newest first; of a branch that is not one line, what it comes to."""
        repository = self._space.repository
        try:
            commits = read_commits(repository, self._base, head) if head != self._base else ()
        except SwarmError:
            trees = repository.tree_of(self._base), repository.tree_of(head)
            return [AgentChange("", "its commits, which are not one line", head, self._diff(*trees), trees)]
        return [
            AgentChange(
                kind.value if (kind := next(iter(kinds_of(commit.message)), None)) else "",
                plain(without_marks(commit.subject), _TITLE_LIMIT) or "(no title)",
                commit.id,
                self._diff(commit.parent_tree, commit.tree),
                (commit.parent_tree, commit.tree),
            )
            for commit in reversed(commits)
        ]

    def _diff(self, old: str, new: str) -> Diff:
        known = self._known.get((old, new))
        if known is None:
            known = self._known[old, new] = self._diffs.diff(old, new)
        return known


def watched_changes(folder: Path, record: TestRecord) -> ChangesReader:
    """Return a reader for an agent that no sweep made, whose repository is known by its copy alone.

    What is made on the way is put into a repository of our own below `folder`.
    """
    place = folder / "changes"
    own = (
        Repository.open(place) if place.is_dir() else init_repository(place, branch="none", identity=("room", "room@"))
    )
    copy = _folder_of(record)
    return ChangesReader(own, _base_of(copy, record.state_dir) if copy is not None else "", record)


def _base_of(copy: Path, state_dir: str) -> str:
    """Return the commit that an agent began with: where its branch left the one that mngr names in its environment."""
    repository = Repository.open(copy).with_environment({"GIT_NO_LAZY_FETCH": "1"}, copy)
    head = repository.resolve("HEAD")
    with contextlib.suppress(OSError, SwarmError):
        words = read_regular(Path(state_dir) / "env", _ENVIRONMENT_LIMIT).decode("utf-8", "replace")
        named = next(line.partition("=")[2] for line in words.splitlines() if line.startswith(_BASE_VARIABLE))
        base = repository.resolve(named.strip("'\""))
        found = repository.run("merge-base", head, base, codes=(0, 1)).text
        return found if is_commit_id(found) else base
    return head


def _copy_of(repository: Repository, record: TestRecord) -> WorkingCopy | None:
    """Return the copy of an agent on this machine; None when it is elsewhere or gone."""
    folder = _folder_of(record)
    try:
        return WorkingCopy(repository, folder, hidden=OUTPUT_FOLDER) if folder is not None else None
    except SwarmError:
        return None


def _folder_of(record: TestRecord) -> Path | None:
    is_here = record.host in ("", LOCAL_HOST) and record.work_dir and Path(record.work_dir).is_dir()
    return Path(record.work_dir) if is_here else None


def _why_nothing(record: TestRecord) -> str:
    if record.launched_at is None:
        return "it has no agent yet"
    if record.is_finished:
        return "its agent has handed in no commit"
    if record.host not in ("", LOCAL_HOST):
        edited = ", ".join(dict.fromkeys(plain(edit.path, 80) for edit in record.edits[:5]))
        return f"it works on {plain(record.host, 60)}: its commits are here once it is done" + (
            f"; so far it has edited {edited}" if edited else ""
        )
    return "its copy is not there yet"

"""What the agent changed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from textual.containers import Container

from swarm_tui.adapters.git import Repository, init_repository
from swarm_tui.adapters.git.copy_view import WorkingCopy
from swarm_tui.adapters.git.history import DiffReader, read_commits
from swarm_tui.adapters.git.names import is_commit_id
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.agents.contract import OUTPUT_FOLDER
from swarm_tui.errors import SwarmError
from swarm_tui.files import read_regular
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.commits import Diff
from swarm_tui.model.formatting import counted
from swarm_tui.model.pulled import kinds_of, without_marks
from swarm_tui.model.spec import LOCAL_HOST
from swarm_tui.model.text import plain
from swarm_tui.room.draw.spans import Line, Span, cut_line, pad_text, spread
from swarm_tui.room.screen import RoomScreen
from swarm_tui.room.widgets.diff import EMPTY, DiffLines
from swarm_tui.room.widgets.lines import TextLines

_TITLE_LIMIT: Final = 300
_ENVIRONMENT_LIMIT: Final = 1 << 16
_BASE_VARIABLE: Final = "MNGR_GIT_BASE_BRANCH="


@dataclass(frozen=True, slots=True)
class AgentChange:
    """One row of an agent's changes."""

    kind: str
    """`all`, `uncommitted`, the kind of a commit such as FIX_IMPL, or ""."""
    title: str
    commit: str
    """Commit id; empty if the row is not a commit."""
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
    """All changes of one agent. The first row is the sum of all others."""

    rows: tuple[AgentChange, ...] = ()
    is_live: bool = False
    """Whether the changes were read from the working copy of a running agent."""
    problem: str = ""
    """Why changes are missing, or ""."""


class ChangesReader:
    """Reads the changes of one agent repeatedly and caches unchanged data. Call `close` at the end."""

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
        """Return whether the agent has a new working copy since the last read."""
        return (self._copy.folder if self._copy is not None else None) != _folder_of(record)

    def read(self, record: TestRecord) -> AgentChanges:
        """Return the current changes. Blocks, so call it from a thread."""
        try:
            if self._copy is not None and self._copy.folder.is_dir():
                rows = self._rows(self._copy.head(), self._copy.snapshot())
                return AgentChanges(rows, not record.is_finished, "" if rows else "the agent has changed nothing yet")
        except SwarmError as error:
            if not record.pulled.tip:
                return AgentChanges(problem=f"cannot read the agent's working copy: {plain(str(error), 200)}")
        return self._pulled(record)

    def _pulled(self, record: TestRecord) -> AgentChanges:
        tip = record.pulled.tip
        if not tip:
            return AgentChanges(problem=_why_nothing(record))
        try:
            commit = self._repository.resolve(tip)
            rows = self._rows(commit, self._repository.tree_of(commit))
        except SwarmError:
            return AgentChanges(problem="commits missing: `swarm-tui clean` has removed them")
        problem = "uncommitted changes were not saved" if record.pulled.has_uncommitted else ""
        return AgentChanges(rows, problem=problem)

    def _rows(self, head: str, tree: str) -> tuple[AgentChange, ...]:
        repository = self._space.repository
        base_tree, head_tree = repository.tree_of(self._base), repository.tree_of(head)
        rows = []
        if tree != head_tree:
            rows.append(AgentChange("uncommitted", "not committed", "", self._diff(head_tree, tree), (head_tree, tree)))
        rows += self._commits(head)
        if len(rows) > 1:
            rows.insert(0, AgentChange("all", "all changes", "", self._diff(base_tree, tree), (base_tree, tree)))
        return tuple(rows)

    def _commits(self, head: str) -> Sequence[AgentChange]:
        """Return the commits, newest first. A branch with merges is returned as one change."""
        repository = self._space.repository
        try:
            commits = read_commits(repository, self._base, head) if head != self._base else ()
        except SwarmError:
            trees = repository.tree_of(self._base), repository.tree_of(head)
            return [AgentChange("", "all commits, history has merges", head, self._diff(*trees), trees)]
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
        cached = self._known.get((old, new))
        if cached is None:
            cached = self._known[old, new] = self._diffs.diff(old, new)
        return cached


def watched_changes(folder: Path, record: TestRecord) -> ChangesReader:
    """Return a reader for an agent outside a sweep. Its repository is found from its working copy.

    Temporary git objects are written to a separate repository below `folder`.
    """
    place = folder / "changes"
    own = (
        Repository.open(place) if place.is_dir() else init_repository(place, branch="none", identity=("room", "room@"))
    )
    copy = _folder_of(record)
    return ChangesReader(own, _base_of(copy, record.state_dir) if copy is not None else "", record)


def _base_of(copy: Path, state_dir: str) -> str:
    """Return the commit that an agent started from: where its branch left the branch that mngr recorded."""
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
    """Return the working copy of an agent on this machine, or None."""
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
        return "the test has no agent yet"
    if record.is_finished:
        return "the agent submitted no commit"
    if record.host not in ("", LOCAL_HOST):
        edited = ", ".join(dict.fromkeys(plain(edit.path, 80) for edit in record.edits[:5]))
        return f"the agent runs on {plain(record.host, 60)}: its commits appear here when it is done" + (
            f"; files edited so far: {edited}" if edited else ""
        )
    return "the agent's working copy does not exist yet"


KIND_WORDS: Final = {
    "IMPROVE_TEST": ("better test", "fixed"),
    "FIX_TEST": ("test fix", "fixed"),
    "FIX_TUTORIAL": ("tutorial fix", "fixed"),
    "FIX_IMPL": ("impl fix", "impl_fix"),
    "uncommitted": ("uncommitted", "waiting"),
    "all": ("all", "strong"),
}
_WIDTH: Final = 13


def draw_change(kind: str, title: str, commit: str, added: int, removed: int, width: int) -> Line:
    """Return the row of a commit, of uncommitted changes, or of all changes."""
    word, role = KIND_WORDS.get(kind, ("commit", "dim"))
    size = [Span(f" +{added}", "added"), Span(f" -{removed} ", "removed")]
    head = [Span(pad_text(word, _WIDTH), role), Span(plain(commit, 60)[:9] + " " if commit else "", "dim"), Span(title)]
    return spread(head, size, width) if width > 30 else cut_line(head, width)


LIVE_SECONDS: Final = 2.0
"""Seconds between two reads of the working copy of a running agent."""
LIST_ROWS: Final = 10


class ChangesPanel:
    """A list of changes above the diff of the one under the cursor. Enter shows only the diff."""

    def __init__(self, screen: RoomScreen) -> None:
        self._screen = screen
        self.lines = TextLines(id="changes", has_cursor=True)
        self.diff = DiffLines(id="changes-diff")
        self.box = Container(self.lines, self.diff, id="changes-box", classes="agent-panel")
        self.is_diff_alone = False
        self._record: TestRecord | None = None
        self._reader: ChangesReader | None = None
        self._rows: tuple[AgentChange, ...] = ()
        self._wanted = ""
        """The commit to move the cursor to once it is loaded."""
        self._is_reading = False
        self._read_at = 0.0
        self._read_state: tuple[object, ...] = ()

    def show_record(self, record: TestRecord) -> None:
        if self._record is None or record.test != self._record.test:
            self._rows, self._read_at, self._read_state = (), 0.0, ()
            self.set_diff_alone(is_alone=False)
            self.diff.show(EMPTY)
            self.lines.show([[Span("reading …", "dim")]])
        self._record = record

    def go_to_commit(self, commit: str) -> None:
        """Move the cursor to a commit once it is loaded."""
        self._wanted = commit

    def read(self) -> None:
        """Load the changes if they may have changed. Call it only while the panel is shown."""
        record = self._record
        if record is None or self._is_reading:
            return
        state = (record.test, record.state, record.pulled.tip, record.work_dir)
        is_due = not record.is_finished and time.monotonic() - self._read_at >= LIVE_SECONDS
        if state != self._read_state or is_due:
            self._read_state = state
            self._is_reading = True
            self.lines.run_worker(self._read(record), group="changes", name="read the changes")

    async def _read(self, record: TestRecord) -> None:
        try:
            changes, problem = await asyncio.to_thread(self._read_now, record), ""
        except (SwarmError, OSError) as error:
            changes, problem = None, str(error)
        finally:
            self._is_reading = False
            self._read_at = time.monotonic()
        if self._record is None or self._record.test != record.test:
            return
        if changes is None:
            self.lines.show([[Span(problem, "error")]])
            return
        self._show(changes)

    def _read_now(self, record: TestRecord) -> AgentChanges:
        reader = self._reader
        if reader is None or reader.test != record.test or reader.is_outdated(record):
            if reader is not None:
                reader.close()
            store = self._screen.store
            if store.is_watch:
                reader = watched_changes(store.folder.root, record)
            else:
                reader = ChangesReader(Repository.open(store.folder.root), store.opened.spec.base, record)
            self._reader = reader
        return reader.read(record)

    def _show(self, changes: AgentChanges) -> None:
        current = self.current
        self._rows = changes.rows
        width = max(20, self.lines.text_width)
        drawn = [draw_change(row.kind, row.title, row.commit, row.added, row.removed, width) for row in changes.rows]
        if changes.problem:
            drawn.append([Span(changes.problem, "dim")])
        self.lines.show(drawn)
        self.lines.styles.height = min(LIST_ROWS, len(drawn) + 2)
        found = self._place_of(current)
        if self.lines.cursor != found:
            self.lines.cursor = found
            self.lines.redraw()
        live = "live" if changes.is_live else ""
        commits = sum(bool(row.commit) for row in changes.rows)
        self.lines.title(f"Changes · {counted(commits, 'commit')}", live)
        self.show_diff()

    def _place_of(self, current: AgentChange | None) -> int:
        commits = [row.commit for row in self._rows]
        target = next((index for index, commit in enumerate(commits) if self._wanted and commit == self._wanted), None)
        if target is not None:
            self._wanted = ""
            return target
        if current is not None:
            keys = [(row.kind, row.commit) for row in self._rows]
            if (current.kind, current.commit) in keys:
                return keys.index((current.kind, current.commit))
        return 0

    @property
    def current(self) -> AgentChange | None:
        return self._rows[self.lines.cursor] if self.lines.cursor < len(self._rows) else None

    def show_diff(self) -> None:
        """Show the diff of the row under the cursor. An unchanged diff keeps its scroll position."""
        row = self.current
        if row is None:
            self.diff.show(EMPTY)
            self.diff.title("")
            return
        self.diff.show(row.diff)
        self.diff.title(" ".join(filter(None, (row.commit[:9], row.title))), counted(len(row.diff.files), "file"))

    def set_diff_alone(self, *, is_alone: bool) -> None:
        self.is_diff_alone = is_alone
        self.lines.display = not is_alone

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

"""What an agent has changed: its commits by kind and what is not committed, each with its diff."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from textual.containers import Container

from swarm_tui.errors import SwarmError
from swarm_tui.model.formatting import counted
from swarm_tui.model.state import TestRecord
from swarm_tui.room.draw.changes import draw_change
from swarm_tui.room.draw.parts import Part
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.widgets.diff import EMPTY, DiffLines
from swarm_tui.room.widgets.lines import TextLines

if TYPE_CHECKING:
    from swarm_tui.room.agent_changes import AgentChange, AgentChanges, ChangesReader

LIVE_SECONDS: Final = 2.0
"""How often the copy of an agent that works is read."""
LIST_ROWS: Final = 10


class ChangesPanel:
    """A list of changes above the diff of the one under the cursor; Enter shows that diff alone."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self.lines = TextLines(id="changes", has_cursor=True)
        self.diff = DiffLines(id="changes-diff")
        self.box = Container(self.lines, self.diff, id="changes-box", classes="agent-panel")
        self.is_diff_alone = False
        self._record: TestRecord | None = None
        self._reader: ChangesReader | None = None
        self._rows: tuple[AgentChange, ...] = ()
        self._wanted = ""
        """The commit that the cursor is to be put on when it is read."""
        self._is_reading = False
        self._read_at = 0.0
        self._read_state: tuple[object, ...] = ()

    def show_record(self, record: TestRecord) -> None:
        if self._record is None or record.test != self._record.test:
            self.forget()
            self.diff.show(EMPTY)
            self.lines.show([[Part("reading …", "dim")]])
        self._record = record

    def forget(self) -> None:
        """Forget all of it: what comes next is about another agent."""
        self._rows, self._read_at, self._read_state = (), 0.0, ()
        self.set_diff_alone(is_alone=False)

    def go_to_commit(self, commit: str) -> None:
        """Put the cursor on a commit, as soon as it is read."""
        self._wanted = commit

    def read(self) -> None:
        """Read the changes when they may be others than those shown; to be called while the panel is shown."""
        record = self._record
        if record is None or self._is_reading:
            return
        state = (record.test, record.state, record.harvest.tip, record.work_dir)
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
            self.lines.show([[Part(problem, "error")]])
            return
        self._show(changes)

    def _read_now(self, record: TestRecord) -> AgentChanges:
        from swarm_tui.adapters.git import Repository
        from swarm_tui.room.agent_changes import ChangesReader, watched_changes

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
            drawn.append([Part(changes.problem, "dim")])
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
        wanted = next((index for index, commit in enumerate(commits) if self._wanted and commit == self._wanted), None)
        if wanted is not None:
            self._wanted = ""
            return wanted
        if current is not None:
            keys = [(row.kind, row.commit) for row in self._rows]
            if (current.kind, current.commit) in keys:
                return keys.index((current.kind, current.commit))
        return 0

    @property
    def current(self) -> AgentChange | None:
        return self._rows[self.lines.cursor] if self.lines.cursor < len(self._rows) else None

    def show_diff(self) -> None:
        """Show the diff of the row under the cursor; the same one stays where it was scrolled to."""
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

"""Notifies the user by bell, desktop notification and terminal title, and shows what changed since the last visit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.since import Changes, JournalPosition, changes_between, moment_of, since_line
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.user_files import LastVisit, read_seen, write_seen
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import MARKS, Result, State
from swarm_tui.model.text import plain
from swarm_tui.questions.inbox import attention_order
from swarm_tui.room.dialog import Choosable, PickScreen
from swarm_tui.room.grid.draw import short_name
from swarm_tui.room.store import Store

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp

FINISHED_MARKS: Final = (*(result.value for result in Result), State.STOPPED.value)
PUSH_TITLE: Final = "\x1b[22;2t"
POP_TITLE: Final = "\x1b[23;2t"


class TerminalNotifications:
    """Compares the state with the previous one, and writes notifications to the terminal."""

    def __init__(self, write: Callable[[str], None], kind: str, sweep: str, noun: str = "test") -> None:
        self._write = write
        self._kind = kind
        self._sweep = plain(sweep, 60)
        self._noun = noun
        self._waiting: int | None = None
        self._ended: str | None = None
        self._alerts = 0
        self._title = ""

    def update(self, state: SweepState) -> str:
        """Notify of changes from the last state. Return the alert among them. The first call notifies of nothing."""
        waiting, reason = state.counts["waiting"], state.ended_why
        is_first = self._waiting is None
        before = self._waiting or 0
        is_ended_now = reason is not None and reason != self._ended
        new_alerts = len(state.alerts) - self._alerts
        self._waiting, self._ended, self._alerts = waiting, reason, len(state.alerts)
        if not is_first and waiting > before:
            self._notify(f"{counted(waiting, self._noun)} {'waits' if waiting == 1 else 'wait'} for an answer")
        if not is_first and is_ended_now:
            self._notify(f"the sweep has finished: {reason}")
        alert_text = ""
        if not is_first and new_alerts > 0:
            alert = list(state.alerts.values())[-1]
            alert_text = f"{counted(len(alert.tests), 'test')} with the same failure: {plain(alert.cause, 120)}"
            self._notify(alert_text)
        self._set_title(state)
        return alert_text

    def _notify(self, text: str) -> None:
        if self._kind == "bell":
            self._write("\x07")
        elif self._kind == "desktop":
            self._write(f"\x1b]9;swarm-tui {self._sweep}: {text}\x07")

    def _set_title(self, state: SweepState) -> None:
        total = sum(state.counts.values())
        done = sum(state.counts[mark] for mark in FINISHED_MARKS)
        words = [f"swarm {self._sweep}", f"{done}/{total}"]
        if state.counts["waiting"]:
            words.append(f"?{state.counts['waiting']}")
        if state.counts["error"]:
            words.append(f"!{state.counts['error']}")
        title = " ".join(words)
        if title != self._title:
            self._title = title
            self._write(f"\x1b]2;{title}\x07")


SLICE: Final = 1 << 17
WRITTEN_EVERY: Final = 2.0


class LastVisitSummary:
    """Compares the sweep with the user's last visit and saves the current position, unless `personal` is None."""

    def __init__(self, store: Store, personal: Path | None) -> None:
        self._store = store
        self._personal = personal
        self.since: LastVisit | None = read_seen(personal, store.folder) if personal is not None else None
        """The position of the last visit; None at the first visit."""
        self.changes = Changes()
        self._written = self.since or LastVisit(0, 0.0)

    @property
    def line(self) -> str:
        """The changes in one line; empty if there are none."""
        if self.since is None or self.changes.is_nothing:
            return ""
        return since_line(self.since.at, self._store.live_clock(), self.changes)

    def why_nothing(self) -> str:
        """Return why there is nothing to show, or ""."""
        if self.since is None:
            return "you have not opened this sweep before"
        return "nothing has changed since your last visit" if self.changes.is_nothing else ""

    async def read(self) -> None:
        """Compute the changes. The journal is read in small steps, so that keys are handled in between."""
        now = moment_of(self._store.live_state)
        if self.since is None or now.seq <= self.since.seq:
            return
        before = await self._moment_at(self.since.seq)
        self.changes = await asyncio.to_thread(changes_between, before, now)

    async def _moment_at(self, seq: int) -> JournalPosition:
        state, follower = SweepState(), EventFollower(self._store.folder.events)
        while events := follower.read(SLICE).events:
            for event in events:
                if event.seq > seq:
                    return moment_of(state)
                state.apply(event)
            await asyncio.sleep(0)
        return moment_of(state)

    def is_due(self) -> bool:
        """Return whether it is time to save the position."""
        if self._personal is None:
            return False
        seq, now = self._store.live_state.last_seq, self._store.live_clock()
        # A clock that was set back makes saving due too.
        return seq > self._written.seq and not 0 <= now - self._written.at < WRITTEN_EVERY

    def keep(self) -> None:
        """Save the position. After a failure, such as a full disk, saving is not tried again."""
        if self._personal is None or not self._store.live_state.last_seq:
            return
        self._written = LastVisit(self._store.live_state.last_seq, self._store.live_clock())
        if not write_seen(self._personal, self._store.folder, self._written):
            self._personal = None


LISTED = 500
"""Maximum number of tests in the list."""
_SCREEN = "screen:"


def open_changes(room: RoomApp) -> None:
    """Show the changes and open the chosen test."""
    absence = room.absence
    entries = list(_entries(absence.changes, is_ascii=room.is_ascii))

    def go(values: tuple[str, ...] | None) -> None:
        if not values:
            return
        if values[0].startswith(_SCREEN):
            room.open_screen(values[0].removeprefix(_SCREEN))
        else:
            room.show_test(values[0])

    room.push_screen(PickScreen(absence.line, entries), go)


def _entries(changes: Changes, *, is_ascii: bool) -> Iterator[Choosable]:
    for size, cause in changes.patterns:
        yield Choosable(f"{_SCREEN}patterns", f"{size} with the same cause", plain(cause, 160))
    if changes.integrated is not None:
        done = changes.integrated.state == "done"
        text = counted(changes.integrated.fixes, "fix", "fixes") if done else "not integrated"
        about = "to review" if done else plain(changes.integrated.detail, 160)
        yield Choosable(f"{_SCREEN}fixes", text, about)
    tests = [*changes.asking, *changes.done, *changes.stopped]
    for record in sorted(tests, key=attention_order)[:LISTED]:
        mark = MARKS[record.mark]
        glyph = mark.ascii_glyph if is_ascii else mark.glyph
        yield Choosable(record.test, f"{glyph} {plain(short_name(record), 60)}", _about(record), role=mark.role)


def _about(record: TestRecord) -> str:
    text = record.question or record.reason or record.pulled.summary.strip().partition("\n")[0]
    return plain(f"{MARKS[record.mark].word}: {text}" if text else MARKS[record.mark].word, 160)

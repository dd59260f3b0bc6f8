"""What has happened since this person last had a room on the sweep, and how far they see it now, for the next time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from swarm_tui.insight.since import Changes, Moment, changes_between, moment_of, since_line
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.personal_files import SeenUpTo, read_seen, write_seen
from swarm_tui.room.store import Store

SLICE: Final = 1 << 17
WRITTEN_EVERY: Final = 2.0


class Absence:
    """Compares the sweep with what was seen of it, and keeps what is seen now. `personal` None keeps nothing."""

    def __init__(self, store: Store, personal: Path | None) -> None:
        self._store = store
        self._personal = personal
        self.since: SeenUpTo | None = read_seen(personal, store.folder) if personal is not None else None
        """How far the sweep was seen before this room; None when it never was."""
        self.changes = Changes()
        self._written = self.since or SeenUpTo(0, 0.0)

    @property
    def line(self) -> str:
        """What has happened in one line; empty when nothing has."""
        if self.since is None or self.changes.is_nothing:
            return ""
        return since_line(self.since.at, self._store.live_clock(), self.changes)

    def why_nothing(self) -> str:
        """Return why there is nothing to show; empty when there is something."""
        if self.since is None:
            return "you see this sweep for the first time"
        return "nothing has happened since you were here" if self.changes.is_nothing else ""

    async def read(self) -> None:
        """Find out what has happened; the journal is folded in small steps, between which keys are handled."""
        now = moment_of(self._store.live_state)
        if self.since is None or now.seq <= self.since.seq:
            return
        before = await self._moment_at(self.since.seq)
        self.changes = await asyncio.to_thread(changes_between, before, now)

    async def _moment_at(self, seq: int) -> Moment:
        state, follower = SweepState(), EventFollower(self._store.folder.events)
        while events := follower.read(SLICE).events:
            for event in events:
                if event.seq > seq:
                    return moment_of(state)
                state.apply(event)
            await asyncio.sleep(0)
        return moment_of(state)

    def is_due(self) -> bool:
        """Return whether it is time to keep how far the sweep is seen."""
        if self._personal is None:
            return False
        seq, now = self._store.live_state.last_seq, self._store.live_clock()
        # A clock that was set back makes it due too.
        return seq > self._written.seq and not 0 <= now - self._written.at < WRITTEN_EVERY

    def keep(self) -> None:
        """Keep how far the sweep is seen; what cannot be kept, as on a full disk, is not tried again."""
        if self._personal is None or not self._store.live_state.last_seq:
            return
        self._written = SeenUpTo(self._store.live_state.last_seq, self._store.live_clock())
        if not write_seen(self._personal, self._store.folder, self._written):
            self._personal = None

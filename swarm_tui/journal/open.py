"""Opens a sweep for looking: what was asked, the state so far, and the news as they come."""

from __future__ import annotations

from dataclasses import dataclass, field

from swarm_tui.journal.append import living_engine
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import BadLine, EventFollower
from swarm_tui.journal.snapshot import read_snapshot
from swarm_tui.model.sweep import SweepSpec


@dataclass(slots=True)
class OpenedSweep:
    """A sweep that somebody looks at. Looking changes nothing in the folder."""

    folder: SweepFolder
    spec: SweepSpec
    state: SweepState
    follower: EventFollower
    bad_lines: list[BadLine] = field(default_factory=list)

    def catch_up(self, limit: int = 1 << 26) -> bool:
        """Take what was appended since the last call; True when the journal began anew and the state with it."""
        news = self.follower.read(limit)
        if news.is_restarted:
            self.state = SweepState()
            self.bad_lines = []
        self.state.apply_all(news.events)
        self.bad_lines.extend(news.bad_lines[: max(0, 100 - len(self.bad_lines))])
        return news.is_restarted

    @property
    def has_living_engine(self) -> bool:
        """Whether an engine on this machine holds the sweep now."""
        return living_engine(self.folder.lock) is not None


def open_sweep(folder: SweepFolder) -> OpenedSweep:
    """Open a sweep at its present state."""
    spec = folder.read_spec()
    state, offset = read_snapshot(folder.snapshot, folder.events)
    opened = OpenedSweep(folder, spec, state, EventFollower(folder.events, offset))
    opened.catch_up()
    return opened

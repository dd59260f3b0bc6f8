"""Opens a sweep to read it: its specification, its state so far, and the events that are appended later."""

from __future__ import annotations

from dataclasses import dataclass, field

from swarm_tui.errors import UsageError
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import BadLine, EventFollower
from swarm_tui.journal.snapshot import read_snapshot
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain


@dataclass(slots=True)
class OpenedSweep:
    """A sweep that is open for reading; nothing in its folder is changed."""

    folder: SweepFolder
    spec: SweepSpec
    state: SweepState
    follower: EventFollower
    bad_lines: list[BadLine] = field(default_factory=list)

    def read_new_events(self, limit: int = 1 << 26) -> bool:
        """Apply the events since the last call; return whether the journal was replaced, and the state with it."""
        new = self.follower.read(limit)
        if new.is_restarted:
            self.state = SweepState()
            self.bad_lines = []
        self.state.apply_all(new.events)
        self.bad_lines.extend(new.bad_lines[: max(0, 100 - len(self.bad_lines))])
        return new.is_restarted

    @property
    def has_running_engine(self) -> bool:
        """Whether an engine on this machine works on the sweep now."""
        return engine_process_id(self.folder.lock) is not None

    def find_test(self, name: str) -> TestRecord:
        """Return the test with this node id, agent, end of a node id, or part of either.

        Raise UsageError unless exactly one test fits in the first of these ways in which any does.
        """
        records = list(self.state.tests())
        exact = [record for record in records if name in (record.test, record.agent, record.agent_id)]
        ends = [record for record in records if record.test.endswith((f"::{name}", f"/{name}"))]
        parts = [record for record in records if name in record.test or name in record.agent]
        for found in (exact, ends, parts):
            if len(found) == 1:
                return found[0]
            if found:
                several = ", ".join(plain(record.test, 80) for record in found[:4])
                raise UsageError(f"{plain(name, 80)!r} fits {len(found)} tests", f"for example {several}")
        raise UsageError(
            f"there is no test or agent {plain(name, 80)!r} in {self.folder.name}",
            f"`swarm-tui status {self.folder.name}` lists all",
        )


def open_at_snapshot(folder: SweepFolder) -> OpenedSweep:
    """Open a sweep in the state of its snapshot, for readers that read the later events in slices."""
    spec = folder.read_spec()
    state, offset = read_snapshot(folder.snapshot, folder.events)
    return OpenedSweep(folder, spec, state, EventFollower(folder.events, offset))


def open_sweep(folder: SweepFolder) -> OpenedSweep:
    opened = open_at_snapshot(folder)
    opened.read_new_events()
    return opened

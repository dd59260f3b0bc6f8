"""The state of a sweep at any earlier time: find a position in the journal, and fold the journal up to it.

A position is an offset in the journal after a complete line. A state is folded from the nearest earlier state that is
in memory or in a snapshot in the sweep folder. The number of states in memory is limited. They are densest around the
last requested position, because the next request is usually near it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from swarm_tui.errors import JournalError
from swarm_tui.failures.events import AlertRaised, QueueHeld, QueueReleased
from swarm_tui.files import open_regular
from swarm_tui.hosts.events import HostAbandoned, HostLost, HostRecovered
from swarm_tui.integrator.events import Integrated, IntegrationFailed, IntegrationStarted
from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import (
    AgentStateChanged,
    EngineEnded,
    EngineStarted,
    Launched,
    LaunchFailed,
    Pulled,
    SlotsChanged,
    Stopped,
)
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LINE_LIMIT, EventFollower
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.journal.snapshot import (
    former_snapshots,
    last_snapshot,
    read_snapshot,
    restore_state,
    take_snapshot,
)
from swarm_tui.journal.state import StoredState, SweepState
from swarm_tui.limits.events import AgentStuck, LoginLost, LoginRestored
from swarm_tui.model.event import Event
from swarm_tui.model.spec import SweepSpec
from swarm_tui.money.events import BudgetReached
from swarm_tui.questions.events import QuestionAnswered, QuestionAsked

SLICE: Final = 1 << 18
"""The number of bytes between two states in memory. Folding them takes 20 ms."""
STATES_KEPT: Final = 64
RECORDS_KEPT: Final = 30_000
"""The maximum of records in all states in memory. A record takes half a kilobyte."""
WORTH_READING: Final = 1 << 20
"""Below this number of bytes, folding is faster than reading a snapshot with many tests."""
BLOCK: Final = 1 << 20
LOOKED_AT: Final = 1 << 16

STEPS: Final = (
    EngineStarted, EngineEnded, Launched, LaunchFailed, AgentStateChanged,
    Pulled, Stopped, AgentStuck, QuestionAsked, QuestionAnswered,
    AlertRaised, QueueHeld, QueueReleased, SlotsChanged, BudgetReached,
    LoginLost, LoginRestored, HostLost, HostRecovered, HostAbandoned,
    IntegrationStarted, Integrated, IntegrationFailed,
)  # fmt: skip
"""Events that the step keys of the time view stop at."""
_STEP: Final = re.compile(
    rb'"type"\s*:\s*"(?:' + b"|".join(str(kind.__struct_config__.tag).encode() for kind in STEPS) + b')"'
)


class _KeptState(NamedTuple):
    snapshot: StoredState
    records: int
    """The number of records that no other state shares."""


class JournalHistory:
    """Earlier states of one sweep. Its folder is only read."""

    def __init__(
        self, folder: SweepFolder, spec: SweepSpec, *, kept_every: int = SLICE, records_kept: int = RECORDS_KEPT
    ) -> None:
        self._kept_every, self._records_kept = kept_every, records_kept
        self._folder = folder
        self._spec = spec
        self._kept: dict[int, _KeptState] = {}
        self._invalid: set[int] = set()

    # Positions.

    @property
    def span(self) -> tuple[float, float]:
        """The times of the first and of the last event."""
        with self._journal() as file:
            end = _end_of_lines(file)
            first, last = _first_event(file, 0, end), _last_event(file, end)
        return (first[1].at, last.at) if first is not None and last is not None else (0.0, 0.0)

    def moment_at(self, at: float) -> int:
        """Return the offset after the last event that is not later than a time; 0 if all events are later."""
        with self._journal() as file:
            return _end_of_first(file, lambda event: event.at <= at)

    def time_at(self, offset: int) -> float:
        """Return the time of the last event before an offset; 0 if there is none."""
        with self._journal() as file:
            last = _last_event(file, offset)
            return last.at if last is not None else 0.0

    def step_before(self, offset: int) -> int | None:
        """Return the offset after the previous step, or None.

        An offset between two steps counts as the earlier step, because both look the same.
        """
        with self._journal() as file:
            steps = _steps_back(file, offset)
            return next(steps, None) and next(steps, None)

    def step_after(self, offset: int) -> int | None:
        """Return the offset after the next step, or None."""
        with self._journal() as file:
            return _next_step(file, offset)

    def _journal(self) -> BinaryIO:
        try:
            return open_regular(self._folder.events)
        except OSError as error:
            raise JournalError(f"{self._folder.events} cannot be read: {error.strerror or error}") from error

    # States.

    def state_at(self, offset: int, tell: Callable[[int, int], object] = lambda done, size: None) -> SweepState:
        """Return the state at an offset. `tell` is called with the bytes read so far and in total."""
        opened = self._nearest(offset)
        begin, limit = opened.follower.offset, self._kept_every
        while (before := opened.follower.offset) < offset:
            opened.read_new_events(min(limit, offset - before))
            if opened.follower.offset == before:
                if limit >= min(LINE_LIMIT, offset - before):
                    break
                limit *= 4
                continue
            limit = self._kept_every
            self._keep(opened, offset)
            tell(opened.follower.offset - begin, offset - begin)
        return opened.state

    def opened_at(self, at: float) -> OpenedSweep:
        """Return the sweep at an earlier time."""
        offset = self.moment_at(at)
        opened = self._opened(self.state_at(offset), offset)
        opened.is_of_past = True
        return opened

    def _nearest(self, offset: int) -> OpenedSweep:
        """Return the sweep at the nearest available state that is not later."""
        kept = max((place for place in self._kept if place <= offset), default=0)
        written = former_snapshots(self._folder.former_snapshots) | last_snapshot(self._folder.snapshot)
        for place in sorted(written, reverse=True):
            if kept + WORTH_READING < place <= offset and place not in self._invalid:
                state, found = read_snapshot(written[place], self._folder.events)
                if found == place:
                    self._kept[place] = _KeptState(take_snapshot(state), len(state.records))
                    return self._opened(state, place)
                self._invalid.add(place)
        state = restore_state(self._kept[kept].snapshot) if kept else SweepState(self._spec.tests)
        return self._opened(state, kept)

    def _opened(self, state: SweepState, offset: int) -> OpenedSweep:
        return OpenedSweep(self._folder, self._spec, state, EventFollower(self._folder.events, offset))

    def _keep(self, opened: OpenedSweep, target: int) -> None:
        place, changed = opened.follower.offset, opened.state.drain_changed()
        if place in self._kept:
            return
        self._kept[place] = _KeptState(take_snapshot(opened.state), len(changed))
        while len(self._kept) > STATES_KEPT or sum(kept.records for kept in self._kept.values()) > self._records_kept:
            places = sorted(self._kept)
            if len(places) < 3:
                return
            gaps = zip(places, [0, *places], [*places[1:], target], strict=False)
            # Drop the least useful state: near its neighbours and far from the target.
            _, least = min(((after - before) / (abs(target - here) + SLICE), here) for here, before, after in gaps)
            del self._kept[least]


def _end_of_lines(file: BinaryIO) -> int:
    """Return the offset after the last complete line."""
    end = os.fstat(file.fileno()).st_size
    while end:
        start = max(0, end - BLOCK)
        newline = os.pread(file.fileno(), end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def offset_behind(path: Path, seq: int) -> int:
    """Return an offset that every event after `seq` follows; 0 if the numbers do not increase."""
    try:
        with open_regular(path) as file:
            offset = _end_of_first(file, lambda event: event.seq <= seq)
            # A copy of an old line can mislead the binary search, so check the last lines.
            before = os.pread(file.fileno(), min(offset, LOOKED_AT), max(0, offset - LOOKED_AT))
    except OSError:
        return 0
    lines = before.split(b"\n")[0 if offset <= LOOKED_AT else 1 :]
    return 0 if any(event is not None and event.seq > seq for event in map(_event_of, lines)) else offset


def _end_of_first(file: BinaryIO, is_first: Callable[[Event], bool]) -> int:
    """Return the offset after the last event that meets a condition which later events do not meet (binary search)."""
    low, high = 0, _end_of_lines(file)
    while low < high:
        middle = (low + high) // 2
        found = _first_event(file, middle, high)
        if found is not None and is_first(found[1]):
            low = found[0]
        else:
            high = middle
    return low


def _first_event(file: BinaryIO, start: int, end: int) -> tuple[int, Event] | None:
    """Return the first event whose line starts in a range, and the offset after it."""
    file.seek(max(0, start - 1))
    if start:
        file.readline(LINE_LIMIT)
    while (begin := file.tell()) < end:
        line = file.readline(LINE_LIMIT)
        if not line:
            return None
        event = _event_of(line)
        if event is not None:
            return begin + len(line), event
    return None


def _last_event(file: BinaryIO, end: int) -> Event | None:
    size = 1 << 16
    while end:
        start = max(0, end - size)
        lines = os.pread(file.fileno(), end - start, start).split(b"\n")
        for line in reversed(lines[1:] if start else lines):
            if line and (event := _event_of(line)) is not None:
                return event
        if not start:
            return None
        size *= 4
    return None


def _event_of(line: bytes) -> Event | None:
    try:
        return parse_event(line)
    except ValueError:
        return None


def _is_step(line: bytes) -> bool:
    return isinstance(_event_of(line), STEPS)


def _steps_back(file: BinaryIO, end: int) -> Iterator[int]:
    """Yield the offsets after the steps before an offset, last first."""
    size = BLOCK
    while end:
        start = max(0, end - size)
        block = os.pread(file.fileno(), end - start, start)
        if start:
            # The block starts inside a line. The next block contains the complete line.
            cut = block.find(b"\n") + 1
            if not cut or cut == len(block):
                size *= 2
                continue
            start, block = start + cut, block[cut:]
        for found, line in reversed(list(_candidates(block))):
            if _is_step(line):
                yield start + found + len(line)
        end, size = start, BLOCK


def _next_step(file: BinaryIO, start: int) -> int | None:
    size = BLOCK
    while True:
        block = os.pread(file.fileno(), size, start)
        end = block.rfind(b"\n") + 1
        if not end:
            if len(block) < size:
                return None
            size *= 2
            continue
        for found, line in _candidates(block[:end]):
            if _is_step(line):
                return start + found + len(line)
        start, size = start + end, BLOCK


def _candidates(block: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the complete lines that contain the type of a step, with their positions in the block."""
    place = 0
    while (match := _STEP.search(block, place)) is not None:
        begin = block.rfind(b"\n", 0, match.start()) + 1
        place = block.find(b"\n", match.end()) + 1 or len(block)
        yield begin, block[begin:place]

"""The status of each host: agents, free slots, load and last poll."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from swarm_tui.hosts.events import HostState
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import age, counted, duration
from swarm_tui.model.results import ACTIVE_MARKS, UNSOLVED_RESULTS, State
from swarm_tui.model.spec import LOCAL_HOST, SweepSpec
from swarm_tui.model.text import plain


class HostLine(NamedTuple):
    """The status of one host."""

    name: str
    slots: int | None
    """The number of agents that may run at the same time; None if unlimited."""
    running: int = 0
    waiting: int = 0
    finished: int = 0
    unsolved: int = 0
    """Finished tests that need the user or another launch."""
    load: float | None = None
    processors: int = 0
    heard_at: float | None = None
    lost_since: float | None = None
    is_gone: bool = False
    reason: str = ""
    tests: tuple[str, ...] = ()
    """The tests whose last agent ran on the host."""
    stage: str = ""
    """The stage of a host created for the sweep: `making`, `made`, `ended` or `unreleased`."""

    @property
    def taken(self) -> int:
        return self.running + self.waiting

    @property
    def free(self) -> int:
        """The number of agents that could be launched; 0 while the host does not answer."""
        if self.has_problem or not self.is_there or self.slots is None:
            return 0
        return max(0, self.slots - self.taken)

    @property
    def has_problem(self) -> bool:
        return self.is_gone or self.lost_since is not None

    @property
    def word(self) -> str:
        """The state: creating, ready, idle, silent, lost, released or not released."""
        if not self.is_there:
            return _WORD_OF_STAGE[self.stage]
        if self.has_problem:
            return "lost" if self.is_gone else "silent"
        return "ready" if self.taken else "idle"

    @property
    def is_there(self) -> bool:
        return self.stage not in _WORD_OF_STAGE


_WORD_OF_STAGE: Final = {"making": "creating", "ended": "released", "unreleased": "not released"}


class HostTally:
    """Counts tests by host incrementally. `count` must be called for every changed record."""

    def __init__(self) -> None:
        self._records: dict[str, dict[str, TestRecord]] = {}
        self._marks: dict[str, Counter[str]] = {}
        self._host_of: dict[str, str] = {}
        self._heard_at: dict[str, float] = {}

    def count(self, record: TestRecord) -> None:
        """Count a new or changed record."""
        before = self._host_of.pop(record.test, "")
        if before:
            self._marks[before][self._records[before].pop(record.test).mark] -= 1
        host = record.host
        if host:
            self._host_of[record.test] = host
            self._records.setdefault(host, {})[record.test] = record
            self._marks.setdefault(host, Counter())[record.mark] += 1
            self._heard_at[host] = max(self._heard_at.get(host, 0.0), record.last_line_at)

    def lines(self, spec: SweepSpec, hosts: Mapping[str, HostState]) -> list[HostLine]:
        """Return all hosts in the order of the sweep, with hosts that do not answer first."""
        names = dict.fromkeys((*(access.name for access in spec.access), *hosts, *self._records))
        lines = [self._line(name, spec, hosts.get(name) or HostState(name)) for name in names]
        return sorted(lines, key=lambda line: (not line.has_problem, line.stage == "ended"))

    def _line(self, name: str, spec: SweepSpec, host: HostState) -> HostLine:
        marks = self._marks.get(name, Counter[str]())
        heard_at = max(host.seen_at or 0.0, self._heard_at.get(name, 0.0))
        is_one_of_many = bool(spec.access) or spec.provider != LOCAL_HOST
        return HostLine(
            name=name,
            slots=spec.per_host if is_one_of_many and name != LOCAL_HOST else None,
            running=_number_of(marks, ACTIVE_MARKS),
            waiting=marks[State.WAITING.value],
            finished=sum(marks.values()) - _number_of(marks, (*ACTIVE_MARKS, State.WAITING, State.QUEUED)),
            unsolved=_number_of(marks, UNSOLVED_RESULTS),
            load=host.load,
            processors=host.processors,
            heard_at=heard_at or None,
            lost_since=host.lost_since,
            is_gone=host.is_gone,
            reason=host.reason,
            tests=tuple(self._records.get(name, ())),
            stage=host.stage,
        )


def _number_of(marks: Mapping[str, int], kinds: Collection[str]) -> int:
    return sum(marks[kind] for kind in kinds)


def host_lines(spec: SweepSpec, hosts: Mapping[str, HostState], records: Iterable[TestRecord]) -> list[HostLine]:
    """Return the status of all hosts, counted from scratch."""
    tally = HostTally()
    for record in records:
        tally.count(record)
    return tally.lines(spec, hosts)


def is_on_hosts(spec: SweepSpec) -> bool:
    """Return whether the agents of a sweep run on other machines."""
    return bool(spec.access) or spec.provider != LOCAL_HOST


def text_of_host(line: HostLine, now: float) -> str:
    """Return the status of a host as text: `box1: 3 of 4 slots, load 1.8 of 8, polled 12 s ago`."""
    if not line.is_there:
        why = f" ({line.reason})" if line.stage == "unreleased" else ""
        return f"{line.name}: {line.word}{why}, {line.finished:,} done"
    words = [line.word] if line.word == "idle" else []
    words += [f"{line.taken} of {line.slots} slots" if line.slots is not None else counted(line.taken, "agent")]
    if line.waiting:
        words.append(f"{line.waiting} waiting")
    if line.has_problem:
        words.append(_problem_text(line, now) + (f" ({line.reason})" if line.reason else ""))
    elif line.load is not None:
        words.append(f"load {line.load:.1f}" + (f" of {line.processors}" if line.processors else ""))
    if line.heard_at is not None and not line.has_problem:
        words.append(f"polled {age(now - line.heard_at)}")
    words.append(f"{line.finished:,} done")
    return f"{line.name}: {', '.join(words)}"


def free_slots_reason(lines: Sequence[HostLine], slots: int, queued: int, now: float) -> str:
    """Return why hosts leave slots unused while tests are queued; "" if they do not."""
    taken = sum(line.taken for line in lines)
    if not queued or taken >= slots or not lines or any(line.slots is None for line in lines):
        return ""
    silent = [line for line in lines if line.has_problem]
    if not silent and any(line.free for line in lines):
        return ""
    shown = [_problem(line, now) for line in silent[:3]]
    shown += [f"{counted(len(silent) - 3, 'more host')} too"] if len(silent) > 3 else []
    return f"{taken} of {slots} slots in use: {', '.join(shown) or 'all hosts are full'}"


def _problem(line: HostLine, now: float) -> str:
    return f"{plain(line.name, 40)} {_problem_text(line, now)}"


def _problem_text(line: HostLine, now: float) -> str:
    return "is lost" if line.is_gone else f"has not answered for {duration(now - (line.lost_since or now))}"

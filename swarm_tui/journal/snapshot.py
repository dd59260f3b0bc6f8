"""Snapshots of the state, stored next to the journal, so that a long sweep opens without reading every event.

A snapshot is only a cache. Its first line contains an offset in the journal, a digest of the bytes before the offset,
and its own size and digest. A snapshot that does not match is ignored, and the journal is read instead.

Some replaced snapshots are kept in compressed form, so that earlier states can be folded quickly.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import zlib
from collections import Counter
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

import msgspec

from swarm_tui.errors import JournalError
from swarm_tui.failures.events import Alert
from swarm_tui.files import open_regular, read_regular
from swarm_tui.hosts.events import HostState
from swarm_tui.integrator.events import Integration
from swarm_tui.journal.folder import write_beside
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.limits.events import ApiAccess
from swarm_tui.model.event import LogLine
from swarm_tui.model.questions import AnswerRule
from swarm_tui.model.text import parse_json
from swarm_tui.money.events import Budget, Spending

SNAPSHOT_VERSION: Final = 6
SIZE_LIMIT: Final = 1 << 29
FORMER_KEPT: Final = 64
_FORMER_SUFFIX: Final = ".json.z"
_DIGESTED: Final = 4096


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fields of a state, in a form that can be stored."""

    slots: int
    is_held: bool
    budget: Budget
    spending: Spending
    started_at: float | None
    ended_at: float | None
    ended_why: str | None
    ended_reason: str
    engine_machine: str
    last_seq: int
    last_at: float
    unknown_events: int
    lost_events: int
    broken_lines: int
    foreign_lines: int
    stale_reason: str
    checkout_changes: tuple[str, ...]
    rules_made: int
    integration: Integration
    integrator: TestRecord | None
    access: ApiAccess
    alarms: tuple[Alert, ...]
    log: tuple[LogLine, ...]
    records: tuple[TestRecord, ...]
    not_queued: frozenset[str]
    hosts: tuple[HostState, ...]
    rules: tuple[AnswerRule, ...]
    rule_uses: dict[str, int]


_CONVERTED: Final = frozenset({"alarms", "log", "records", "not_queued", "hosts", "rules", "rule_uses"})
_PLAIN_FIELDS: Final = tuple(entry.name for entry in fields(Snapshot) if entry.name not in _CONVERTED)
"""Fields that are stored without conversion."""


def take_snapshot(state: SweepState) -> Snapshot:
    """Return a snapshot of a state. Later events do not change it."""
    return Snapshot(
        **{name: getattr(state, name) for name in _PLAIN_FIELDS},
        alarms=tuple(state.alarms.values()),
        log=tuple(state.log),
        records=tuple(state.tests()),
        not_queued=frozenset(state.not_queued),
        hosts=tuple(state.hosts.values()),
        rules=tuple(state.rules.values()),
        rule_uses=dict(state.rule_uses),
    )


def write_snapshot(path: Path, journal: Path, offset: int, state: SweepState | Snapshot) -> None:
    """Write the state after the first `offset` bytes of the journal."""
    content = msgspec.json.encode(state if isinstance(state, Snapshot) else take_snapshot(state))
    header = _header(content) | {"offset": offset, "journal": _digest(journal, offset)}
    write_beside(path, json.dumps(header).encode() + b"\n" + content)


def read_snapshot(path: Path, journal: Path) -> tuple[SweepState, int]:
    """Return the state of a snapshot and its offset in the journal; a new state and 0 if it is missing or invalid."""
    try:
        first, _, content = _read(path).partition(b"\n")
        header = parse_json(first[:1000])
        expected = _header(content)
        if {name: header[name] for name in expected} != expected:
            return SweepState(), 0
        offset = header["offset"]
        if type(offset) is not int or offset < 0 or header["journal"] != _digest(journal, offset):
            return SweepState(), 0
        return restore_state(_decoder().decode(content)), offset
    except (OSError, ValueError, KeyError, TypeError, RecursionError, JournalError, zlib.error):
        # The journal will be read from the start.
        return SweepState(), 0


def keep_former_snapshot(path: Path, folder: Path) -> None:
    """Copy the current snapshot, which is about to be replaced, to the folder of former snapshots."""
    try:
        content = read_regular(path, SIZE_LIMIT)
        offset = int(parse_json(content[: content.index(b"\n")])["offset"])
        folder.mkdir(exist_ok=True)
        write_beside(folder / f"{offset}{_FORMER_SUFFIX}", zlib.compress(content, 1))
    except (OSError, ValueError, KeyError, TypeError, JournalError):
        # An earlier snapshot will be used instead.
        return
    offsets = sorted(former_snapshots(folder))
    if len(offsets) > FORMER_KEPT:
        for dropped in offsets[1::2]:
            with contextlib.suppress(OSError):
                (folder / f"{dropped}{_FORMER_SUFFIX}").unlink()


def former_snapshots(folder: Path) -> dict[int, Path]:
    """Return the former snapshots by journal offset, which is part of their file names."""
    try:
        paths = [path for path in folder.iterdir() if path.name.endswith(_FORMER_SUFFIX)]
    except OSError:
        return {}
    named = ((path.name.removesuffix(_FORMER_SUFFIX), path) for path in paths)
    return {int(name): path for name, path in named if name.isascii() and name.isdigit() and len(name) < 16}


def last_snapshot(path: Path) -> dict[int, Path]:
    """Return the current snapshot by the journal offset in its first line; empty if there is none."""
    try:
        with open_regular(path) as file:
            offset = parse_json(file.readline(1000))["offset"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {offset: path} if type(offset) is int and offset > 0 else {}


def _read(path: Path) -> bytes:
    content = read_regular(path, SIZE_LIMIT)
    return zlib.decompressobj().decompress(content, SIZE_LIMIT) if path.name.endswith(_FORMER_SUFFIX) else content


def is_cut_short(path: Path, journal: Path) -> bool:
    """Return whether the journal is shorter than it was when its snapshot was written."""
    try:
        size = journal.stat().st_size if journal.exists() else 0
    except OSError:
        return False
    return any(offset > size for offset in last_snapshot(path))


def restore_state(snapshot: Snapshot) -> SweepState:
    """Return the state of a snapshot."""
    state = SweepState()
    for name in _PLAIN_FIELDS:
        setattr(state, name, getattr(snapshot, name))
    state.alarms = {alarm.cause: alarm for alarm in snapshot.alarms}
    state.log.extend(snapshot.log)
    state.records = {record.test: record for record in snapshot.records}
    state.not_queued = set(snapshot.not_queued)
    state.hosts = {host.name: host for host in snapshot.hosts}
    state.rules = {rule.id: rule for rule in snapshot.rules}
    state.rule_uses = Counter(snapshot.rule_uses)
    state.counts = Counter(record.mark for record in state.tests())
    return state


@functools.cache
def _decoder() -> msgspec.json.Decoder[Snapshot]:
    return msgspec.json.Decoder(Snapshot)


def _header(content: bytes) -> dict[str, Any]:
    """Return the fields of the first line that must match. They include a hash of the field names of records."""
    return {
        "version": SNAPSHOT_VERSION,
        "fields": hashlib.sha256(" ".join(TestRecord._fields).encode()).hexdigest()[:16],
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _digest(journal: Path, offset: int) -> str:
    """Return a digest of the journal's last bytes before an offset. Raise JournalError if it is shorter."""
    with open_regular(journal) as file:
        start = max(0, offset - _DIGESTED)
        file.seek(start)
        block = file.read(offset - start)
    if len(block) != offset - start:
        raise JournalError(f"{journal} is shorter than its snapshot")
    return hashlib.sha256(str(offset).encode() + block).hexdigest()

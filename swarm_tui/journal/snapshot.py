"""Snapshots of the state, stored next to the journal, so that a long sweep opens without reading every event.

A snapshot is only a cache. Its first line contains an offset in the journal, a digest of the bytes before the offset,
and its own size and digest. A snapshot that does not match is ignored, and the journal is read instead.

Some replaced snapshots are kept in compressed form, so that earlier states can be folded quickly.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import zlib
from collections import Counter, deque
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import msgspec

from swarm_tui.errors import JournalError
from swarm_tui.files import open_regular, read_regular
from swarm_tui.journal.folder import write_beside
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import LOG_LINES_KEPT, StoredState, SweepState
from swarm_tui.model.event import LogLine
from swarm_tui.model.text import parse_json

SNAPSHOT_VERSION: Final = 8
SIZE_LIMIT: Final = 1 << 29
FORMER_KEPT: Final = 64
_FORMER_SUFFIX: Final = ".json.z"
_DIGESTED: Final = 4096


def take_snapshot(state: SweepState) -> StoredState:
    """Return a copy of what is stored of a state. Later events do not change it."""
    return StoredState(**_copies(state))


def _copies(state: StoredState) -> dict[str, Any]:
    return {entry.name: copy.copy(getattr(state, entry.name)) for entry in fields(StoredState)}


def write_snapshot(path: Path, journal: Path, offset: int, state: StoredState) -> None:
    """Write the state after the first `offset` bytes of the journal."""
    content = msgspec.json.encode(take_snapshot(state) if isinstance(state, SweepState) else state, enc_hook=list)
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


def restore_state(snapshot: StoredState) -> SweepState:
    """Return the state of a snapshot."""
    state = SweepState()
    for name, value in _copies(snapshot).items():
        setattr(state, name, value)
    state.counts = Counter(record.mark for record in state.tests())
    return state


def _decoded(kind: Any, value: Any) -> Any:
    """Return a value of a type that msgspec does not support."""
    if kind == deque[LogLine]:
        return deque(msgspec.convert(value, list[LogLine]), LOG_LINES_KEPT)
    return Counter(msgspec.convert(value, dict[str, int]))


@functools.cache
def _decoder() -> msgspec.json.Decoder[StoredState]:
    return msgspec.json.Decoder(StoredState, dec_hook=_decoded)


def _header(content: bytes) -> dict[str, Any]:
    """Return the fields of the first line that must match. They include a hash of the field names of records."""
    return {
        "version": SNAPSHOT_VERSION,
        "fields": hashlib.sha256(" ".join(TestRecord.__struct_fields__).encode()).hexdigest()[:16],
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

"""Prepares recordings for the page: bounded, without input, with secrets masked, as asciicast v2."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from swarm_tui.model.formatting import counted
from swarm_tui.model.masking import mask_pieces
from swarm_tui.transcripts.cast import BadRecording, Recording, parse_size

EVENTS_LIMIT: Final = 100_000
CAST_SIZE_LIMIT: Final = 8_000_000


class Cast(NamedTuple):
    """A recording that the player can play."""

    columns: int
    rows: int
    seconds: float
    text: str
    """asciicast v2, output and resizes only."""
    note: str
    """Empty, or that it was cut short or damaged."""


class _Event(NamedTuple):
    at: float
    kind: str
    data: str


def read_cast(path: Path) -> Cast:
    """Return a recording without its input, because people type passwords."""
    recording = Recording(path)
    try:
        events, is_whole = _events(recording)
        if not any(event.kind == "o" for event in events):
            raise BadRecording(f"{path.name} holds no output")
        note = "" if is_whole else "only its beginning is here: it is too large"
        if recording.broken_lines and is_whole:
            note = f"cut short or damaged: {counted(recording.broken_lines, 'line')} left out"
        columns, rows = int(recording.columns), int(recording.rows)
    finally:
        recording.close()
    return Cast(columns, rows, round(events[-1].at, 3), "\n".join(_lines(columns, rows, events)) + "\n", note)


def _events(recording: Recording) -> tuple[list[_Event], bool]:
    """Return the output and resizes up to the size limit, and whether that is all."""
    events: list[_Event] = []
    bytes_left = CAST_SIZE_LIMIT
    for index, at in enumerate(recording.times):
        kind, data = recording.event(index)
        if kind == "r":
            data = _bounded_size(data)
        elif kind != "o":
            continue
        bytes_left -= len(data)
        if bytes_left < 0 or len(events) >= EVENTS_LIMIT:
            return events, False
        events.append(_Event(at, kind, data))
    return events, True


def _bounded_size(data: str) -> str:
    rows, columns = parse_size(data) or (24, 80)
    return f"{columns}x{rows}"


def _lines(columns: int, rows: int, events: Sequence[_Event]) -> Iterator[str]:
    pieces = iter(mask_pieces([event.data for event in events if event.kind == "o"]))
    yield json.dumps({"version": 2, "width": columns, "height": rows})
    for event in events:
        data = next(pieces) if event.kind == "o" else event.data
        yield json.dumps([round(event.at, 6), event.kind, data])

"""Makes recordings fit for the page: asciicast of any version checked, bounded, masked and written anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from swarm_tui.model.text import plain
from swarm_tui.report.masking import mask_pieces

COLUMNS_LIMIT: Final = 500
ROWS_LIMIT: Final = 200
EVENTS_LIMIT: Final = 100_000
CAST_SIZE_LIMIT: Final = 8_000_000


class BrokenCast(ValueError):
    """A recording that cannot be played; its text is the reason that a person sees."""


class Cast(NamedTuple):
    """A recording that the player can play."""

    columns: int
    rows: int
    seconds: float
    text: str
    """asciicast v2, output and resizes only."""
    note: str
    """What a person should know: that it was cut short."""


class _Event(NamedTuple):
    at: float
    kind: str
    data: str


def read_cast(raw: bytes, *, is_cut: bool = False) -> Cast:
    """Read a recording; what was typed is left out, because passwords are typed."""
    head, _, body = raw.partition(b"\n")
    header = _object(head)
    version = header.get("version")
    if version not in (2, 3):
        raise BrokenCast(f"asciicast version {plain(str(version), 20)} cannot be played, 2 and 3 can")
    terminal = header.get("term") if version == 3 else header
    columns, rows = _size(terminal)
    events: list[_Event] = []
    problem = "only its beginning is here: it is too large" if is_cut else ""
    clock = 0.0
    for line in body.split(b"\n"):
        if not line.strip() or line.lstrip().startswith(b"#"):
            continue
        event = _event(line)
        if event is None:
            problem = problem or "cut short, or damaged, after this"
            break
        clock = clock + max(0.0, event.at) if version == 3 else max(clock, event.at)
        if event.kind == "o" or (event.kind == "r" and _resize(event.data)):
            events.append(event._replace(at=clock))
        if len(events) >= EVENTS_LIMIT:
            problem = problem or "only its beginning is here: it has too many events"
            break
    if not events:
        raise BrokenCast("the recording holds no output")
    return Cast(columns, rows, round(clock, 3), "\n".join(_lines(columns, rows, _mask(events))) + "\n", problem)


def _object(line: bytes) -> dict[str, Any]:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise BrokenCast("this is no asciicast: its first line is no header")
    return header


def _size(terminal: Any) -> tuple[int, int]:
    sizes = terminal if isinstance(terminal, dict) else {}
    columns = sizes.get("width", sizes.get("cols"))
    rows = sizes.get("height", sizes.get("rows"))
    if not isinstance(columns, int) or not isinstance(rows, int) or columns < 1 or rows < 1:
        raise BrokenCast("the recording does not say how large its terminal was")
    return min(columns, COLUMNS_LIMIT), min(rows, ROWS_LIMIT)


def _event(line: bytes) -> _Event | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    match event:
        case [int() | float() as at, str() as kind, str() as data, *_] if 0 <= at < 1e7:
            return _Event(float(at), kind, data)
    return None


def _resize(data: str) -> bool:
    columns, _, rows = data.partition("x")
    return (
        columns.isdecimal()
        and rows.isdecimal()
        and 0 < int(columns[:6]) <= COLUMNS_LIMIT
        and 0 < int(rows[:6]) <= ROWS_LIMIT
    )


def _mask(events: list[_Event]) -> Iterator[_Event]:
    pieces = iter(mask_pieces([event.data for event in events if event.kind == "o"]))
    for event in events:
        yield event._replace(data=next(pieces)) if event.kind == "o" else event


def _lines(columns: int, rows: int, events: Iterator[_Event]) -> Iterator[str]:
    yield json.dumps({"version": 2, "width": columns, "height": rows})
    for event in events:
        yield json.dumps([round(event.at, 6), event.kind, event.data])

"""Terminal recordings (asciicast versions 2 and 3), read from disk while playing."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from swarm_tui.errors import SwarmError
from swarm_tui.model.text import plain
from swarm_tui.transcripts.entries import loads_or_none
from swarm_tui.transcripts.window import FileSource, RecordSpan, Window

LINE_LIMIT: Final = 1 << 22
EVENTS_LIMIT: Final = 2_000_000
SIZE_LIMIT: Final = 500
SPEEDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


class BadRecording(SwarmError):
    """The file is not a recording, or cannot be played."""


class Recording:
    """A recording. Times are in memory; output is read from disk while playing."""

    def __init__(self, path: Path) -> None:
        self._window = Window(FileSource(path))
        self._window.poll(0.0)
        # The file no longer grows, so its last line is complete even without a newline.
        self._window.poll(math.inf)
        first = self._window.after(0)
        header = loads_or_none(self._window.read(first, LINE_LIMIT)) if first is not None else None
        if first is None or not isinstance(header, dict):
            raise BadRecording(f"{path.name} is not a recording: invalid header")
        self.version = header.get("version")
        if self.version not in (2, 3):
            raise BadRecording(
                f"unsupported version of {path.name}: {plain(str(self.version), 20)}", "use asciicast version 2 or 3"
            )
        size = header.get("term") if self.version == 3 else header
        size = size if isinstance(size, dict) else {}
        self.columns = _size(size.get("cols" if self.version == 3 else "width"), 80)
        self.rows = _size(size.get("rows" if self.version == 3 else "height"), 24)
        self.title = plain(str(header.get("title") or header.get("command") or ""), 200)
        self._idle_limit = _number(header.get("idle_time_limit"))
        self.broken_lines = 0
        self.times = array("d")
        self._spans = array("Q")
        self._read_times(first.end)

    @property
    def duration(self) -> float:
        return self.times[-1] if self.times else 0.0

    def __len__(self) -> int:
        return len(self.times)

    def event(self, index: int) -> tuple[str, str]:
        """Return the kind of an event ("o": output, "r": resize, "m": marker) and its data."""
        span = RecordSpan(self._spans[2 * index], self._spans[2 * index + 1])
        event = loads_or_none(self._window.read(span, LINE_LIMIT))
        assert isinstance(event, list), "only lines that were read as events are kept"
        return str(event[1]), str(event[2])

    def close(self) -> None:
        self._window.close()

    def _read_times(self, offset: int) -> None:
        now = last = 0.0
        for span in self._window.spans_after(offset):
            raw = self._window.read(span, LINE_LIMIT)
            if not raw.strip() or raw.startswith(b"#"):
                continue
            at = _time_of_event(loads_or_none(raw))
            if at is None or len(self.times) >= EVENTS_LIMIT:
                self.broken_lines += 1
                continue
            step = at if self.version == 3 else max(0.0, at - last)
            last = at
            now += min(step, self._idle_limit) if self._idle_limit else step
            self.times.append(now)
            self._spans.extend(span)


class Playback:
    """The playback position in a recording; the caller passes the elapsed time."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.at = 0.0
        self.speed = 1.0
        self.is_paused = False
        self._next = 0

    @property
    def is_at_end(self) -> bool:
        return self._next >= len(self.recording)

    def advance(self, seconds: float, limit: int = 200) -> list[tuple[str, str]]:
        """Advance by some seconds; return up to `limit` events, and the others with the next call."""
        if self.is_paused:
            return []
        until = min(self.at + seconds * self.speed, self.recording.duration)
        events: list[tuple[str, str]] = []
        while not self.is_at_end and self.recording.times[self._next] <= until:
            if len(events) >= limit:
                self.at = self.recording.times[self._next]
                return events
            events.append(self.recording.event(self._next))
            self._next += 1
        self.at = until
        return events

    def seek(self, at: float) -> Iterator[tuple[str, str]]:
        """Seek to a time; return all events from the beginning up to it, for a cleared screen."""
        self.at = max(0.0, min(at, self.recording.duration))
        self._next = bisect_right(self.recording.times, self.at)
        return (self.recording.event(index) for index in range(self._next))

    def change_speed(self, step: int) -> None:
        index = SPEEDS.index(self.speed) + step
        self.speed = SPEEDS[max(0, min(index, len(SPEEDS) - 1))]


def parse_size(data: str) -> tuple[int, int] | None:
    """Return (rows, columns) from the data of a resize event, `COLUMNSxROWS`, or None."""
    columns, _, rows = data.partition("x")
    if not columns.isdecimal() or not rows.isdecimal():
        return None
    return _size(int(rows[:6]), 24), _size(int(columns[:6]), 80)


def _time_of_event(event: Any) -> float | None:
    if not isinstance(event, list) or len(event) < 3 or not isinstance(event[1], str) or not isinstance(event[2], str):
        return None
    return _number(event[0])


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # An integer of hundreds of digits cannot become a float, but can be compared with one.
    return float(value) if 0 <= value < 1e8 else None


def _size(value: Any, fallback: int) -> int:
    return min(value, SIZE_LIMIT) if isinstance(value, int) and value > 0 else fallback

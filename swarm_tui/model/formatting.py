"""Durations, ages, money, sizes, progress."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain


def duration(seconds: float) -> str:
    """Return a time span: `41s`, `6m12s`, `2h05m`, `3d04h`."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600:02}h"


def age(seconds: float) -> str:
    """Return an age: `12 s ago`, `4 min ago`."""
    whole = max(0, int(seconds))
    if whole < 2:
        return "now"
    if whole < 60:
        return f"{whole} s ago"
    if whole < 3600:
        return f"{whole // 60} min ago"
    if whole < 86400:
        return f"{whole // 3600} h ago"
    return f"{whole // 86400} d ago"


def clock(seconds: float) -> str:
    """Return an elapsed time in clock format: `12:41`, `1:02:41`."""
    whole = max(0, int(seconds))
    if whole < 3600:
        return f"{whole // 60:02}:{whole % 60:02}"
    return f"{whole // 3600}:{whole % 3600 // 60:02}:{whole % 60:02}"


def wall_clock(at: float) -> str:
    """Return a local time of day: `12:04:31`."""
    return datetime.fromtimestamp(at).strftime("%H:%M:%S")


def money(dollars: float | None) -> str:
    """Return an amount: `$3.42`, or `?` if it is unknown."""
    if dollars is None:
        return "?"
    return f"${dollars:,.0f}" if dollars >= 1000 else f"${dollars:.2f}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 test`, `3 tests`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def named(names: Sequence[str], limit: int = 3) -> str:
    """Return the first names and the number of other names: `a, b, c and 4 more`."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(plain(name, 200) for name in names[:limit]) + more


def file_size(size: int) -> str:
    """Return a number of bytes: `812 bytes`, `3.4 MB`."""
    amount = float(size)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


FORMS: Final = "12:04, 12:04:31, 2026-11-19T12:04, or -10m for ten minutes before the end"
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_SPAN: Final = re.compile(r"-?(?=\d)(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?")


def parse_moment(words: str, first: float, last: float) -> float:
    """Return a time between `first` and `last`, in seconds since 1970. Raise UsageError for other text and times.

    A time of day refers to the day of `last`, or to the day before if it would be later than `last`.
    """
    words = words.strip()
    at = _moment(words, last)
    if at is None:
        raise UsageError(f"invalid time: {words!r}", f"use {FORMS}")
    if at > last:
        raise UsageError(f"{words} is after the last event, at {_clock(last)}")
    if at < first:
        hint = f"the last event is at {_clock(last)}"
        raise UsageError(f"{words} is before the first event, at {_clock(first)}", hint)
    return at


def _moment(words: str, last: float) -> float | None:
    """Return the time, at most `last` if it is in the same second or minute; None if the text is invalid."""
    try:
        if (found := _CLOCK.fullmatch(words)) is not None:
            hour, minute, second = (int(word or 0) for word in found.groups())
            day = datetime.fromtimestamp(last).replace(hour=hour, minute=minute, second=second, microsecond=0)
            day = day if day.timestamp() <= last else day - timedelta(days=1)
            return _to_end(day, last, has_seconds=found[3] is not None)
        if (found := _SPAN.fullmatch(words)) is not None:
            days, hours, minutes, seconds = (int(word or 0) for word in found.groups())
            span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
            return last - span.total_seconds()
        if len(words) >= len("2026-11-19"):
            return _to_end(datetime.fromisoformat(words), last, has_seconds=words.count(":") > 1)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _to_end(moment: datetime, last: float, *, has_seconds: bool) -> float:
    begin = moment.timestamp()
    if begin > last:
        return begin
    # 12:04:31 includes all events until 12:04:31.999; 12:04 is the start of that minute.
    return min(last, begin + 0.999) if has_seconds else begin


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")


BAR_WIDTH: Final = 30


@dataclass(frozen=True, slots=True)
class Progress:
    """A step of an operation, and how much of it is done."""

    doing: str
    """The step, such as `without #3` or `measuring`."""
    done: int = 0
    total: int = 0
    """0 if unknown."""
    noun: str = ""
    """The counted items, such as `tests` or `runs`."""
    seconds_left: float | None = None
    whole: float | None = None
    """The share of the whole operation that is done, from 0 to 1, if this is one of several steps."""

    @property
    def part(self) -> float | None:
        """The share that is done, from 0 to 1; None if unknown."""
        if self.whole is not None:
            return min(1.0, max(0.0, self.whole))
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def numbers(self) -> str:
        """`4 of 12 tests, ~30s left`; "" if unknown."""
        counts = f"{self.done:,} of {self.total:,} {self.noun}".rstrip() if self.total else ""
        left = f"~{duration(self.seconds_left)} left" if self.seconds_left is not None else ""
        return ", ".join(filter(None, (counts, left)))

    @property
    def words(self) -> str:
        return ": ".join(filter(None, (self.doing, self.numbers)))


def seconds_left(done: float, total: float, seconds: float) -> float | None:
    """Return an estimate of the remaining seconds at a constant rate; None while nothing is done."""
    return seconds / done * max(0.0, total - done) if done > 0 else None


def bar(part: float, width: int = BAR_WIDTH) -> tuple[str, str]:
    """Return the filled and the empty part of a progress bar."""
    done = int(width * min(1.0, max(0.0, part)))
    return "━" * done, "─" * (width - done)

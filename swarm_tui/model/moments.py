"""Moments in the past as people write them: `12:04`, `12:04:31`, `2026-11-19T12:04`, `-10m`."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final

FORMS: Final = "12:04, 12:04:31, 2026-11-19T12:04, or -10m for ten minutes before the last"
_CLOCK: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_SPAN: Final = re.compile(r"-?(?=\d)(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?")


def parse_moment(words: str, first: float, last: float) -> float:
    """Return the time that is meant, between the first and the last that there is, in seconds since 1970.

    A clock's time is that of the last day on which it is not later than the last. Raise ValueError with a sentence.
    """
    words = words.strip()
    at = _moment(words, last)
    if at is None:
        raise ValueError(f"{words!r} is no time: write {FORMS}")
    if at > last:
        raise ValueError(f"{words} has not come yet: {_until(last)}")
    if at < first:
        raise ValueError(f"{words} is before the sweep: it began at {_clock(first)}, {_until(last)}")
    return at


def _moment(words: str, last: float) -> float | None:
    """Return the end of the second or minute that is named, no later than the last where it is that of the last."""
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
    # 12:04:31 shows what had happened by 12:04:31.999; 12:04 what had happened when the clock turned to it.
    return min(last, begin + 0.999) if has_seconds else begin


def _until(last: float) -> str:
    return f"the last that is known of it is of {_clock(last)}"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M:%S")

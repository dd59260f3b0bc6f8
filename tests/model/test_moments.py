"""Parsing points in time."""

from datetime import datetime

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.model.formatting import parse_moment

LAST = datetime(2026, 11, 19, 12, 30, 15).timestamp()
FIRST = datetime(2026, 11, 18, 22, 0, 0).timestamp()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("12:04", datetime(2026, 11, 19, 12, 4)),
        ("12:04:31", datetime(2026, 11, 19, 12, 4, 31, 999_000)),
        ("23:10", datetime(2026, 11, 18, 23, 10)),
        ("9:05", datetime(2026, 11, 19, 9, 5)),
        ("2026-11-19T12:04", datetime(2026, 11, 19, 12, 4)),
        ("2026-11-19 12:04:31", datetime(2026, 11, 19, 12, 4, 31, 999_000)),
        ("-10m", datetime(2026, 11, 19, 12, 20, 15)),
        ("10m", datetime(2026, 11, 19, 12, 20, 15)),
        ("-1h30m", datetime(2026, 11, 19, 11, 0, 15)),
        ("-90s", datetime(2026, 11, 19, 12, 28, 45)),
        ("12:30:15", datetime(2026, 11, 19, 12, 30, 15)),
    ],
)
def test_time_of_day_refers_to_last_day(words: str, meant: datetime) -> None:
    assert parse_moment(words, FIRST, LAST) == pytest.approx(meant.timestamp())


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        *((words, "invalid time") for words in ("yesterday", "25:00", "12:61", "", "-", "2026-13-01T12:00", "1")),
        ("-99999999h", "invalid time"),
        ("2026-11-19T12:31", "is after the last event"),
        ("2027-01-01", "is after the last event"),
        ("-2d", "is before the first event"),
        ("13:00", "is before the first event"),
        ("2026-11-18T21:59", "is before the first event"),
    ],
)
def test_invalid_time_raises_error(words: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        parse_moment(words, FIRST, LAST)

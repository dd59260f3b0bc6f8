"""Times as people write them."""

from datetime import datetime

import pytest

from swarm_tui.model.moments import parse_moment

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
def test_a_time_is_that_of_the_last_day_on_which_it_was(words: str, meant: datetime) -> None:
    assert parse_moment(words, FIRST, LAST) == pytest.approx(meant.timestamp())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("yesterday", "is no time"), ("25:00", "is no time"), ("12:61", "is no time"), ("", "is no time"),
        ("-", "is no time"), ("2026-13-01T12:00", "is no time"), ("1", "is no time"), ("-99999999h", "is no time"),
        ("2026-11-19T12:31", "has not come yet"), ("2027-01-01", "has not come yet"),
        ("-2d", "is before the sweep"), ("13:00", "is before the sweep"), ("2026-11-18T21:59", "is before the sweep"),
    ],
)  # fmt: skip
def test_any_other_words_are_refused_with_what_is_wrong(words: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_moment(words, FIRST, LAST)

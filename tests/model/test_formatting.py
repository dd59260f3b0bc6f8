"""Formatting of times, money, counts and sizes."""

from swarm_tui.model.formatting import age, clock, counted, duration, file_size, money


def test_format_times_money_and_counts() -> None:
    assert [duration(seconds) for seconds in (0, 59, 372, 7500, 277_200)] == ["0s", "59s", "6m12s", "2h05m", "3d05h"]
    assert [age(seconds) for seconds in (0, 12, 130, 7300, 200_000)] == [
        "now",
        "12 s ago",
        "2 min ago",
        "2 h ago",
        "2 d ago",
    ]
    assert [clock(seconds) for seconds in (5, 761, 3761)] == ["00:05", "12:41", "1:02:41"]
    assert [money(dollars) for dollars in (None, 3.424, 1234.5)] == ["?", "$3.42", "$1,234"]
    assert [counted(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]
    assert [file_size(size) for size in (812, 3_400_000, 2_000_000_000_000)] == ["812 bytes", "3.4 MB", "2000.0 GB"]

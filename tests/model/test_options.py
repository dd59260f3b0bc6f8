"""The options of a sweep: their parsers and the range of each number."""

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.model.options import OPTIONS, RunOptions, check_options, parse_duration, parse_label


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0)])
def test_parse_duration_returns_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "1d", "1 h", "h", "1h30m"])
def test_parse_duration_rejects_other_text(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_duration(text)
    assert refused.value.report == f"invalid duration: {text!r}\nhint: use 90s, 30m or 2h"


def test_parse_label_splits_at_first_equals_sign() -> None:
    assert parse_label("team=a=b") == ("team", "a=b")
    assert parse_label("team=") == ("team", "")
    for text in ("team", "=a", ""):
        with pytest.raises(UsageError, match=f"invalid label: {text!r}"):
            parse_label(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (RunOptions(slots=0), "invalid value for --slots: 0 (use 1 or more)"),
        (RunOptions(timeout=0.0), "invalid value for --timeout: 0 (use a time above 0, such as 30m)"),
        (RunOptions(wait_timeout=-1.5), "invalid value for --wait-timeout: -1.5"),
        (RunOptions(speed=0.0), "invalid value for --speed: 0 (use a number above 0; 10 is ten times as fast)"),
        (RunOptions(speed=1.1e6), "invalid value for --speed: 1.1e+06"),
        (RunOptions(budget=-3.0), "invalid value for --budget: -3 (use dollars, from 0.01 to 1,000,000)"),
        (RunOptions(budget=float("nan")), "invalid value for --budget: nan"),
        (RunOptions(budget=float("inf")), "invalid value for --budget: inf"),
        (RunOptions(budget_each=1e7), "invalid value for --budget-each: 1e+07"),
        (RunOptions(budget_each=0.001), "invalid value for --budget-each: 0.001"),
        (RunOptions(speed=float("nan")), "invalid value for --speed: nan"),
    ],
)
def test_number_out_of_range_is_a_usage_error(options: RunOptions, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_options(options)
    assert str(refused.value).startswith(message)


def test_numbers_at_the_limits_are_accepted() -> None:
    check_options(RunOptions())
    check_options(RunOptions(slots=1, timeout=0.1, wait_timeout=0.1, speed=1e6))


def test_flags_are_unique() -> None:
    names = [option.flag.name for option in OPTIONS]
    assert len(names) == len(set(names)) > 20

"""The options of a sweep: what their words mean, and which numbers are refused."""

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.model.options import OPTIONS, RunOptions, check_options, parse_duration, parse_label


@pytest.mark.parametrize(("text", "seconds"), [("90", 90.0), ("90s", 90.0), ("1.5m", 90.0), ("2h", 7200.0)])
def test_times_are_written_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "1d", "1 h", "h", "1h30m"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no time: 90s, 30m and 2h are"):
        parse_duration(text)


def test_a_label_is_split_at_its_first_sign() -> None:
    assert parse_label("team=a=b") == ("team", "a=b")
    assert parse_label("team=") == ("team", "")
    for text in ("team", "=a", ""):
        with pytest.raises(UsageError, match=f"--label {text} is no label"):
            parse_label(text)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (RunOptions(slots=0), "--slots 0 would let no agent work: give 1 or more"),
        (RunOptions(timeout=0.0), "--timeout 0 is no time to work in: give a time above 0, such as 30m"),
        (RunOptions(wait_timeout=-1.5), "--wait-timeout -1.5 is no time to work in"),
        (RunOptions(speed=0.0), "--speed 0 is no speed: give a number above 0; 10 is ten times as fast"),
        (RunOptions(speed=1.1e6), "--speed 1.1e+06 is no speed"),
        (RunOptions(budget=-3.0), "--budget -3 is no budget: give dollars, from 0.01 to 1,000,000"),
        (RunOptions(budget=float("nan")), "--budget nan is no budget"),
        (RunOptions(budget=float("inf")), "--budget inf is no budget"),
        (RunOptions(budget_each=1e7), "--budget-each 1e+07 is no budget"),
        (RunOptions(budget_each=0.001), "--budget-each 0.001 is no budget"),
        (RunOptions(speed=float("nan")), "--speed nan is no speed"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(options: RunOptions, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_options(options)
    assert str(refused.value).startswith(told)


def test_numbers_at_the_edge_are_taken() -> None:
    check_options(RunOptions())
    check_options(RunOptions(slots=1, timeout=0.1, wait_timeout=0.1, speed=1e6))


def test_no_flag_stands_for_two_options() -> None:
    names = [option.flag.name for option in OPTIONS]
    assert len(names) == len(set(names)) > 20

"""What the benchmarks beside other programs rest on: that the watched terminal and the table say what is so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bench.__main__ import BENCHMARKS, LONG, page, section, sections_of
from tests.bench.table import Table
from tests.bench.watched import Program, Replay, WatchedTerminal, key_times, start_times

SLOW_COUNTER = """
import sys, termios, time, tty
tty.setraw(0)
sys.stdout.write("\\x1b[2J\\x1b[Hone\\r\\ntwo\\r\\nthree\\r\\n"); sys.stdout.flush()
time.sleep(1.0)
sys.stdout.write("re\\x1b[1mady\\x1b[m\\r\\n"); sys.stdout.flush()
count = 0
while (key := sys.stdin.read(1)) != "q":
    time.sleep(0.05)
    count += key == "j"
    sys.stdout.write(f"\\x1b[10;1Hcount {count}"); sys.stdout.flush()
"""
COUNTER = Program("counter", [sys.executable, "-c", SLOW_COUNTER], "ready")


def test_a_first_frame_comes_before_what_is_of_use() -> None:
    with WatchedTerminal(COUNTER) as terminal:
        terminal.begin()
        first, ready = start_times(terminal)
    assert 0 < first < ready
    assert ready >= 1.0


def test_a_key_is_timed_until_the_screen_is_another() -> None:
    with WatchedTerminal(COUNTER) as terminal:
        terminal.begin()
        keys = [terminal.press_timed(key) for key in (b"j", b"j", b"-")]
        times = key_times(terminal, keys)
        replay = Replay(terminal)
        replay.to(keys[1].piece)
        assert "count 1" in replay.text
        moment = replay.moment_of("count 2")
    # The last key changes nothing that can be seen, so that there is nothing to time.
    assert [time >= 0.05 for time in times] == [True, True]
    assert moment == keys[1].at + times[1]


def test_memory_and_processor_time_of_children_count_too() -> None:
    words = ["sh", "-c", f'{sys.executable} -c \'x = bytearray(b"1") * 40_000_000; print("ready"); input()\'; :']
    with WatchedTerminal(Program("parent", words, "ready")) as terminal:
        terminal.begin()
        assert terminal.memory_megabytes() > 40
        assert terminal.cpu_seconds() > 0


def test_a_program_that_ends_early_is_told_of() -> None:
    table = Table(("ms",))
    silent = Program("silent", ["true"], "ready")

    def work() -> dict[str, float]:
        with WatchedTerminal(silent) as terminal:
            terminal.begin()
        return {"ms": 1.0}

    table.measure(silent, work)
    table.measure(Program("absent", ["no-such-program"], ""), work)
    assert "silent did not show 'ready'" in table.text()
    assert "absent: not installed" in table.text()


@pytest.mark.parametrize(("other", "ratio"), [(250.0, "x25"), (25.0, "x2.5"), (0.5, "x0.05")])
def test_the_best_round_counts_and_others_are_told_as_multiples_of_the_room(other: float, ratio: str) -> None:
    table = Table(("ms",))
    table.add("other", {"ms": other})
    table.add("room", {"ms": 30.0})
    table.add("room", {"ms": 10.0})
    lines = table.text().splitlines()
    assert lines[1].split()[-1] == ratio
    assert lines[2].split() == ["room", "10.0"]


def test_the_page_of_figures_takes_in_one_benchmark_and_keeps_the_others() -> None:
    old = page(
        {
            "watch": section(
                "python -m tests.bench.watch", "2026-11-19 05:50", "2 cores", "0.5", "120 agents\n## no heading"
            )
        }
    )
    sections = sections_of(old)
    assert list(sections) == ["watch"]
    new = page({**sections, "journal_fold": section("x", "today", "2 cores", "1", "0.2 s"), "unknown": "is gone"})
    assert sections_of(new)["watch"] == sections["watch"]
    assert list(sections_of(new)) == ["watch", "journal_fold"]
    assert page(sections_of(new)) == new


def test_every_benchmark_of_the_command_is_there() -> None:
    modules = [path for path in Path(__file__).parent.glob("[a-z]*.py") if not path.stem.startswith("test_")]
    there = {path.stem for path in modules if '__name__ == "__main__"' in path.read_text()}
    assert set(BENCHMARKS) - there == set()
    assert there - set(BENCHMARKS) == set(LONG)

"""Who waits is told for what, and on a terminal for how long."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.cli.wait_bar import Durations, draw_wait
from tests.terminal import ProgramTerminal

WAIT = """
import asyncio, sys
from pathlib import Path
from swarm_tui.cli.wait_bar import WaitBar
patience = WaitBar("here")
async def work():
    patience.say("collecting the tests")
    await asyncio.to_thread(sys.stdin.readline)
    patience.say("trying them")
    return "done"
print(patience.wait(work()))
"""


@pytest.mark.parametrize(
    ("seconds", "expected", "shown"),
    [
        (12.0, None, "12s"),
        (12.0, 0.2, "12s"),
        (0.0, 60.0, "─" * 30 + "  0s · ~1m00s left"),
        (30.0, 60.0, "━" * 15 + "─" * 15 + "  30s · ~30s left"),
        (60.0, 60.0, "1m00s, last time 1m00s"),
        (90.0, 60.0, "1m30s, last time 1m00s"),
    ],
)
def test_a_wait_is_a_bar_where_it_is_known_how_long_it_takes(
    seconds: float, expected: float | None, shown: str
) -> None:
    assert draw_wait(seconds, expected) == shown


@given(st.floats(0, 1e6), st.floats(1, 1e6))
def test_a_bar_has_the_same_width_at_all_times(seconds: float, expected: float) -> None:
    shown = draw_wait(seconds, expected)
    assert seconds >= expected or shown.count("━") + shown.count("─") == 30


def test_durations_are_kept_and_the_oldest_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "state" / "durations.json"
    for number in range(205):
        Durations(path).keep({f"thing {number}": number + 1.0})
    durations = Durations(path)
    assert (durations.of("thing 3"), durations.of("thing 204")) == (None, 205.0)
    assert len(json.loads(path.read_text())) == 200


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a": "b", "c": [1]}', b"\xff"])
def test_what_cannot_be_read_is_done_without(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "durations.json"
    path.write_bytes(content)
    durations = Durations(path)
    assert durations.of("a") is None
    durations.keep({"a": 3.0})
    assert Durations(path).of("a") == 3.0


def test_a_terminal_shows_how_long_and_the_next_time_how_long_yet(tmp_path: Path) -> None:
    kept = tmp_path / "swarm-tui" / "durations.json"
    for shown in (r"\b\ds\b", "~1h00m left|~59m"):
        with ProgramTerminal([sys.executable, "-c", WAIT], environment={"XDG_STATE_HOME": str(tmp_path)}) as terminal:
            terminal.wait_for("collecting the tests")
            terminal.wait_for(re.compile(shown))
            terminal.press("Enter")
            terminal.wait_for("done")
            terminal.wait_for_end()
        assert json.loads(kept.read_text())["here: collecting the tests"] >= 1
        kept.write_text('{"here: collecting the tests": 3600}')

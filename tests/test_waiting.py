"""Waits end at their time limit and name the condition."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import finally_shown, until

HANG = """
from tests.waiting import time_limit, until

with time_limit(0.5):
    until(lambda: False, "an event that never comes")
"""


def test_wait_past_its_limit_names_the_condition() -> None:
    with pytest.raises(AssertionError, match=r"the end of the sweep\n.*two agents running"):
        until(lambda: False, "the end of the sweep", 0.05, describe=lambda: "two agents running")


def test_hanging_code_fails_with_its_stacks() -> None:
    command = [sys.executable, "-c", HANG]
    finished = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert finished.returncode == 1
    assert "not finished after" in finished.stderr
    assert "Current thread" in finished.stderr


async def test_screen_that_stays_wrong_is_final() -> None:
    shown = iter(["loading", "drawing"])
    assert await finally_shown(lambda: next(shown, "wrong"), "right", still=0.3) == "wrong"
    assert await finally_shown(lambda: "right", "right") == "right"

"""Counting identical calls of an agent that makes no progress."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.agents.summary import CALLS_KEPT, CallRepeats


def counted(*commands: str) -> tuple[str, int]:
    repeats = CallRepeats()
    for number, command in enumerate(commands):
        repeats.add("Bash", {"command": command, "description": f"the {number}th time"})
    return repeats.call, repeats.times


def test_identical_calls_with_other_descriptions_are_counted() -> None:
    assert counted(*["ls"] * 5) == ("Bash ls", 5)


def test_edits_between_test_runs_reset_the_count() -> None:
    commands = [command for number in range(10) for command in (f"sed -i s/{number}/x/ a.py", "pytest a.py")]
    assert counted(*commands)[1] == 1


def test_two_alternating_calls_are_a_loop() -> None:
    assert counted(*["cat a", "cat b"] * 6)[1] >= 5


def test_number_of_stored_calls_is_limited() -> None:
    repeats = CallRepeats()
    for number in range(3 * CALLS_KEPT):
        repeats.add("Read", {"file_path": str(number)})
    assert repeats.times == 1
    assert len(repeats._known) == CALLS_KEPT


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


@given(JSON, JSON)
def test_any_json_call_is_counted(tool: Any, arguments: Any) -> None:
    repeats = CallRepeats()
    for _ in range(3):
        repeats.add(tool, arguments)
    assert repeats.times == 3
    assert "\n" not in repeats.call

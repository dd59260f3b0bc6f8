"""How often the same call is made while nothing new is done."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.agents.call_repeats import CALLS_KEPT, CallRepeats


def counted(*commands: str) -> tuple[str, int]:
    repeats = CallRepeats()
    for number, command in enumerate(commands):
        repeats.add("Bash", {"command": command, "description": f"the {number}th time"})
    return repeats.call, repeats.times


def test_the_same_call_is_counted_whatever_its_description() -> None:
    assert counted(*["ls"] * 5) == ("Bash ls", 5)


def test_work_between_two_runs_of_a_test_is_no_loop() -> None:
    commands = [command for number in range(10) for command in (f"sed -i s/{number}/x/ a.py", "pytest a.py")]
    assert counted(*commands)[1] == 1


def test_two_calls_in_turn_are_a_loop() -> None:
    assert counted(*["cat a", "cat b"] * 6)[1] >= 5


def test_only_so_many_calls_are_kept() -> None:
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
def test_any_call_is_counted(tool: Any, given_to_it: Any) -> None:
    repeats = CallRepeats()
    for _ in range(3):
        repeats.add(tool, given_to_it)
    assert repeats.times == 3
    assert "\n" not in repeats.call

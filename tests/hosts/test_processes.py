"""The state of an agent is derived from its pane, the processes below the pane, and its files."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import pytest

from swarm_tui.adapters.tmux import Pane
from swarm_tui.hosts.processes import decide_state, expected_process, is_at_prompt, parse_processes

PANE = Pane("mngr-a", "agent", False, "bash", 100, 200, 50, "agent-a", True)
PS = """
    1     0 Ss   systemd
  100     1 Ss   bash
  101   100 S+   agent
  102   101 S    sleep
  200     1 S    agent
"""


@pytest.mark.parametrize(
    ("pane", "expected", "is_active", "wanted"),
    [
        (None, "agent", True, ("STOPPED", None)),
        (PANE, "agent", True, ("RUNNING", 101)),
        (PANE, "agent", False, ("WAITING", 101)),
        (PANE, "gone", True, ("DONE", None)),
        (replace(PANE, is_dead=True), "agent", True, ("DONE", None)),
        (replace(PANE, command="vim"), "gone", False, ("REPLACED", None)),
        (replace(PANE, command="2.1.73"), "agent", True, ("RUNNING", 101)),
        (replace(PANE, command="gone"), "gone", False, ("WAITING", None)),
        (replace(PANE, process_id=999), "agent", True, ("STOPPED", None)),
        (replace(PANE, process_id=200, command="agent"), "agent", False, ("WAITING", 200)),
        (replace(PANE, process_id=102, command="x"), "agent", False, ("REPLACED", None)),
    ],
)
def test_state_is_derived_from_processes(
    pane: Pane | None, expected: str, is_active: bool, wanted: tuple[str, int | None]
) -> None:
    assert decide_state(pane, parse_processes(PS), expected, is_active=is_active) == wanted


@pytest.mark.parametrize(
    ("shell", "agent", "has_prompt"),
    [("Ss+  bash", "S", True), ("Ss+  -zsh", "S", True), ("Ss   bash", "S+", False), ("Ss+  agent", "S", False)],
)
def test_shell_in_front_is_at_prompt(shell: str, agent: str, has_prompt: bool) -> None:
    processes = parse_processes(f"100 1 {shell}\n101 100 {agent} agent\n")
    assert is_at_prompt(PANE, processes) is has_prompt
    assert not is_at_prompt(None, processes)
    assert not is_at_prompt(replace(PANE, process_id=999), processes)


def test_zombies_and_process_zero_are_ignored() -> None:
    processes = parse_processes("100 1 Ss bash\n101 100 Z agent <defunct>\n0 100 S odd\nbroken\n7 0 S kthread\n")
    assert decide_state(PANE, processes, "agent", is_active=True) == ("DONE", None)
    assert 0 not in processes.command_of


def test_cycle_of_parents_ends() -> None:
    processes = parse_processes("100 102 S bash\n101 100 S a\n102 101 S b\n")
    assert sorted(processes.descendants(100)) == [101, 102]


def test_expected_process_is_type_or_first_word() -> None:
    assert expected_process("command", "/x/agent one two", {}) == "agent"
    assert expected_process("command", "( /x/agent one ) &", {}) == "agent"
    assert expected_process("command", "", {}) == ""
    assert expected_process("claude", "cd x && long; shell line", {}) == "claude"
    assert expected_process("my-claude", "cd x", {"my-claude": "claude"}) == "claude"


def test_repeated_process_is_one_descendant() -> None:
    processes = parse_processes("100 1 S bash\n101 100 S a\n102 101 S b\n101 102 S a\n")
    assert list(islice(processes.descendants(100), 10)) == [101, 102]

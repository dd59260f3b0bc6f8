"""The local probe: the decision itself, and what it says when it cannot know."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.probe import (
    LocalAgent,
    LocalProbe,
    Probed,
    ProbeFailure,
    decide_state,
    expected_process,
    is_at_prompt,
    parse_processes,
)
from swarm_tui.adapters.tmux import Pane, Tmux
from tests.isolation import IsolatedMngr
from tests.waiting import eventually

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
def test_the_decision(pane: Pane | None, expected: str, is_active: bool, wanted: tuple[str, int | None]) -> None:
    assert decide_state(pane, parse_processes(PS), expected, is_active=is_active) == wanted


@pytest.mark.parametrize(
    ("shell", "agent", "has_prompt"),
    [("Ss+  bash", "S", True), ("Ss+  -zsh", "S", True), ("Ss   bash", "S+", False), ("Ss+  agent", "S", False)],
)
def test_a_shell_in_front_would_take_a_text_for_a_command(shell: str, agent: str, has_prompt: bool) -> None:
    processes = parse_processes(f"100 1 {shell}\n101 100 {agent} agent\n")
    assert is_at_prompt(PANE, processes) is has_prompt
    assert not is_at_prompt(None, processes)
    assert not is_at_prompt(replace(PANE, process_id=999), processes)


def test_zombies_are_not_alive_and_process_zero_is_nobodys_parent() -> None:
    processes = parse_processes("100 1 Ss bash\n101 100 Z agent <defunct>\n0 100 S odd\nbroken\n7 0 S kthread\n")
    assert decide_state(PANE, processes, "agent", is_active=True) == ("DONE", None)
    assert 0 not in processes.command_of


def test_parents_that_form_a_ring_end() -> None:
    processes = parse_processes("100 102 S bash\n101 100 S a\n102 101 S b\n")
    assert sorted(processes.descendants(100)) == [101, 102]


def test_the_expected_process_is_the_types_or_the_commands_first_word() -> None:
    assert expected_process("command", "/x/agent one two", {}) == "agent"
    assert expected_process("command", "( /x/agent one ) &", {}) == "agent"
    assert expected_process("command", "", {}) == ""
    assert expected_process("claude", "cd x && long; shell line", {}) == "claude"
    assert expected_process("my-claude", "cd x", {"my-claude": "claude"}) == "claude"


def make_agent(host_dir: Path, name: str, **changes: Any) -> Path:
    """Make the files of an agent as mngr keeps them."""
    folder = host_dir / "agents" / f"agent-{name}"
    (folder / "activity").mkdir(parents=True)
    record = {"id": f"agent-{name}", "name": name, "type": "command", "command": "/x/agent", "work_dir": "/w"}
    (folder / "data.json").write_text(json.dumps(record | changes))
    return folder


def local_probe(host_dir: Path, **environment: str) -> LocalProbe:
    """Return a probe that asks a tmux place where no server is."""
    (host_dir / "t").mkdir(parents=True)
    return LocalProbe(
        host_dir, "mngr-", Tmux(scrubbed_environment({"TMUX_TMPDIR": str(host_dir / "t"), **environment}))
    )


async def test_without_agents_there_are_none(tmp_path: Path) -> None:
    assert await local_probe(tmp_path / "home").probe() == Probed({})


async def test_without_a_server_all_are_stopped(tmp_path: Path) -> None:
    make_agent(tmp_path, "a", created_branch_name="x/a", labels={"k": "v"})
    probed = await local_probe(tmp_path).probe()
    assert isinstance(probed, Probed)
    agent = probed.agents["a"]
    assert (agent.state, agent.session, agent.branch, agent.labels) == ("STOPPED", "mngr-a", "x/a", {"k": "v"})


async def test_the_wrong_server_is_noticed_and_never_taken_for_stopped_agents(tmp_path: Path) -> None:
    folder = make_agent(tmp_path, "a")
    probe = local_probe(tmp_path)
    (folder / "activity" / "process").write_text(json.dumps({"pane_pid": os.getpid()}))
    failed = await probe.probe()
    assert isinstance(failed, ProbeFailure)
    assert "another tmux server" in failed.reason
    long_ago = time.time() - 60
    os.utime(folder / "activity" / "process", (long_ago, long_ago))
    assert isinstance(await probe.probe(), Probed)


async def test_a_note_about_a_process_that_is_gone_says_nothing(tmp_path: Path) -> None:
    folder = make_agent(tmp_path, "a")
    for note in (json.dumps({"pane_pid": 2**22 + 1}), "broken", "{}", "[]"):
        (folder / "activity" / "process").write_text(note)
        assert isinstance(await LocalProbe(tmp_path, "mngr-", Tmux(os.environ)).probe(), Probed)


async def test_without_ps_or_tmux_it_says_so(tmp_path: Path) -> None:
    make_agent(tmp_path / "home", "a")
    for missing, other in (("ps", "tmux"), ("tmux", "ps")):
        (tmp_path / f"without-{missing}").mkdir()
        real = next(
            p for p in map(Path, ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin")) if (p / other).exists()
        )
        (tmp_path / f"without-{missing}" / other).symlink_to(real / other)
        home = tmp_path / f"home-{missing}"
        make_agent(home, "a")
        failed = await local_probe(home, PATH=str(tmp_path / f"without-{missing}")).probe()
        assert isinstance(failed, ProbeFailure)
        assert failed.reason == f"{missing} is not installed"
        assert failed.hint


async def test_a_ps_that_does_not_understand_us_is_no_answer(tmp_path: Path) -> None:
    make_agent(tmp_path, "a")
    for number, script in enumerate(("exit 1", "echo 1 0 S init", "")):
        folder = tmp_path / f"bin{number}"
        folder.mkdir()
        (folder / "ps").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "ps").chmod(0o755)
        environment = scrubbed_environment({"PATH": f"{folder}:{os.environ['PATH']}", "TMUX_TMPDIR": str(tmp_path)})
        failed = await LocalProbe(tmp_path, "mngr-", Tmux(environment)).probe()
        assert isinstance(failed, ProbeFailure)
        assert "no list of processes" in failed.reason


async def test_a_record_that_is_torn_keeps_its_last_content_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    folder = make_agent(tmp_path, "a")
    probe = local_probe(tmp_path)
    await probe.probe()
    (folder / "data.json").write_text('{"id": "agent-a", "na')
    make_agent(tmp_path, "b")
    (tmp_path / "agents" / "agent-b" / "data.json").write_text("[]")
    (tmp_path / "agents" / "agent-c").mkdir()
    probed = await probe.probe()
    assert isinstance(probed, Probed)
    assert (set(probed.agents), probed.unreadable) == ({"a"}, ("agent-b",))


async def test_a_record_in_which_somebody_wrote_harms_nobody(tmp_path: Path) -> None:
    make_agent(tmp_path, "a", labels=["no", "labels"])
    deep = make_agent(tmp_path, "b")
    (deep / "data.json").write_text("[" * 100_000)
    probed = await local_probe(tmp_path).probe()
    assert isinstance(probed, Probed)
    assert ({name: agent.labels for name, agent in probed.agents.items()}, probed.unreadable) == (
        {"a": {}},
        ("agent-b",),
    )


async def test_a_destroyed_agent_is_gone_from_the_next_probe(tmp_path: Path) -> None:
    folder = make_agent(tmp_path, "a")
    probe = local_probe(tmp_path)
    assert (await probe.probe()) != Probed({})
    (folder / "data.json").unlink()
    assert await probe.probe() == Probed({})


@pytest.mark.slow
async def test_a_live_agent_asked_for_on_another_server_is_a_failed_probe(isolated_mngr: IsolatedMngr) -> None:
    request = CreateRequest(name="elsewhere", command=(str(isolated_mngr.agent),), source=isolated_mngr.repository)
    await isolated_mngr.adapter.create(request)
    other = isolated_mngr.root / "other"
    other.mkdir()
    wrong = Tmux(isolated_mngr.environment | {"TMUX_TMPDIR": str(other)})
    try:
        failed = await LocalProbe(isolated_mngr.host_dir, "mngr-", wrong).probe()
        assert isinstance(failed, ProbeFailure)
        assert str(other) in failed.hint
        right = await LocalProbe(isolated_mngr.host_dir, "mngr-", isolated_mngr.tmux).probe()
        assert isinstance(right, Probed)
        assert right.agents["elsewhere"].state == "WAITING"
    finally:
        await isolated_mngr.adapter.destroy(["elsewhere"])


@pytest.mark.slow
async def test_an_agent_whose_shell_has_its_programs_name_cannot_hear_when_it_has_ended(
    isolated_mngr: IsolatedMngr,
) -> None:
    command = ("bash", str(isolated_mngr.agent))
    await isolated_mngr.adapter.create(CreateRequest(name="a-bash", command=command, source=isolated_mngr.repository))
    probe = LocalProbe(isolated_mngr.host_dir, "mngr-", isolated_mngr.tmux)

    async def probed_agent() -> LocalAgent:
        probed = await probe.probe()
        assert isinstance(probed, Probed)
        return probed.agents["a-bash"]

    async def can_hear() -> bool:
        return (await probed_agent()).can_hear

    async def cannot_hear() -> bool:
        return not (await probed_agent()).can_hear

    try:
        await eventually(can_hear, "the agent to hear")
        await isolated_mngr.adapter.message(["a-bash"], "quit")
        await eventually(cannot_hear, "the agent to hear no more")
        # For mngr it goes on: what is left is a bash too.
        assert (await probed_agent()).state == "WAITING"
    finally:
        await isolated_mngr.adapter.destroy(["a-bash"])

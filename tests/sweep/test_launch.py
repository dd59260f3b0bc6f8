"""What an agent is given: its own copy's modules first, the user's checkout never, and only words that are safe."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from swarm_tui.adapters.mngr_messages import Created, CreateRequest
from swarm_tui.agents.packaged import live_folder, local_package_dir
from swarm_tui.errors import AdapterError, UsageError
from swarm_tui.hosts.preparation import AgentPaths
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.journal.record import TestRecord as Record
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.sweep.agent_context import agent_address, agent_id_of, pulled_ref
from swarm_tui.sweep.copies import task_for
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.launch import create_request, environment_for, launch, prompt_path, write_prompt
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep

SPEC = SweepSpec(
    sweep="20261118-061200",
    repository="/repository",
    base="a" * 40,
    created_at=1.0,
    python="/python",
    mngr=MngrSettings(path="mngr", host_dir="/home/.mngr"),
)
ADDRESS = AgentAddress("a", "agent-1", "mngr-a", "/home/.mngr/agents/agent-1", "/home/.mngr/copies/a-1")
AROUND = AgentPaths(local_package_dir(Path("/sweep")), "/sweep/agents/a", is_root=False)
RECORD = Record(
    "tests/test_a.py::TestB::test_c[x]", agent="swarm-20261118-061200-test-c", branch="b", file="tests/test_a.py"
)


def spec(**changes: Any) -> SweepSpec:
    return dataclasses.replace(SPEC, **changes)


def path_of(given: SweepSpec) -> list[str]:
    return environment_for(given, ADDRESS, AROUND, has_task=True)["PYTHONPATH"].split(os.pathsep)


def test_the_copys_own_modules_come_before_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/repository/lib", "/elsewhere", "", "relative"]))
    assert path_of(spec(import_roots=("src", "."))) == [
        str(live_folder()),
        "/home/.mngr/copies/a-1/src",
        "/home/.mngr/copies/a-1",
        "/home/.mngr/copies/a-1/lib",
        "/elsewhere",
        "relative",
    ]


def test_who_commits_is_told_when_a_shell_can_take_it() -> None:
    told = environment_for(spec(identity=("Ada Lovelace", "ada@example.org")), ADDRESS, AROUND, has_task=True)
    assert (told["GIT_AUTHOR_NAME"], told["GIT_COMMITTER_EMAIL"]) == ("Ada Lovelace", "ada@example.org")
    assert "GIT_AUTHOR_NAME" not in environment_for(spec(identity=("A $(x)", "a@b")), ADDRESS, AROUND, has_task=True)


def test_change_of_equal_length_within_a_second_is_seen_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    module = tmp_path / "program.py"
    environment = os.environ | environment_for(spec(), ADDRESS, AROUND, has_task=True)
    shown = []
    for content in ("SUM = 1 - 1\n", "SUM = 1 + 1\n"):
        module.write_text(content)
        os.utime(module, (1.0, 1.0))
        words = [sys.executable, "-c", "import program; print(program.SUM)"]
        shown.append(subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, check=True).stdout)
    assert shown == [b"0\n", b"2\n"]


def test_the_task_holds_the_command_with_the_options_of_the_sweep() -> None:
    task = task_for(spec(run_options=("-p", "no:randomly")), RECORD)
    assert task.pytest == ("/python", "-m", "pytest", "-p", "no:randomly", "tests/test_a.py::TestB::test_c[x]")
    assert (task.file, task.rest) == ("tests/test_a.py", "TestB::test_c[x]")


def test_ids_tell_sweeps_tests_and_attempts_apart_and_never_change() -> None:
    ids = [
        agent_id_of(given, agent, launch_number)
        for given in (SPEC, spec(repository="/other"), spec(created_at=2.0))
        for agent in ("a", "b")
        for launch_number in (1, 2)
    ]
    assert len(set(ids)) == 12
    assert agent_address(SPEC, "/h", "a", 1) == agent_address(SPEC, "/h", "a", 1)
    assert pulled_ref(SPEC, "swarm/20261118-061200/test-c") == "refs/swarm/20261118-061200/test-c"


def test_task_and_prompt_are_files_and_a_hostile_id_is_only_text_in_them(tmp_path: Path) -> None:
    context = scripted_sweep(
        tmp_path, 1, QuickMngr(tmp_path / "mngr"), agent_type="claude", agent_arguments=("--model", "x")
    )
    hostile = "test_0.py::test_x[$(touch x)\n[/red]\x1b[31m]"
    record = structs.replace(next(context.state.tests()), test=hostile)
    context.state.records[hostile] = record
    request = create_request(context, record, context.address_of(record.agent, 1))
    folder = context.folder.agent(record.agent)
    assert json.loads((folder / "task.json").read_text())["test"] == hostile
    assert "$(touch x)" in (folder / "prompt.md").read_text()
    words = request.arguments()
    command = words[words.index("--") + 1 :]
    assert command[:6] == [
        *("--permission-mode", "default", "--allowedTools", "Bash,Edit,Write,Read,NotebookEdit,Glob,Grep"),
        *("--model", "x"),
    ]
    copy = context.address_of(record.agent, 1).work_dir
    assert f"--message=Read {copy}/.test_output/prompt.md and follow all of it, including the last step." in words
    assert any(word.endswith(" .test_output/") and str(folder / "prompt.md") in word for word in words)
    assert not any("\n" in word or "\x1b" in word for word in words)
    assert [word for word in words if "touch" in word] == ["swarm_test=test_0.py::test_x[$(touch x) [/red]]"]


def test_prompt_reaches_copy_of_folder_with_colon(tmp_path: Path) -> None:
    own, copy = tmp_path / "it's a:b", tmp_path / "copy"
    own.mkdir()
    copy.mkdir()
    write_prompt(own, "Fix it.")
    option, command = AgentPaths(local_package_dir(own), str(own), is_root=False).prompt_words()
    assert option == "--extra-provision-command"
    subprocess.run(["sh", "-c", command], cwd=copy, check=True)
    assert (copy / prompt_path(replace(ADDRESS, work_dir=str(copy)))).read_text() == "Fix it."


async def test_what_takes_long_to_compose_keeps_the_engine_from_nothing_else(tmp_path: Path) -> None:
    prompt = tmp_path / "prompt.md"
    prompt.write_text(
        "{% for _ in range(20) %}{% for number in range(50000) %}{% set square = number * number %}"
        "{% endfor %}{% endfor %}Work."
    )
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1, mngr, agent_type="claude", mapper_prompt=str(prompt))
    launching = asyncio.ensure_future(launch(context, TestJob(next(context.state.tests()).test, context.spec), 1))
    rounds = 0
    while not mngr.agents and not launching.done():
        await asyncio.sleep(0)
        rounds += 1
    await launching
    assert rounds > 100, "everything has waited for the prompt"
    (agent,) = mngr.agents
    assert (context.folder.agent(agent) / "prompt.md").read_text() == "Work."


class MngrAtDialog(QuickMngr):
    """Creates agents whose program stands at a dialog, and says that they are not ready."""

    screen: tuple[str, ...] = ("─" * 40, "Do you want to use this API key?", "❯ No", "Enter to confirm")

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        await super().create(request, timeout)
        self.agents[request.name].screen.extend(self.screen)
        raise AdapterError("mngr create failed: the agent is not ready")


async def test_a_dialog_at_the_start_is_named_with_its_cure_and_met_once(tmp_path: Path) -> None:
    mngr = MngrAtDialog(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1, mngr, agent_type="claude")
    task = TestJob(next(context.state.tests()).test, context.spec)
    with pytest.raises(UsageError, match="Do you want to use this API key") as raised:
        await launch(context, task, 1)
    assert "run `claude` in your checkout" in raised.value.hint
    assert mngr.agents == {}


async def test_an_agent_that_is_late_without_a_dialog_is_another_failure(tmp_path: Path) -> None:
    mngr = MngrAtDialog(tmp_path / "mngr")
    mngr.screen = ("$ claude", "starting")
    context = scripted_sweep(tmp_path, 1, mngr, agent_type="claude")
    with pytest.raises(AdapterError, match="is not ready"):
        await launch(context, TestJob(next(context.state.tests()).test, context.spec), 1)


def test_an_offline_agent_is_a_program_whose_name_mngr_can_find_again(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"), agent_type="offline", setup="make build")
    record = next(context.state.tests())
    request = create_request(context, record, context.address_of(record.agent, 1))
    program = Path(request.command[0])
    assert len(program.name) <= 15
    assert os.access(program, os.X_OK)
    assert program.read_text().startswith("#!/")
    words = request.arguments()
    assert "(make build\n)" in words[words.index("--extra-provision-command") + 1]
    assert request.message is None


async def test_agent_state_folder_is_private(tmp_path: Path) -> None:
    mngr = QuickMngr(tmp_path / "mngr")
    context = scripted_sweep(tmp_path, 1, mngr, agent_type="claude")
    await launch(context, TestJob(next(context.state.tests()).test, context.spec), 1)
    (agent,) = mngr.agents.values()
    assert agent.state_dir.stat().st_mode & 0o777 == 0o700

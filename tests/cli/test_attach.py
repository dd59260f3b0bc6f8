"""`swarm-tui attach`, as a person uses it: real terminals, real tmux, real agents of a real mngr."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.cli.attach import find_integrator
from swarm_tui.errors import UsageError
from swarm_tui.hosts.attach import Attacher, AttachPlan, PreparedAttach
from swarm_tui.hosts.local import LocalHost
from swarm_tui.integrator.events import IntegrationStarted
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import Launched, Queued
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.spec import MngrSettings, SweepSpec
from tests.isolation import IsolatedMngr
from tests.waiting import PATIENCE, until

BACK = "\x02d"
STATUS_LINE = "[mngr-swarm-x-copy]"
"""Who sees this is attached; a tmux client that is told something before it has drawn may miss it."""


def last_seq_of(folder: SweepFolder) -> int:
    return open_sweep(folder).state.last_seq if folder.events.exists() else 0


def write_sweep(repository: Path, mngr: MngrSettings, tests: dict[str, str]) -> SweepFolder:
    """Write a sweep whose tests have the agents named."""
    folder = SweepFolder(create_runs_folder(repository) / "20261118-061200")
    folder.write_spec(
        SweepSpec(sweep=folder.name, repository=str(repository), base="0" * 40, created_at=1.0, mngr=mngr)
    )
    with JournalWriter(folder.events, last_seq=last_seq_of(folder)) as journal:
        for test, agent in tests.items():
            journal.append(Queued(test=test, agent=agent))
            journal.append(Launched(test=test, agent_id=f"agent-{agent}"))
    return folder


class Story:
    """One agent of a sweep, a person at a terminal, and what mngr and tmux really say."""

    def __init__(self, mngr: IsolatedMngr, agent: str) -> None:
        self.mngr = mngr
        self.agent = agent
        self.session = f"mngr-{agent}"
        self.words = [sys.executable, "-m", "swarm_tui", "attach", "test_copy"]

    def attach(self, *more: str, test: str = "test_copy") -> pexpect.spawn[str]:
        environment = self.mngr.environment | {"TERM": "xterm-256color"}
        child = pexpect.spawn(
            self.words[0],
            [*self.words[1:-1], test, *more],
            cwd=str(self.mngr.repository),
            env=environment,
            dimensions=(30, 100),
            encoding="utf-8",
            timeout=PATIENCE,
        )
        child.delaybeforesend = None
        return child

    def tmux(self, *words: str) -> str:
        finished = subprocess.run(["tmux", *words], env=self.mngr.environment, capture_output=True, text=True)
        return finished.stdout.strip()

    @property
    def size(self) -> str:
        return self.tmux("display-message", "-p", "-t", f"={self.session}:agent", "#{window_width}x#{window_height}")

    @property
    def key_table(self) -> str:
        return self.tmux("show-options", "-v", "-t", f"={self.session}:", "key-table")

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", f"={self.session}:agent")

    @property
    def is_alive(self) -> bool:
        listing = asyncio.run(self.mngr.adapter.list_agents())
        return {agent.name: agent.state for agent in listing.agents}.get(self.agent) in ("RUNNING", "WAITING")


@pytest.fixture(scope="module")
def story(isolated_mngr: IsolatedMngr) -> Iterator[Story]:
    agent = "swarm-x-copy"
    request = CreateRequest(
        name=agent, source=isolated_mngr.repository, command=(str(isolated_mngr.agent),), transfer="none"
    )
    asyncio.run(isolated_mngr.adapter.create(request))
    write_sweep(isolated_mngr.repository, isolated_mngr.settings, {"tests/test_a.py::test_copy": agent})
    told = Story(isolated_mngr, agent)
    # A test types faster than any person: tmux must not take that for a paste, in which no key means anything.
    told.tmux("set-option", "-g", "assume-paste-time", "0")
    yield told
    asyncio.run(isolated_mngr.adapter.destroy([agent]))
    shutil.rmtree(isolated_mngr.repository / ".swarm")


@pytest.mark.slow
def test_attach_type_detach_and_all_is_as_it_was(story: Story) -> None:
    size = story.size
    # mngr welcomes a new user by a popup, which would take the keys: it is not there when we attach.
    story.tmux("set-hook", "-t", f"={story.session}:agent", "client-attached[99]", 'display-popup -E "cat"')
    child = story.attach()
    child.expect("to detach: C-b d")
    child.expect_exact(STATUS_LINE)
    assert story.key_table == "swarm"
    until(lambda: story.size == "100x29", "the agent's window at the person's size")
    child.send("hello there\r")
    until(lambda: "heard: hello there" in story.screen, "the agent's answer")
    child.send(BACK)
    child.expect("swarm-x-copy is running")
    child.expect(pexpect.EOF)
    assert child.wait() == 0
    assert (story.size, story.key_table) == (size, "")


@pytest.mark.slow
@pytest.mark.parametrize("is_same_server", [True, False], ids=["on the same server", "on another server"])
def test_from_inside_tmux_it_says_the_keys_that_lead_back_and_keeps_the_deadly_ones_away(
    story: Story, is_same_server: bool
) -> None:
    folder = story.mngr.environment["TMUX_TMPDIR"] if is_same_server else tempfile.mkdtemp(prefix="sw")
    environment = story.mngr.environment | {"TMUX_TMPDIR": folder}

    def outer(*words: str) -> str:
        return subprocess.run(["tmux", *words], env=environment, capture_output=True, text=True).stdout

    command = f"TMUX_TMPDIR={story.mngr.environment['TMUX_TMPDIR']} {' '.join(story.words)}; echo; echo at home; cat"
    where = ["-c", str(story.mngr.repository), "-x", "120", "-y", "40"]
    outer("-f", "/dev/null", "new-session", "-d", "-s", "home", *where, command)
    try:
        outer("set-option", "-g", "assume-paste-time", "0")
        # The outer server's keys act in a client only: this one is the person's real terminal.
        environment["TERM"] = "xterm"
        person = pexpect.spawn("tmux", ["attach", "-t", "=home"], env=environment, dimensions=(40, 120))
        until(lambda: "to detach: C-b C-b d" in outer("capture-pane", "-p", "-t", "=home:"), "the way back")
        until(lambda: STATUS_LINE in outer("capture-pane", "-p", "-t", "=home:"), "the agent's screen")
        person.send("\x11\x14nested\r")
        until(lambda: "heard: " in story.screen and "nested" in story.screen, "the agent's answer")
        person.send("\x02" + BACK)
        until(lambda: "at home" in outer("capture-pane", "-p", "-t", "=home:"), "the way home")
        assert outer("show-options", "-v", "-t", "=home:", "key-table").strip() == ""
        assert story.is_alive
        person.close(force=True)
    finally:
        outer("kill-session", "-t", "=home")
        if not is_same_server:
            outer("kill-server")
            shutil.rmtree(folder)


@pytest.mark.slow
def test_the_agents_own_terminal_is_not_shown_within_itself(story: Story) -> None:
    inside = f"cd {story.mngr.repository}; {' '.join(story.words)}; sleep 100"
    story.tmux("new-window", "-d", "-t", f"={story.session}:", "-n", "inside", inside)
    until(
        lambda: (
            "this is the terminal of the agent itself"
            in story.tmux("capture-pane", "-p", "-J", "-t", f"={story.session}:inside")
        ),
        "the refusal",
    )
    story.tmux("kill-window", "-t", f"={story.session}:inside")


@pytest.mark.slow
def test_an_agent_that_is_stopped_while_somebody_looks_leads_back(story: Story) -> None:
    child = story.attach()
    child.expect_exact(STATUS_LINE)
    asyncio.run(story.mngr.adapter.stop([story.agent]))
    child.expect("swarm-x-copy is stopped")
    child.expect(pexpect.EOF)


@pytest.mark.slow
def test_an_ended_agent_that_is_stopped_meanwhile_is_not_started(story: Story) -> None:
    # The engine's stop came between the look at the agent and the attaching.
    asyncio.run(story.mngr.adapter.stop([story.agent]))
    attacher = Attacher(LocalHost(story.mngr.settings), story.mngr.settings)
    ended = PreparedAttach(AttachPlan(story.agent, story.session, is_there=True, is_ended=True))
    assert attacher.run(ended) != 0
    assert not story.is_alive


@pytest.mark.slow
def test_a_stopped_agent_is_started_only_after_a_question(story: Story) -> None:
    child = story.attach()
    child.expect("runs its command again from the beginning")
    child.expect(r"\[y/n\]")
    child.sendline("n")
    child.expect(pexpect.EOF)
    assert child.wait() == 1
    assert not story.is_alive
    child = story.attach("--start")
    child.expect("to detach: C-b d")
    child.expect_exact(STATUS_LINE)
    assert story.key_table == "swarm"
    child.send(BACK)
    child.expect(pexpect.EOF)
    assert story.is_alive


@pytest.mark.slow
def test_mngrs_own_connect_command_is_honoured(story: Story) -> None:
    asyncio.run(story.mngr.adapter.set_config("connect_command", "echo custom for $MNGR_SESSION_NAME"))
    try:
        child = story.attach()
        child.expect(f"custom for {story.session}")
        child.expect(pexpect.EOF)
        assert child.wait() == 0
    finally:
        unset = [story.mngr.settings.path, "config", "unset", "--scope", "user", "connect_command"]
        subprocess.run(unset, env=story.mngr.environment, cwd=story.mngr.repository, check=True, capture_output=True)


@pytest.mark.slow
def test_an_agent_that_was_destroyed_is_told_of(story: Story) -> None:
    write_sweep(story.mngr.repository, story.mngr.settings, {"tests/test_b.py::test_gone": "swarm-x-gone"})
    child = story.attach(test="test_gone")
    child.expect("swarm-x-gone")
    child.expect(pexpect.EOF)
    assert child.wait() == 1


def test_a_test_is_found_by_id_agent_or_a_part_of_its_own(tmp_path: Path) -> None:
    tests = {"a.py::test_copy": "swarm-1-copy", "a.py::test_copy_all": "swarm-1-copy-all", "b.py::test_x": "swarm-1-x"}
    sweep = open_sweep(write_sweep(tmp_path, MngrSettings(path="mngr"), tests))
    for target in ("a.py::test_copy", "test_copy", "swarm-1-copy"):
        assert sweep.find_test(target).test == "a.py::test_copy"
    assert sweep.find_test("all").test == "a.py::test_copy_all"
    assert sweep.find_test("agent-swarm-1-x").test == "b.py::test_x"
    with pytest.raises(UsageError, match="matches 2 tests"):
        sweep.find_test("copy")
    with pytest.raises(UsageError, match="unknown test or agent"):
        sweep.find_test("y\x1b[31m")


def test_the_integrator_is_found_once_there_is_one(tmp_path: Path) -> None:
    folder = write_sweep(tmp_path, MngrSettings(path="mngr"), {"a.py::test_copy": "swarm-1-copy"})
    with pytest.raises(UsageError, match="is not running yet"):
        find_integrator(open_sweep(folder), "integrator")
    with JournalWriter(folder.events, last_seq=last_seq_of(folder)) as journal:
        journal.append(IntegrationStarted(by="builtin", branches=1))
    found = find_integrator(open_sweep(folder), "integrator")
    assert found is not None
    assert found.agent == f"swarm-{folder.name}-integrator"
    assert find_integrator(open_sweep(folder), "test_copy") is None


def test_a_test_that_is_called_integrator_is_meant_before_the_agent(tmp_path: Path) -> None:
    sweep = open_sweep(write_sweep(tmp_path, MngrSettings(path="mngr"), {"a.py::integrator": "swarm-1-integrator-2"}))
    assert find_integrator(sweep, "integrator") is None
    assert sweep.find_test("integrator").agent == "swarm-1-integrator-2"


def test_without_a_terminal_nothing_is_attached(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, env=environment)
    write_sweep(tmp_path, MngrSettings(path="mngr"), {"a.py::test_copy": "swarm-1-copy"})
    finished = subprocess.run(
        [sys.executable, "-m", "swarm_tui", "attach", "test_copy"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert finished.returncode == 2
    assert "requires a terminal" in finished.stderr

"""User stories in a real terminal, with real agents of a real mngr on a real tmux server."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.journal.folder import SweepFolder
from tests.isolation import IsolatedMngr
from tests.room.agent_sweeps import make_sweep
from tests.sweep.endings import make_endings
from tests.sweep.sweeping import Program, kill_engine, offline
from tests.terminal import ProgramTerminal, Screen
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.slow


class Person:
    """A user's terminal with tmux, and the room inside it."""

    def __init__(self, environment: dict[str, str], folder: str, words: list[str], cwd: Path) -> None:
        self.environment = environment | {"TMUX_TMPDIR": folder, "TERM": "xterm-256color"}
        self.folder = folder
        command = " ".join(words) + "; echo the room is left; cat"
        size = ["-x", "110", "-y", "32"]
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "person", "-c", str(cwd), *size, command)
        # A test types faster than a user. tmux must not treat the keys as a paste.
        self.tmux("set-option", "-g", "assume-paste-time", "0")
        # Keys of the tmux server work only in a client, so start one: the user's terminal.
        attach = ["tmux", "attach-session", "-t", "=person"]
        self.terminal = ProgramTerminal(attach, rows=33, columns=110, environment=self.environment).open()

    def tmux(self, *words: str) -> str:
        return subprocess.run(["tmux", *words], env=self.environment, capture_output=True, text=True).stdout

    def sees(self, words: str, seconds: float = PATIENCE) -> None:
        self.terminal.wait_for(words, seconds)

    def types(self, keys: str) -> None:
        self.terminal.type(keys)

    def leaves(self, *, is_private: bool) -> None:
        self.terminal.hang_up()
        self.tmux("kill-session", "-t", "=person")
        if is_private:
            self.tmux("kill-server")
            shutil.rmtree(self.folder, ignore_errors=True)


class Agents:
    """The agents of a small sweep, as mngr and tmux report them."""

    def __init__(self, mngr: IsolatedMngr) -> None:
        self.mngr = mngr
        self.names = ("one", "two")
        for name in self.names:
            self.create(name)
        self.tmux("set-option", "-g", "assume-paste-time", "0")

    def create(self, name: str) -> None:
        asyncio.run(
            self.mngr.adapter.create(
                CreateRequest(
                    name=f"swarm-x-{name}",
                    source=self.mngr.repository,
                    command=(str(self.mngr.agent),),
                    transfer="none",
                )
            )
        )

    def ensure_alive(self) -> None:
        # For a missing session tmux prints the format without values.
        stopped = [name for name in self.names if self.size(name) == "x"]
        if stopped:
            asyncio.run(self.mngr.adapter.start([f"swarm-x-{name}" for name in stopped]))

    def tmux(self, *words: str) -> str:
        return subprocess.run(
            ["tmux", *words], env=self.mngr.environment, capture_output=True, text=True
        ).stdout.strip()

    def screen(self, name: str) -> str:
        return self.tmux("capture-pane", "-p", "-t", f"=mngr-swarm-x-{name}:agent")

    def size(self, name: str) -> str:
        return self.tmux(
            "display-message", "-p", "-t", f"=mngr-swarm-x-{name}:agent", "#{window_width}x#{window_height}"
        )

    def keys(self, name: str) -> str:
        return self.tmux("show-options", "-v", "-t", f"=mngr-swarm-x-{name}:", "key-table")

    def is_attached(self, name: str) -> bool:
        return bool(self.tmux("list-clients", "-t", f"=mngr-swarm-x-{name}"))

    def ids(self) -> dict[str, str]:
        """Return mngr's ids of the agents by short name."""
        listing = asyncio.run(self.mngr.adapter.list_agents())
        return {agent.name.removeprefix("swarm-x-"): agent.id for agent in listing.agents}

    def state(self, name: str) -> str:
        listing = asyncio.run(self.mngr.adapter.list_agents())
        return {agent.name: agent.state for agent in listing.agents}.get(f"swarm-x-{name}", "GONE")


@pytest.fixture(scope="module")
def agents(isolated_mngr: IsolatedMngr) -> Iterator[Agents]:
    yield (made := Agents(isolated_mngr))
    asyncio.run(isolated_mngr.adapter.destroy([f"swarm-x-{name}" for name in made.names]))


@pytest.fixture
def sweep(agents: Agents, tmp_path: Path) -> SweepFolder:
    agents.ensure_alive()
    return make_sweep(tmp_path, agents.names, agents.mngr.settings, agents.ids()).folder


def room_words(sweep: SweepFolder) -> list[str]:
    return [sys.executable, "-m", "swarm_tui", "open", str(sweep.root)]


@pytest.fixture
def person(request: pytest.FixtureRequest, agents: Agents, sweep: SweepFolder) -> Iterator[Person]:
    """A user whose tmux server is another one than that of the agents, unless the test has a parameter."""
    is_private = getattr(request, "param", "another tmux server") == "another tmux server"
    folder = tempfile.mkdtemp(prefix="sw") if is_private else agents.mngr.environment["TMUX_TMPDIR"]
    at_terminal = Person(agents.mngr.environment, folder, room_words(sweep), sweep.root)
    at_terminal.sees("Tests 2")
    yield at_terminal
    at_terminal.leaves(is_private=is_private)


def to_second_test(person: Person) -> None:
    person.types("G")
    person.sees("test_two")
    person.sees("2 of 2")


def grid_of(screen: Screen) -> list[str]:
    """Return the left panel while the right one shows the second test. Times are removed, because they change."""
    lines = screen.lines[:-1]  # the last line belongs to tmux
    if not any("test_two" in line[66:] for line in lines):
        return []
    return [re.sub(r"\s+(\d+[dhms]\w*(\s+|$))?", " ", line[:66]) for line in lines[2:-1]]


@pytest.mark.parametrize("person", ["another tmux server", "the agent's tmux server"], indirect=True)
def test_detach_returns_to_same_test(person: Person, agents: Agents) -> None:
    to_second_test(person)
    size = agents.size("two")
    before = grid_of(person.terminal.wait_until(lambda screen: bool(grid_of(screen)), "the second test"))
    person.types("a")
    person.sees("press C-b C-b d to return to the room")
    person.sees("C-b C-b d: back to the room  [mngr-swarm-x-two]")
    person.types("a word from the user\r")
    until(lambda: "heard: a word from the user" in agents.screen("two"), "the agent's answer")
    # The user's own tmux handles the first prefix.
    person.types("\x02\x02d")
    person.sees("back from swarm-x-two: it is running")
    person.terminal.wait_until(lambda screen: grid_of(screen) == before, "the grid as it was")
    assert (agents.size("two"), agents.keys("two")) == (size, "")
    assert person.tmux("show-options", "-v", "-t", "=person:", "key-table").strip() == ""


def test_pane_takes_keys_and_restores_window(person: Person, agents: Agents) -> None:
    size = agents.size("one")
    person.types("itypeahead\r")
    person.sees("all keys are sent to the agent")
    person.sees("heard: typeahead")
    until(lambda: agents.is_attached("one"), "a client at the agent's session")
    person.types("typed in place\r")
    person.sees("heard: typed in place")
    person.types("\x11q\r")
    person.sees("all keys are sent to the agent")
    person.types("\x1c")
    person.sees("back from swarm-x-one")
    until(lambda: not agents.is_attached("one"), "the client to leave")
    until(lambda: agents.size("one") == size, "the window to have its size again")
    assert agents.keys("one") == ""
    assert agents.state("one") == "WAITING"


def test_message_is_not_sent_to_stopped_agent(person: Person, agents: Agents) -> None:
    to_second_test(person)
    person.types("m")
    person.sees("Message to 1 agent")
    person.types("work now\r")
    person.sees("sent to 1 agent")
    until(lambda: "heard: work now" in agents.screen("two"), "the message")
    asyncio.run(agents.mngr.adapter.stop(["swarm-x-two"]))
    person.types("m")
    person.sees("Message to 1 agent")
    person.types("are you there\r")
    person.sees("not sent: the agent is stopped")
    assert agents.state("two") == "STOPPED"


def test_stopped_agent_starts_only_after_confirmation(person: Person, agents: Agents) -> None:
    asyncio.run(agents.mngr.adapter.stop(["swarm-x-two"]))
    to_second_test(person)
    person.types("a")
    person.sees("its command runs again, from the beginning")
    person.types("\r")
    person.types("n")
    person.sees("nothing was started")
    assert agents.state("two") == "STOPPED"
    person.types("a")
    person.sees("its command runs again, from the beginning")
    person.types("y")
    person.sees("[mngr-swarm-x-two]")
    person.types("\x02\x02d")
    person.sees("back from swarm-x-two: it is running")


def test_attach_outside_tmux_handles_resize(agents: Agents, sweep: SweepFolder) -> None:
    with ProgramTerminal(room_words(sweep), environment=agents.mngr.environment) as terminal:
        terminal.wait_until(lambda screen: screen.has_list("Tests 2"))
        terminal.press("a")
        terminal.wait_for("press C-b d to return to the room")
        # A tmux client that is detached before it has drawn assumes that its server is dead. A user would see it first.
        terminal.wait_for("[mngr-swarm-x-one]")
        terminal.resize(80, 24)
        until(lambda: agents.size("one") == "80x23", "the agent's window at the new size")
        terminal.press("C-b", "d")
        screen = terminal.wait_for("back from swarm-x-one: it is running")
        assert screen.has_list("Tests 2")
        terminal.press("q")
        assert terminal.wait_for_end() == 0


def test_room_survives_missing_mngr(agents: Agents, tmp_path: Path) -> None:
    settings = structs.replace(agents.mngr.settings, path="/nowhere/mngr")
    folder = make_sweep(tmp_path, ("one", "two"), settings).folder
    place = tempfile.mkdtemp(prefix="sw")
    person = Person(agents.mngr.environment, place, room_words(folder), folder.root)
    try:
        person.sees("Tests 2")
        person.types("a")
        person.sees("cannot start mngr")
        person.types("6")
        person.sees("attaching to swarm-x-one")
    finally:
        person.leaves(is_private=True)
    assert json.loads((folder.spec).read_text())["mngr"]["path"] == "/nowhere/mngr"


def test_answered_agent_continues_and_finishes(isolated_mngr: IsolatedMngr, tmp_path: Path) -> None:
    project = make_endings(tmp_path / "project", ["test_asks"])
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    program.start(
        "run", "--headless", *offline("records", "--speed", "20", "--integrator", "none"), "--", "-k", "test_asks"
    )
    runs = project.root / ".swarm" / "runs"
    until(lambda: runs.is_dir() and any(runs.glob("*/events.jsonl")), "the sweep")
    folder = program.newest()
    place = tempfile.mkdtemp(prefix="sw")
    person = Person(isolated_mngr.environment, place, room_words(folder), folder.root)
    try:
        person.sees("? waiting")
        person.types("m")
        person.sees("Which of the two?")
        person.types("The second.\r")
        person.sees("sending")
        person.sees("✓ clean")
        person.types("t")
        person.sees("The second.")
        person.types("q")
        until(lambda: program.opened().state.ended_why == "finished", "the end of the sweep")
    finally:
        person.leaves(is_private=True)
        kill_engine(folder)
        program.call("clean", "--yes", "--folder")


def test_side_panel_shows_agent_screen(person: Person, agents: Agents) -> None:
    agents.tmux("send-keys", "-t", "=mngr-swarm-x-one:agent", "a word for the side", "Enter")
    person.sees("its screen")
    person.sees("heard: a word for the side")
    assert not agents.is_attached("one")

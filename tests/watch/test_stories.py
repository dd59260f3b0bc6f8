"""Watching agents that the user created with a real mngr."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.mngr_messages import CreateRequest
from tests.isolation import IsolatedMngr, isolate_mngr
from tests.terminal import ProgramTerminal
from tests.waiting import until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


async def make_agents(isolated: IsolatedMngr) -> None:
    """Create two agents with mngr: one in a separate worktree, one in the repository itself."""
    command = (str(isolated.agent),)
    own_copy = CreateRequest(
        name="baker", command=command, source=isolated.repository, transfer="git-worktree", labels={"crew": "night"}
    )
    no_copy = CreateRequest(name="cook", command=command, source=isolated.repository, transfer="none")
    await asyncio.gather(isolated.adapter.create(own_copy), isolated.adapter.create(no_copy))


@pytest.fixture(scope="module")
def agents(mngr_path: str) -> Iterator[IsolatedMngr]:
    """Return a mngr with two agents, isolated from other tests."""
    with isolate_mngr(mngr_path) as isolated:
        asyncio.run(make_agents(isolated))
        yield isolated


def environment_of(isolated: IsolatedMngr, place: Path) -> dict[str, str]:
    return isolated.environment | {
        "SWARM_MNGR": isolated.settings.path,
        "XDG_STATE_HOME": f"{place}/state",
        "XDG_CONFIG_HOME": f"{place}/config",
        "PYTHONPATH": str(ROOT),
    }


def once(isolated: IsolatedMngr, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `swarm-tui watch` with these arguments until it exits."""
    command = [sys.executable, "-m", "swarm_tui", "watch", *words]
    return subprocess.run(
        command, env=environment_of(isolated, place), cwd=isolated.repository, capture_output=True, text=True
    )


def test_user_watches_messages_attaches_and_stops_agents(agents: IsolatedMngr, tmp_path: Path) -> None:
    baker = next(
        folder
        for folder in (agents.host_dir / "agents").iterdir()
        if json.loads((folder / "data.json").read_text())["name"] == "baker"
    )
    work_dir = Path(json.loads((baker / "data.json").read_text())["work_dir"])
    (work_dir / "bread.txt").write_text("rye\n")
    words = [sys.executable, "-m", "swarm_tui", "watch"]
    environment = environment_of(agents, tmp_path)
    with ProgramTerminal(words, environment=environment, folder=agents.repository) as terminal:
        terminal.wait_until(lambda screen: screen.has_list("Agents 2"))
        terminal.wait_for("label crew=night")

        # A message: the agent begins to work, which is seen; and its screen.
        terminal.press("m")
        terminal.wait_for("baker")
        terminal.type("work\r")
        until((baker / "active").exists, "the message")
        terminal.wait_for(re.compile(r"◐ +running +baker"))

        # Changes in a copy that no sweep created.
        terminal.press("d")
        terminal.wait_for("not committed")
        terminal.wait_for("+rye")
        terminal.press("1")

        # Other groups.
        terminal.press("b")
        terminal.wait_for("1 label crew")
        terminal.press("1")
        terminal.wait_for("crew=night 1")
        terminal.wait_for("no label crew 1")

        # Its terminal, and back.
        terminal.press("a")
        terminal.wait_for("back to the room")
        terminal.wait_for("mngr-baker")
        terminal.send(b"\x02d")
        terminal.wait_for("back from baker: it is running")

        # Requests that require a sweep are refused.
        terminal.press("3")
        terminal.wait_for("not available for agents outside a sweep")

        terminal.press("x")
        terminal.wait_for("attaching starts it")
        terminal.press("s")
        terminal.wait_for("Stop 1 agent?")
        terminal.press("y")
        terminal.wait_for(re.compile(r"- +stopped +baker"))
        terminal.press("q")
        assert terminal.wait_for_end() == 0
        assert not terminal.screen.has("Traceback")


def test_watch_once_prints_agents_matching_filters(agents: IsolatedMngr, tmp_path: Path) -> None:
    described = json.loads(once(agents, tmp_path, "--json").stdout)
    assert described["source"] == "watch"
    assert {test["test"]: test["host"] for test in described["tests"]} == {"baker": "local", "cook": "local"}

    lines = once(agents, tmp_path, "--plain", "--include", 'labels.crew == "night"').stdout
    assert "baker" in lines
    assert "cook" not in lines

    wrong = once(agents, tmp_path, "--plain", "--include", "nonsense((")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "Invalid include filter expression" in wrong.stderr
    assert "Traceback" not in wrong.stderr


def test_watch_without_mngr_gives_hint(agents: IsolatedMngr, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "swarm_tui", "watch", "--plain"]
    environment = environment_of(agents, tmp_path) | {"SWARM_MNGR": "/no/mngr"}
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert finished.returncode == 2
    assert finished.stderr.startswith(
        "swarm-tui: SWARM_MNGR is not a program: /no/mngr\nhint: install it into a private environment with `swarm-tui"
    )

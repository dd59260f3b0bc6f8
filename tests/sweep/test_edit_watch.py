"""What the agents have edited is asked of their copies, committed or not, for all of them by one command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from swarm_tui.adapters.processes.run import Finished, run_process
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.journal.events import Queued
from swarm_tui.journal.state import SweepState
from swarm_tui.sweep.agent_context import AgentWatches
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.polls import EditWatch
from tests.git_project import GitProject


class CountingHost:
    """Runs commands on this machine and counts them."""

    def __init__(self) -> None:
        self.commands = 0

    async def run(self, words: Sequence[str], *, timeout: float = 60.0) -> Finished:
        self.commands += 1
        return await run_process(words, timeout=timeout)


async def looked(copies: dict[str, Path], base: str) -> tuple[SweepState, CountingHost]:
    """Look once at copies by test; return the state after it."""
    state, host = SweepState(), CountingHost()
    for test in copies:
        state.apply(Queued(test=test))
    watches = {
        test: SimpleNamespace(address=AgentAddress(test, test, test, "/nowhere", str(copy)))
        for test, copy in copies.items()
    }
    context = SimpleNamespace(state=state, hosts={"local": host}, spec=SimpleNamespace(base=base), record=state.apply)
    watch = EditWatch(cast(SweepContext, context), cast(AgentWatches, SimpleNamespace(watches=watches)))
    async with asyncio.TaskGroup() as group:
        watch.work(group, 1.0)
        watch.work(group, 2.0)
    return state, host


async def test_committed_and_uncommitted_edits_are_seen(tmp_path: Path) -> None:
    origin = GitProject(tmp_path / "origin")
    numbers = [f"{number}\n" for number in range(1, 21)]
    origin.commit("base", {"a b.py": "".join(numbers), "c.py": "x\n"})
    base = origin.git("rev-parse", "HEAD")
    copies = {name: tmp_path / name for name in ("one", "two", "gone")}
    for name in ("one", "two"):
        origin.git("clone", "--quiet", str(origin.root), str(copies[name]))
    numbers[4] = "five\n"
    (copies["one"] / "a b.py").write_text("".join(numbers))
    origin.git("-C", str(copies["one"]), "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qam", "five")
    (copies["two"] / "c.py").write_text("y\n")
    (copies["two"] / "new.py").write_text("")
    (copies["two"] / ".test_output").mkdir()
    (copies["two"] / ".test_output" / "outcome.json").write_text("{}")
    state, host = await looked(copies, base)
    found = {test: record.edits for test, record in state.records.items()}
    assert found == {"one": (("a b.py", 5, 5),), "two": (("c.py", 1, 1), ("new.py", 0, 0)), "gone": ()}
    assert host.commands == 1

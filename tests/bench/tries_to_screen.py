"""How late an agent's try on this machine is on the screen: `python -m tests.bench.tries_to_screen [AGENTS [TRIES]]`.

So many agents make a try a second between them all and more; their files, the engine, the journal and the room are
real, mngr and the agents' processes are not. A try of the agent under the cursor has a message that nothing else has:
the time counts from its line in the agent's file to the closed frame with that message. Before that nothing happens
for some seconds: that is what engine and room cost idle.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from swarm_tui.agents.contract import TRIES_PATH
from swarm_tui.hosts.protocol import AgentAddress, AgentStatus, AgentStatuses
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.append import EngineLock
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.run import RunningSweep
from tests.bench.table import machine
from tests.bench.terminal import BenchTerminal, quantile
from tests.fake_mngr import FakeMngr
from tests.hosts.fake_host import FakeHost
from tests.programs import end_with_parent
from tests.sweep.scripted_sweep import QuickMngr, record_launch, scripted_sweep

ROOT: Final = Path(__file__).parents[2]
IDLE_SECONDS: Final = 10.0
LINES_A_SECOND: Final = 100


class AllAtWork(FakeHost):
    """This machine's files, and agents that are always at work."""

    def __init__(self, mngr: FakeMngr) -> None:
        super().__init__(mngr)
        self.addresses: list[AgentAddress] = []

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        return AgentStatuses({address.agent_id: AgentStatus(address, "RUNNING") for address in self.addresses})


async def run_engine(root: Path, agents: int) -> None:
    """Run an engine whose agents are all at work; print the folder of the sweep and the files of their tries."""
    mngr = QuickMngr(root / "mngr")
    context = scripted_sweep(root, agents, mngr, slots=agents, agent_type="offline")
    host = AllAtWork(mngr)
    context.hosts = Hosts([host])
    lock = EngineLock(context.folder.lock)
    lock.acquire()
    runner, files = RunningSweep(context), []
    for record in list(context.state.tests()):
        address = context.address_of(record.agent, 1)
        host.addresses.append(address)
        tries = Path(address.state_dir) / TRIES_PATH
        tries.parent.mkdir(parents=True)
        tries.touch()
        files.append(str(tries))
        record_launch(context, record, address)
        runner.adopt(TestJob(record.test, context.spec))
    print(json.dumps([str(context.folder.root), files]), flush=True)
    await runner.run(RequestHandler(context, runner))


def cpu_seconds(process: int) -> float:
    """Return the processor time of a process, without its children."""
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Tries:
    """Writes tries as the plugin in an agent's pytest does."""

    def __init__(self, files: list[str]) -> None:
        self._files = files
        self._run = 0

    def write(self, agent: int, failure: str) -> None:
        self._run += 1
        run = str(self._run)
        start = {"kind": "start", "run": run}
        finish = {"kind": "finish", "run": run, "passed": False, "seconds": 0.1, "failure": failure}
        with open(self._files[agent], "a") as file:
            file.write(f"{json.dumps(start)}\n{json.dumps(finish)}\n")

    def beside(self, terminal: BenchTerminal, seconds: float) -> None:
        """Let the other agents work for a while."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self.write(random.randrange(1, len(self._files)), f"assert {random.random()} == 1")
            terminal.read_for(random.expovariate(LINES_A_SECOND / 2))


def measure(folder: str, files: list[str], engine: int, tries: int, place: Path) -> None:
    words = [sys.executable, "-m", "swarm_tui", "open", folder]
    environment = {"XDG_STATE_HOME": str(place / "state"), "XDG_CONFIG_HOME": str(place / "config")}
    writer = Tries(files)
    with BenchTerminal(words, environment=environment, columns=200, rows=60) as terminal:
        terminal.seconds_until(f" of {len(files):,} ".encode())
        terminal.read_for(3.0)
        before, started = (cpu_seconds(engine), terminal.cpu_seconds()), time.perf_counter()
        terminal.read_for(IDLE_SECONDS)
        after, seconds = (cpu_seconds(engine), terminal.cpu_seconds()), time.perf_counter() - started
        idle = [100 * (late - early) / seconds for early, late in zip(before, after, strict=True)]
        print(f"idle: engine {idle[0]:.2f} % of a core, room {idle[1]:.2f} %", flush=True)
        late = []
        before, started = (cpu_seconds(engine), terminal.cpu_seconds()), time.perf_counter()
        for number in range(tries):
            writer.beside(terminal, random.uniform(0.1, 0.3))
            terminal.forget()
            message = f"seen-{number:04}"
            writer.write(0, f"AssertionError: {message}")
            late.append(1000 * terminal.seconds_until(message.encode()))
        after, seconds = (cpu_seconds(engine), terminal.cpu_seconds()), time.perf_counter() - started
        busy = [100 * (late - early) / seconds for early, late in zip(before, after, strict=True)]
        shown = "  ".join(
            f"{name} {quantile(late, part):.0f}" for name, part in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
        )
        print(f"{len(files)} agents, {LINES_A_SECOND} lines a second: a try is on the screen after {shown} ms")
        print(f"meanwhile: engine {busy[0]:.1f} % of a core, room {busy[1]:.1f} %; {machine()}")


def main() -> None:
    if sys.argv[1:2] == ["--engine"]:
        asyncio.run(run_engine(Path(sys.argv[2]), int(sys.argv[3])))
        return
    agents, tries = (int(word) for word in (*sys.argv[1:], *("100", "150")[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory(prefix="swarm-bench-") as place:
        words = [sys.executable, "-m", "tests.bench.tries_to_screen", "--engine", place, str(agents)]
        engine = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, preexec_fn=end_with_parent)
        try:
            assert engine.stdout is not None
            folder, files = json.loads(engine.stdout.readline())
            measure(folder, files, engine.pid, tries, Path(place))
        finally:
            engine.terminate()
            engine.wait()


if __name__ == "__main__":
    os.chdir(ROOT)
    main()

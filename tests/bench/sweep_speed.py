"""How long a sweep takes beside a bare script that creates the same agents, and what its engine costs.

    python -m tests.bench.sweep_speed --agents 24 --slots 6 --python VENV/bin/python

A venv that holds pytest alone shows most: every plugin makes each of the agents' runs slower.
Each agent runs pytest three times, thinks for two seconds (a part of it while it edits), commits and hands in its work.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from pathlib import Path

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.journal.append import JournalWriter, engine_process_id
from swarm_tui.journal.events import Pulled
from swarm_tui.journal.recover import recover_journal
from swarm_tui.journal.state import SweepState
from swarm_tui.model.options import RunOptions
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.engine import make_context
from swarm_tui.sweep.launch import create_request
from swarm_tui.sweep.order import begin_sweep, prepare_sweep
from swarm_tui.sweep.slots import CREATES_AT_ONCE
from tests.attacks.real_kills import isolated
from tests.git_project import GitProject
from tests.sweep.sweeping import Program
from tests.waiting import until

STEPS = (
    '[[step]]\nrun = "first"\n[[step]]\nsleep = 0.8\n[[step]]\nrun = "second"\n'
    '[[step]]\nwrite = "done.txt"\ntext = "done"\n[[step]]\nrun = "third"\n'
    '[[step]]\ncommit = "IMPROVE_TEST"\nmessage = "Done"\n'
)


def make_project(root: Path, agents: int) -> GitProject:
    """Make a project with so many tests and a record for each."""
    project = GitProject(root / "project")
    tests = "\n".join(f"def test_{number}(): pass" for number in range(agents))
    project.commit("Begin", {"test_all.py": tests, ".gitignore": "/records/\n.test_output/\n__pycache__/\n"})
    for number in range(agents):
        project.write({f"records/{number}.toml": f"test = {json.dumps(f'test_all.py::test_{number}')}\n{STEPS}"})
    return project


def by_swarm(
    root: Path, environment: dict[str, str], agents: int, slots: int, python: str
) -> tuple[float, float, float]:
    """Return the seconds to the last pull, the engine's CPU share, and the slowest way from archive to journal."""
    project = make_project(root, agents)
    program = Program(project.root, environment)
    words = ["--agent", "offline", "--records", "records", "--python", python, "--slots", str(slots)]
    started = program.start("run", "--headless", "--integrator", "none", *words)
    runs = project.root / ".swarm" / "runs"
    until(lambda: runs.is_dir() and any(runs.glob("*/engine.lock")), "the engine")
    process_id = until(lambda: engine_process_id(program.newest().lock) or 0, "the engine")
    begun, used = time.time(), 0.0
    while started.poll() is None:
        used = _cpu_of(process_id) or used
        time.sleep(0.2)
    events = recover_journal(program.newest().events).events
    first = next(event.at for event in events if event.type == "engine_started")
    pulled = {event.test: event.at for event in events if isinstance(event, Pulled)}
    records = program.opened().state.records
    delays = [at - (Path(records[test].state_dir) / ARCHIVE_PATH).stat().st_mtime for test, at in pulled.items()]
    return max(pulled.values()) - first, used / (time.time() - begun), max(delays)


def by_script(root: Path, environment: dict[str, str], agents: int, slots: int, python: str) -> float:
    """Return the seconds that a bare script takes: the same creates, slots and waits, and a fetch at the end."""
    project = make_project(root, agents)
    os.environ |= environment
    options = RunOptions(
        agent_type="offline",
        records=str(project.root / "records"),
        python=python,
        slots=slots,
        integrator="none",
    )
    folder = begin_sweep(*asyncio.run(prepare_sweep(options, project.root, lambda _: None)))
    state = SweepState().apply_all(recover_journal(folder.events).events)
    with JournalWriter(folder.events, last_seq=state.last_seq, last_at=state.last_at) as writer:
        context = make_context(folder, folder.read_spec(), writer, state)
        return asyncio.run(_script(context, slots))


async def _script(context: SweepContext, slots: int) -> float:
    started = time.monotonic()
    free, creating = asyncio.Semaphore(slots), asyncio.Semaphore(CREATES_AT_ONCE)
    mngr, repository = context.mngr, Repository.open(Path(context.spec.repository))
    assert isinstance(mngr, Mngr)

    async def one(test: str) -> None:
        record = context.state.records[test]
        address = context.address_of(record.agent, 1)
        async with free:
            async with creating:
                await mngr.create(create_request(context, record, address))
            while not (Path(address.state_dir) / ARCHIVE_PATH).exists():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            fetch = ("fetch", "--quiet", address.work_dir, f"+{record.branch}:refs/script/{record.branch}")
            await asyncio.to_thread(repository.run, *fetch)

    await asyncio.gather(*(one(test) for test in list(context.state.records)))
    return time.monotonic() - started


def _cpu_of(process_id: int) -> float:
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure both and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=24)
    parser.add_argument("--slots", type=int, default=6)
    parser.add_argument("--python", default=sys.executable)
    arguments = parser.parse_args()
    mngr = asyncio.run(find_mngr()).path
    with isolated(mngr) as (root, environment, _):
        script = by_script(root, environment, arguments.agents, arguments.slots, arguments.python)
    with isolated(mngr) as (root, environment, _):
        sweep, share, delay = by_swarm(root, environment, arguments.agents, arguments.slots, arguments.python)
    load = os.getloadavg()[0]
    print(f"{arguments.agents} agents, {arguments.slots} slots, load {load:.1f}")
    print(f"bare script   {script:6.1f} s")
    print(f"sweep         {sweep:6.1f} s to the last pull ({100 * (sweep / script - 1):+.0f} %)")
    print(f"engine        {100 * share:6.1f} % of a core")
    print(f"pull       {delay:6.2f} s after its archive at most")


if __name__ == "__main__":
    main()

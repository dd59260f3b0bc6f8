"""What a sweep on many hosts costs, without machines: journal, fold, snapshot, engine and room.

    python -m tests.bench.many_hosts                    100 agents on 4 hosts, 1,000 on 50, 10,000 on 500
    python -m tests.bench.many_hosts --sizes 2000x100   another size
    python -m tests.bench.many_hosts --parts journal engine

The sweeps are those of `swarm-tui simulate`, in which every agent works at once. The engine is the real one: its loop,
its watches and its journal, over hosts whose connections are replaced by what they would have said: of each agent a
line every nine seconds, and of each host its terminals and processes every second.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from swarm_tui.hosts.lines import HostTally
from swarm_tui.hosts.link import SshLink
from swarm_tui.hosts.mirror import FollowedFile, SearchedFolder
from swarm_tui.hosts.registry import Hosts
from swarm_tui.hosts.ssh import SshHost
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.snapshot import read_snapshot, write_snapshot
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import AgentOutput
from swarm_tui.model.spec import HostSettings, MngrSettings
from swarm_tui.room.store import SweepConclusions
from swarm_tui.simulate.feeder import main as feed
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.run import RunningSweep
from tests.bench.room_latency import measure_room, print_measured
from tests.sweep.scripted_sweep import QuickMngr, record_launch, scripted_sweep

SIZES = ("100x4", "1000x50", "10000x500")
PARTS = ("journal", "engine", "room")
TRANSCRIPT = "events/offline/common_transcript/events.jsonl"
LINE_EVERY = 9.0
ENGINE_SECONDS = 8.0
SMALLEST_GRID = 1_000
"""On a smaller one the keys that are measured meet its edges."""


def measure_journal(agents: int, hosts: int, root: Path) -> None:
    """Print what the journal of a whole sweep costs: to be written, folded, kept as a snapshot, counted by hosts."""
    folder = SweepFolder(root / f"journal-{agents}")
    words = ["--tests", str(agents), "--slots", str(agents), "--hosts", str(hosts), "--ahead", "1"]
    feed([str(folder.root), *words, "--seconds", "0"])
    size = folder.events.stat().st_size
    events = EventFollower(folder.events).read().events
    span = events[-1].at - events[0].at
    fold = _seconds(lambda: SweepState().apply_all(events))
    state = SweepState().apply_all(events)
    read = _seconds(lambda: EventFollower(folder.events).read())
    written = _seconds(lambda: write_snapshot(folder.snapshot, folder.events, size, state))
    restored = _seconds(lambda: read_snapshot(folder.snapshot, folder.events))
    insights, spec = SweepConclusions(), folder.read_spec()
    counted = _seconds(lambda: insights.update(state.tests()))
    tally: HostTally = insights.hosts
    lines = _seconds(lambda: tally.lines(spec, state.hosts))
    with JournalWriter(root / f"again-{agents}.jsonl") as writer:
        line = AgentOutput(test="tests/e2e/test_copy.py::test_copy", line="Reading the test to see what it asserts")
        appended = _seconds(lambda: [writer.append(line) for _ in range(5_000)]) / 5_000
    print(
        f"  journal  {len(events):9,} events, {size / 1e6:6.1f} MB, {len(events) / max(span, 1):6,.0f} a second;"
        f" one is written in {1e6 * appended:.0f} µs\n"
        f"  fold     read {read:5.2f} s, folded {fold:5.2f} s; snapshot {folder.snapshot.stat().st_size / 1e6:.1f} MB,"
        f" written {written:5.2f} s, read {restored:5.2f} s\n"
        f"  hosts    counted {1e3 * counted:6.1f} ms, their lines {1e3 * lines:6.1f} ms",
        flush=True,
    )


class SilentLink(SshLink):
    """A connection whose other end is only imagined."""

    def __init__(self, access: HostSettings) -> None:
        super().__init__(access)
        self.is_there, self.processors, self.load = True, 8, 1.0
        self._chance = random.Random(access.name)

    def open(self) -> None:
        """Connect to nothing."""

    def watch(self) -> None:
        self.heard_at = time.time()
        self.mirror.requests()

    def say(self, part: float, probe: dict[str, Any] | None) -> None:
        """Let a part of the followed files grow, and terminals and processes be told."""
        followed = list(self.mirror._by_key.values())
        found = {each.key: [[TRANSCRIPT, 1, 0.0]] for each in followed if isinstance(each, SearchedFolder)}
        files = [each for each in followed if isinstance(each, FollowedFile) and each.path.endswith(TRANSCRIPT)]
        count = int(self._chance.random() + len(files) * part)
        line = b'{"source": "agent", "message": "I will look at the fixture, which others use %d"}\n'
        news = {}
        for each in self._chance.sample(files, min(count, len(files))):
            content = line % self._chance.randrange(1000)
            news[each.key] = [each.end + len(content), each.end, base64.b64encode(content).decode()]
        self.mirror.take({"t": "news", "files": news})
        self.mirror.take({"t": "found", "folders": found})
        if probe is not None:
            self.mirror.take({"t": "probe", **probe})


class NoRequests(RequestHandler):
    """Nobody asks the engine for anything; its rounds are counted."""

    rounds = 0

    def carry_out_new(self, group: asyncio.TaskGroup) -> None:
        self.rounds += 1


async def _run_engine(agents: int, hosts: int, root: Path) -> None:
    per_host = -(-agents // hosts)
    names = [f"box{number + 1}" for number in range(hosts)]
    access = tuple(HostSettings(name=name, provider=name, address=name, host_dir="/far") for name in names)
    mngr = QuickMngr(root / f"mngr-{agents}")
    wishes = {"slots": agents, "per_host": per_host, "hosts": names, "access": access, "agent_type": "offline"}
    context = scripted_sweep(root / f"engine-{agents}", agents, mngr, **wishes)
    settings = MngrSettings(path="mngr", host_dir=str(mngr.root))
    links = {each.name: SilentLink(each) for each in access}
    remote = [SshHost(each, settings, None, links[each.name]) for each in access]
    context.hosts = Hosts([context.hosts.local, *remote])
    runner = RunningSweep(context)
    probes = {name: _empty_probe() for name in names}
    for number, record in enumerate(list(context.state.tests())):
        address = context.address_of(record.agent, 1, names[number % hosts])
        record_launch(context, record, address)
        runner.adopt(TestJob(record.test, context.spec))
        _add_agent(probes[address.host], address.agent_id, record.agent, address.work_dir)
    inbox = NoRequests(context, runner)
    talking = asyncio.ensure_future(_talk(links, probes))
    used, began, written = time.process_time(), time.monotonic(), context.folder.events.stat().st_size
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(ENGINE_SECONDS):
            await runner.run(inbox)
    seconds, used = time.monotonic() - began, time.process_time() - used
    talking.cancel()
    grown = context.folder.events.stat().st_size - written
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"  engine   a round takes {1000 * used / inbox.rounds:6.1f} ms of a core, one each"
        f" {1000 * seconds / inbox.rounds:4.0f} ms; {grown / seconds / 1000:.0f} kB of journal a second,"
        f" {memory:.0f} MB",
        flush=True,
    )


def _empty_probe() -> dict[str, Any]:
    return {"agents": {}, "unreadable": [], "panes_code": 0, "panes_error": "", "panes": [], "processes": []}


def _add_agent(probe: dict[str, Any], agent_id: str, name: str, work_dir: str) -> None:
    process = 1000 + 10 * len(probe["agents"])
    record = {"id": agent_id, "name": name, "type": "command", "command": "worker", "work_dir": work_dir}
    probe["agents"][agent_id] = [record, True]
    probe["panes"].append(f"0:{process}:80:24:%{process}:%{process}:{agent_id}:mngr-{name}:5:agent:worker")
    probe["processes"] += [f"{process} 1 Ss bash", f"{process + 1} {process} S+ worker"]


async def _talk(links: dict[str, SilentLink], probes: dict[str, dict[str, Any]]) -> None:
    """Let all hosts say what they would, ten times a second."""
    told = {
        name: probe
        | {"panes": base64.b64encode("\n".join(probe["panes"]).encode()).decode()}
        | {"processes": "\n".join(probe["processes"])}
        for name, probe in probes.items()
    }
    turn = 0
    while True:
        turn += 1
        for name, link in links.items():
            link.say(0.1 / LINE_EVERY, told[name] if turn % 10 == 1 else None)
        await asyncio.sleep(0.1)


def measure_room_on_hosts(agents: int, hosts: int, root: Path) -> None:
    """Print what the room costs on a live sweep: still, and at as many events a second as the agents make."""
    for rate in (0.0, round(agents / LINE_EVERY * 1.3)):
        more = ("--hosts", str(hosts), "--slots", str(agents))
        print_measured(measure_room(agents, rate, 60, root / f"room-{agents}-{rate:g}", "dots", more))


def _seconds(work: Any) -> float:
    """Return the processor time that something takes: other work on the machine does not count."""
    started = time.process_time()
    work()
    return time.process_time() - started


def _sizes(words: list[str]) -> Iterator[tuple[int, int]]:
    for word in words:
        agents, _, hosts = word.partition("x")
        yield int(agents), int(hosts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), metavar="AGENTSxHOSTS")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="swarm-bench-") as temporary:
        root = Path(temporary)
        for agents, hosts in _sizes(arguments.sizes):
            print(f"{agents:,} agents on {hosts:,} hosts", flush=True)
            if "journal" in arguments.parts:
                measure_journal(agents, hosts, root)
            if "engine" in arguments.parts:
                asyncio.run(_run_engine(agents, hosts, root))
            if "room" in arguments.parts and agents >= SMALLEST_GRID:
                measure_room_on_hosts(agents, hosts, root)
    print(f"2 cores or more: load {', '.join(f'{load:.1f}' for load in os.getloadavg())}", file=sys.stderr)


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[2])
    main()

"""How soon a change on a host is known here: agents on loopback hosts, each of which writes all the time.

Run: python -m tests.bench.host_latency [AGENTS [HOSTS [SECONDS [MILLISECONDS]]]]      (100 4 30 0)

Every agent has a terminal and a record as mngr makes them, and appends a line with the time to its file of tries once
in a while. The engine's own question is asked ten times a second, as by a sweep. A relay holds back what goes over the
line, each way, for so many milliseconds, and one part in fifty for another second, as when a packet is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import resource
import sys
import time
from pathlib import Path

from msgspec import structs

from swarm_tui.agents.contract import TRIES_PATH
from swarm_tui.hosts.link import SshLink
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress, AgentFile
from swarm_tui.hosts.registry import Hosts
from swarm_tui.hosts.ssh import SshHost
from swarm_tui.model.spec import HostSettings, MngrSettings
from swarm_tui.sweep.agent_files import FileTail
from tests.loopback import LoopbackHost, loopback_hosts
from tests.waiting import eventually

TICK = 0.1
LOST = 0.02
WRITER = """
import json, os, random, sys, time
folder, count = sys.argv[1], int(sys.argv[2])
while True:
    for number in range(count):
        with open(f"{folder}/agent-{number}/plugin/swarm/tries.jsonl", "a") as file:
            file.write(json.dumps({"at": time.time()}) + "\\n")
        time.sleep(random.uniform(0.5, 1.5) / count)
"""
PRINT_CPU = "for pid in $(pgrep -f '[p]ython3 -u -c import base64'); do cut -d' ' -f14,15,16,17 /proc/$pid/stat; done"


def make_agents(host: LoopbackHost, count: int) -> list[AgentAddress]:
    """Make the folders and terminals of so many agents on a host, and a writer for all of them."""
    folder = Path(host.access.host_dir) / "agents"
    agents = []
    for number in range(count):
        state = folder / f"agent-{number}"
        (state / "plugin/swarm").mkdir(parents=True)
        name = f"{host.access.name}-{number}"
        record = {"id": f"agent-{name}", "name": name, "type": "command", "command": "sleep", "labels": {}}
        (state / "data.json").write_text(json.dumps(record))
        agents.append(AgentAddress(name, f"agent-{name}", f"mngr-{name}", str(state), "", host.access.name))
    sessions = "; ".join(f"tmux new-session -d -s {agent.session} -n agent 'sleep 3600'" for agent in agents)
    (host.folder / "writer.py").write_text(WRITER)
    host.run(f"{sessions}; tmux new-session -d -s writer 'python3 {host.folder}/writer.py {folder} {count}'")
    return agents


async def watch(hosts: Hosts, agents: list[AgentAddress], seconds: float) -> tuple[list[float], float]:
    """Follow all agents for a time; return how late each line came, and our CPU seconds."""
    tails = [FileTail(AgentFile(agent, TRIES_PATH)) for agent in agents]
    late: list[float] = []
    await hosts.statuses(follow=True)
    await eventually(lambda: all(report.is_there for report in hosts.reports()), "all hosts")
    end, used, warm, statuses_due = time.monotonic() + seconds + 5, 0.0, time.monotonic() + 5, 0.0
    while time.monotonic() < end:
        slices = await hosts.read_files([tail.request for tail in tails], follow=True)
        now = time.time()
        for tail, piece in zip(tails, slices, strict=True):
            for line in tail.read_lines(piece):
                if time.monotonic() > warm:
                    late.append(now - json.loads(line)["at"])
        if time.monotonic() >= statuses_due:
            statuses_due = time.monotonic() + 1
            await hosts.statuses(follow=True)
        if time.monotonic() < warm:
            used = time.process_time()
        await asyncio.sleep(TICK)
    return late, time.process_time() - used


async def relay(port: int, delay: float) -> asyncio.Server:
    """Listen for connections to a host, and pass on what they carry after a delay."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        due: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                at, block = await due.get()
                await asyncio.sleep(at - time.monotonic())
                if not block:
                    writer.close()
                    return
                writer.write(block)

        delivery = asyncio.ensure_future(deliver())
        while block := await reader.read(1 << 16):
            due.put_nowait((time.monotonic() + delay + (random.random() < LOST), block))
        due.put_nowait((time.monotonic() + delay, b""))
        await delivery

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(carry(reader, far_writer), carry(far_reader, writer), return_exceptions=True)

    return await asyncio.start_server(connect, "127.0.0.1")


def children_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


async def access_through(relayed: asyncio.Server, host: LoopbackHost) -> HostSettings:
    """Return how a host is reached through its relay, whose port has the host's key too."""
    port = relayed.sockets[0].getsockname()[1]
    known = Path(host.access.known_hosts_file)
    known.write_text(known.read_text() + host.host_key_line.replace(f":{host.port} ", f":{port} "))
    return structs.replace(host.access, port=port)


async def measure(
    hosts: list[LoopbackHost], agents: list[AgentAddress], seconds: float, root: Path, delay: float
) -> None:
    settings = MngrSettings(path="mngr", host_dir=str(root), home=str(root))
    access = [host.access for host in hosts]
    if delay:
        access = [await access_through(await relay(host.port, delay), host) for host in hosts]
    remote = [SshHost(one, settings, None, SshLink(one)) for one in access]
    every = Hosts([LocalHost(settings), *remote])
    late, used = await watch(every, agents, seconds)
    far = [sum(map(int, line.split())) for host in hosts[:1] for line in host.run(PRINT_CPU).splitlines()]
    before = children_seconds()
    await every.close()
    await asyncio.sleep(3)
    ssh = children_seconds() - before
    late.sort()
    ranks = {name: late[min(len(late) - 1, int(len(late) * part))] for name, part in RANKS.items()}
    found = "  ".join(f"{name} {value:.3f} s" for name, value in ranks.items())
    print(f"{len(agents)} agents on {len(hosts)} hosts, {len(late)} lines in {seconds:g} s: {found}")
    ticks = os.sysconf("SC_CLK_TCK")
    each = sum(far) / len(far) / ticks / (seconds + 5) * 100 if far else 0.0
    print(f"CPU: ours {used / seconds * 100:.1f} % of a core, our ssh {ssh / (seconds + 5) * 100:.1f} % for all hosts,")
    print(f"     a host's program with its tmux and ps {each:.1f} %")


RANKS = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def main(agents: int = 100, hosts: int = 4, seconds: int = 30, milliseconds: int = 0) -> None:
    with loopback_hosts(hosts, path="/usr/local/bin:/usr/bin:/bin") as made:
        all_agents = [agent for host in made for agent in make_agents(host, agents // hosts)]
        asyncio.run(measure(made, all_agents, float(seconds), made[0].folder.parent, milliseconds / 1000))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

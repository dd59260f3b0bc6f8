"""How long reading the statuses of all agents takes beside `mngr list`, with real agents on a private mngr and tmux.

Run: python -m tests.bench.probe_versus_list [AGENTS ...]      (10 50 100; making an agent takes a second)
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.hosts.local import LocalHost
from tests.isolation import IsolatedMngr, isolate_mngr

CREATES_AT_ONCE = 3


async def grow(isolated: IsolatedMngr, first: int, end: int) -> None:
    """Create the agents from one number up to another."""
    turn = asyncio.Semaphore(CREATES_AT_ONCE)

    async def create(number: int) -> None:
        async with turn:
            request = CreateRequest(
                name=f"agent-{number}",
                command=(str(isolated.agent),),
                source=isolated.repository,
                transfer="none",
                message="work" if number % 2 else None,
            )
            await isolated.adapter.create(request)

    await asyncio.gather(*map(create, range(first, end)))


async def timed(action: Callable[[], Awaitable[object]], times: int) -> float:
    """Return the median time of an action in milliseconds."""
    spent = []
    for _ in range(times):
        started = time.perf_counter()
        await action()
        spent.append((time.perf_counter() - started) * 1000)
    return statistics.median(spent)


async def measure(isolated: IsolatedMngr, counts: list[int]) -> None:
    host = LocalHost(isolated.settings)
    print("agents   probe    mngr list   times quicker   states agree")
    made = 0
    for count in counts:
        await grow(isolated, made, count)
        made = count
        probing, listing = await timed(host.statuses, 20), await timed(isolated.adapter.list_agents, 3)
        listed = {agent.name: agent.state for agent in (await isolated.adapter.list_agents()).agents}
        statuses = await host.statuses()
        agree = listed == {name: agent.state for name, agent in statuses.by_name.items()}
        print(f"{count:6} {probing:6.0f} ms {listing:9.0f} ms {listing / probing:15.0f}   {'yes' if agree else 'NO'}")


def main() -> None:
    counts = sorted(map(int, sys.argv[1:])) or [10, 50, 100]
    mngr = asyncio.run(find_mngr())
    with isolate_mngr(mngr.path) as isolated:
        asyncio.run(measure(isolated, counts))


if __name__ == "__main__":
    main()

"""Makes hosts by a provider of mngr's, holds them while the sweep needs them, and gives them back.

A host is held by an agent of ours, its keeper: mngr makes the host for it, so that its address is known before
an agent for a test is created there, and it does not end between two of them. The keeper ends by itself
when the engine has not renewed its lease; the provider's idle limit then ends the host.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.host_making import LEASE, destroy_host, keeper_address, make_host
from swarm_tui.engine.host_plan import plan_hosts
from swarm_tui.engine.host_pool import HostPool
from swarm_tui.engine.schedule import slots_taken
from swarm_tui.errors import SwarmError
from swarm_tui.model.events import HostEnded, HostMade, HostMaking
from swarm_tui.model.hosts import HostAccess, made_hosts
from swarm_tui.model.states import State
from swarm_tui.places.choose import place_on
from swarm_tui.places.many_hosts import ManyHosts
from swarm_tui.places.place import AgentFile

if TYPE_CHECKING:
    from swarm_tui.engine.sweep_runner import SweepRunner

RENEW_SECONDS: Final = 300.0
REFUSALS: Final = 3
"""A provider that refuses so often in a row is not asked again."""
PAUSE_AFTER_REFUSAL: Final = 20.0


class NewHosts:
    """The hosts that are made for one sweep."""

    def __init__(self, context: EngineContext, pool: HostPool) -> None:
        self._context = context
        self._host_dir = context.spec.new_host_dir
        self._pool = pool
        for access in made_hosts(context.state.hosts):
            self._take_in(access)
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._idle_since: dict[str, float] = {}
        self._renewed_at: dict[str, float] = {}
        self._refusals = 0
        self._not_before = 0.0
        self.reason = ""
        """Why the provider made no host the last time."""

    @property
    def is_busy(self) -> bool:
        return bool(self._busy)

    @property
    def why_hopeless(self) -> str:
        """Return why there is no host and will be none; empty as long as there may be."""
        return self.reason if self._refusals >= REFUSALS and not self.names() else ""

    def names(self) -> list[str]:
        """Return the hosts that are there and are not being given back."""
        hosts = self._context.state.hosts
        return [name for name, host in hosts.items() if host.stage == "made" and name not in self._busy]

    def look(self, runner: SweepRunner) -> None:
        """Begin what is due for a sweep as it is now."""
        state, queue = self._context.state, runner.queue
        agents = Counter(address.host for address in runner.live_agents.to_stop)
        agents.update({host: use.number for host, use in runner.hosts_in_use().items()})
        launchable = 0
        if not runner.is_stopping and not state.launches_nothing:
            waiting, slots = state.counts[State.WAITING.value], state.open_slots
            queued = sum(not state.records[test].is_held for test in queue)
            launchable = max(0, min(queued, slots - slots_taken(state.active, waiting, slots)))
        self.work(runner.group, launchable, agents)

    def work(self, group: asyncio.TaskGroup, launchable: int, agents: Mapping[str, int]) -> None:
        """Begin what is due now: make hosts, renew leases, give hosts back."""
        now = time.monotonic()
        counted = {name: agents.get(name, 0) for name in self.names()}
        for name, number in counted.items():
            if number:
                self._idle_since.pop(name, None)
            else:
                self._idle_since.setdefault(name, now)
            if now >= self._renewed_at.get(name, 0.0) + RENEW_SECONDS:
                self._renewed_at[name] = now
                group.create_task(self._renew(name))
        making = sum(self._context.state.hosts[name].stage == "making" for name in self._busy)
        plan = plan_hosts(
            launchable=launchable,
            per_host=self._context.spec.per_host,
            agents=counted,
            making=making,
            idle_since=self._idle_since,
            now=now,
        )
        if now >= self._not_before and self._refusals < REFUSALS:
            for _ in range(plan.make):
                name = self._next_name()
                self._context.record(HostMaking(host=name))
                self._begin(group, name, self._make(name))
        gone = [name for name in counted if self._context.state.hosts[name].is_gone]
        for name in (*gone, *(name for name in plan.give_back if name not in gone)):
            reason = "it does not answer any more" if name in gone else "nothing is left to do there"
            self._begin(group, name, self._give_back(name, reason))

    async def take_up(self) -> None:
        """Return the hosts that an earlier engine was making to their provider, whatever has become of them."""
        for name, host in list(self._context.state.hosts.items()):
            if host.stage == "making":
                await self._give_back(name, "its engine ended while it was made")

    async def end(self) -> None:
        """Return all hosts to their provider, unless their agents are to be kept."""
        if self._context.spec.keep_agents and self.names():
            self._context.note(f"{', '.join(self.names())} stay with their agents until `swarm-tui clean`")
            return
        await asyncio.gather(*(self._give_back(name, "the sweep is over") for name in self.names()))

    def _take_in(self, access: HostAccess) -> None:
        if isinstance(self._context.place, ManyHosts):
            self._context.place.add(access.name, place_on(access, self._context.spec))
        self._pool.add(access.name)

    def _begin(self, group: asyncio.TaskGroup, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = group.create_task(work)
        self._busy[name] = task
        task.add_done_callback(lambda _: self._busy.pop(name, None))

    def _next_name(self) -> str:
        spec = self._context.spec
        made = sum(name.startswith(f"swarm-{spec.sweep}-") for name in self._context.state.hosts)
        return f"swarm-{spec.sweep}-{made + 1}.{spec.provider}"

    async def _make(self, name: str) -> None:
        try:
            access, host_id, keeper = await make_host(self._context, name, self._host_dir)
        except SwarmError as error:
            self._refusals += 1
            self._not_before = time.monotonic() + PAUSE_AFTER_REFUSAL
            self.reason = str(error)
            await self._give_back(name, str(error), is_failed=True)
            return
        self._refusals = 0
        self._renewed_at[name] = time.monotonic()
        self._context.record(HostMade(host=name, host_id=host_id, keeper=keeper, access=access.model_dump()))
        self._take_in(access)

    async def _renew(self, name: str) -> None:
        host = self._context.state.hosts[name]
        address = keeper_address(self._context.spec, name, self._host_dir)
        try:
            await self._context.place.write_file(AgentFile(address, LEASE), str(int(time.time())).encode())
        except (SwarmError, OSError) as error:
            if host.lost_since is None:
                self._context.note(f"the lease of {name} could not be renewed: {error}", level="warning")

    async def _give_back(self, name: str, reason: str, *, is_failed: bool = False) -> None:
        self._pool.remove(name)
        if isinstance(self._context.place, ManyHosts):
            await self._context.place.remove(name)
        try:
            await destroy_host(self._context.mngr, name)
        except SwarmError as error:
            self._context.note(f"{name} could not be given back: {error}", level="error")
            return
        self._idle_since.pop(name, None)
        self._context.record(HostEnded(host=name, reason=reason, is_failed=is_failed))

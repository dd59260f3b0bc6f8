"""Create and destroy hosts with mngr. An agent of the sweep, the keeper, holds each host."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from swarm_tui.adapters.git.checkouts import init_repository
from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_messages import AgentDetails, CreateRequest, NewHost
from swarm_tui.errors import AdapterError, SwarmError
from swarm_tui.hosts.events import HostEnded, HostMade, HostMaking, made_hosts
from swarm_tui.hosts.protocol import AgentAddress, AgentFile
from swarm_tui.hosts.registry import open_host
from swarm_tui.model.results import State
from swarm_tui.model.spec import HostSettings, SweepSpec
from swarm_tui.sweep.agent_context import agent_address
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.host_pool import HostPool, plan_hosts
from swarm_tui.sweep.slots import slots_taken

if TYPE_CHECKING:
    from swarm_tui.sweep.run import RunningSweep


IDLE_TIMEOUT: Final = 1800
LEASE_MINUTES: Final = 60
MODAL_LIFE: Final = 82_800
"""Seconds after which Modal terminates a sandbox in any case. A day is the maximum."""
LABEL_KEEPS: Final = "swarm_keeps"
LEASE: Final = "lease"

_KEEP: Final = (
    f'touch "$MNGR_AGENT_STATE_DIR/{LEASE}"; '
    f'while [ -n "$(find "$MNGR_AGENT_STATE_DIR/{LEASE}" -mmin -{LEASE_MINUTES} 2>/dev/null)" ]; do sleep 20; done'
)


def keeper_name(host: str) -> str:
    """Return the name of the agent that holds a host."""
    return f"{host.partition('.')[0]}-keeper"


def keeper_address(spec: SweepSpec, host: str, host_dir: str) -> AgentAddress:
    """Return the address of the agent that holds a host."""
    return agent_address(spec, host_dir, keeper_name(host), 1, host)


async def make_host(context: SweepContext, name: str, host_dir: str) -> tuple[HostSettings, str, str]:
    """Create a host with mngr; return its settings, its id, and the id of its keeper."""
    spec = context.spec
    host, _, provider = name.partition(".")
    address = keeper_address(spec, name, host_dir)
    source = context.folder.root.absolute() / "hosts" / f"{host}-empty"
    await asyncio.to_thread(_make_empty_repository, source)
    life = ("--timeout=" + str(MODAL_LIFE),) if provider == "modal" else ()
    request = CreateRequest(
        name=address.name,
        command=("sh", "-c", _KEEP),
        source=source,
        provider=provider,
        host=host,
        labels={LABEL_KEEPS: spec.sweep},
        new_host=NewHost(
            idle_timeout=IDLE_TIMEOUT,
            labels={LABEL_KEEPS: spec.sweep},
            build_arguments=(*life, *spec.build_arguments),
            start_arguments=spec.start_arguments,
        ),
        extra_arguments=("--id", address.agent_id),
    )
    created = await context.mngr.create(request)
    listed = await context.mngr.list_agents(provider)
    keeper = next((agent for agent in listed.agents if agent.id == created.agent_id), None)
    host_id = keeper.host.id if keeper is not None and keeper.host is not None else ""
    return _access_of(keeper, name, provider, host_dir), host_id, created.agent_id


def _make_empty_repository(folder: Path) -> None:
    """Create the repository for the keeper: on other hosts, mngr requires one for each agent."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        repository = init_repository(folder, branch="main", identity=("swarm-tui", "swarm-tui@localhost"))
        repository.run("commit", "--quiet", "--allow-empty", "--message=Nothing")


def _access_of(keeper: AgentDetails | None, name: str, provider: str, host_dir: str) -> HostSettings:
    ssh = keeper.host.ssh if keeper is not None and keeper.host is not None else None
    if ssh is None:
        raise AdapterError(f"mngr created {name}, but reports no ssh address for it")
    return HostSettings(
        name=name,
        provider=provider,
        address=ssh.host,
        host_dir=host_dir,
        port=ssh.port,
        user=ssh.user,
        key_file=ssh.key_path or "",
        known_hosts_file=ssh.known_hosts_path or "",
    )


async def held_hosts(mngr: MngrAdapter, spec: SweepSpec) -> list[str]:
    """Return the created hosts of a sweep that their keepers still hold. Raise AdapterError if that is unknown."""
    listed = await mngr.list_agents(spec.provider)
    if listed.errors:
        raise AdapterError(listed.errors[0].message, listed.errors[0].help_text or "")
    keepers = (agent for agent in listed.agents if agent.labels.get(LABEL_KEEPS) == spec.sweep)
    return sorted(f"{agent.host.name}.{spec.provider}" for agent in keepers if agent.host is not None)


async def destroy_host(mngr: MngrAdapter, name: str) -> None:
    """Destroy a host and everything on it."""
    host, _, provider = name.partition(".")
    await mngr.destroy_host(host, provider)


RENEW_SECONDS: Final = 300.0
REFUSALS: Final = 3
"""After this many refusals in a row, the provider is not asked again."""
PAUSE_AFTER_REFUSAL: Final = 20.0


class HostCreation:
    """The hosts that mngr creates for one sweep."""

    def __init__(self, context: SweepContext, pool: HostPool) -> None:
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
        """Why the provider last refused to create a host."""

    @property
    def is_busy(self) -> bool:
        return bool(self._busy)

    @property
    def why_hopeless(self) -> str:
        """Return why there is no host and none will be created; "" if there may be one."""
        return self.reason if self._refusals >= REFUSALS and not self.names() else ""

    def names(self) -> list[str]:
        """Return the hosts that are ready and are not being destroyed."""
        hosts = self._context.state.hosts
        return [name for name, host in hosts.items() if host.stage == "made" and name not in self._busy]

    def look(self, sweep: RunningSweep) -> None:
        """Start what is due in the present state of the sweep."""
        state, queue = self._context.state, sweep.queue
        agents = Counter(address.host for address in sweep.stopper.waiting)
        agents.update({host: use.number for host, use in sweep.hosts_in_use().items()})
        agents.update(sweep.checks.hosts)
        launchable = 0
        if not sweep.is_stopping and not state.launches_nothing:
            waiting, slots = state.counts[State.WAITING.value], state.open_slots
            queued = sum(not state.records[test].is_held for test in queue)
            launchable = max(0, min(queued, slots - slots_taken(state.active, waiting, slots)))
        self.work(sweep.group, launchable, agents)

    def work(self, group: asyncio.TaskGroup, launchable: int, agents: Mapping[str, int]) -> None:
        """Start what is due: create hosts, renew leases, destroy idle hosts."""
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
        """Destroy the hosts that an earlier engine was creating, whatever their state is."""
        for name, host in list(self._context.state.hosts.items()):
            if host.stage == "making":
                await self._give_back(name, "its engine exited while mngr was creating it")

    async def end(self) -> None:
        """Destroy all hosts, unless the user wants to keep the agents."""
        if self._context.spec.keep_agents and self.names():
            self._context.note(f"{', '.join(self.names())} stay with their agents until `swarm-tui clean`")
            return
        await asyncio.gather(*(self._give_back(name, "the sweep is over") for name in self.names()))

    def _take_in(self, access: HostSettings) -> None:
        self._context.hosts.add(open_host(access, self._context.spec))
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
        self._context.record(HostMade(host=name, host_id=host_id, keeper=keeper, access=msgspec.to_builtins(access)))
        self._take_in(access)

    async def _renew(self, name: str) -> None:
        host = self._context.state.hosts[name]
        address = keeper_address(self._context.spec, name, self._host_dir)
        try:
            lease = AgentFile(address, LEASE).full_path
            await self._context.hosts[name].write_file(lease, str(int(time.time())).encode())
        except (SwarmError, OSError) as error:
            if host.lost_since is None:
                self._context.note(f"the lease of {name} could not be renewed: {error}", level="warning")

    async def _give_back(self, name: str, reason: str, *, is_failed: bool = False) -> None:
        self._pool.remove(name)
        await self._context.hosts.remove(name)
        try:
            await destroy_host(self._context.mngr, name)
        except SwarmError as error:
            self._context.note(f"{name} could not be given back: {error}", level="error")
            return
        self._idle_since.pop(name, None)
        self._context.record(HostEnded(host=name, reason=reason, is_failed=is_failed))

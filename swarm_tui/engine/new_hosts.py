"""Makes hosts by a provider of mngr's, holds them while the sweep needs them, and gives them back.

A host is held by an agent of ours, its keeper: mngr makes the host for it, so that its address is known before
an agent for a test is created there, and it does not end between two of them. The keeper ends by itself
when the engine has not renewed its lease; the provider's idle limit then ends the host.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.git.checkouts import init_repository
from swarm_tui.adapters.mngr_messages import AgentDetails, CreateRequest, NewHost
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.host_plan import plan_hosts
from swarm_tui.engine.names import agent_address
from swarm_tui.errors import AdapterError, SwarmError
from swarm_tui.model.events import HostEnded, HostMade, HostMaking
from swarm_tui.model.hosts import HostAccess
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.place import AgentAddress, AgentFile

IDLE_TIMEOUT: Final = 1800
LEASE_MINUTES: Final = 60
RENEW_SECONDS: Final = 300.0
REFUSALS: Final = 3
"""A provider that refuses so often in a row is not asked again."""
PAUSE_AFTER_REFUSAL: Final = 20.0
MODAL_LIFE: Final = 82_800
"""Seconds after which Modal ends a sandbox whatever runs in it; it allows a day at most."""
LABEL_KEEPS: Final = "swarm_keeps"
LEASE: Final = "lease"

_KEEP: Final = (
    f'touch "$MNGR_AGENT_STATE_DIR/{LEASE}"; '
    f'while [ -n "$(find "$MNGR_AGENT_STATE_DIR/{LEASE}" -mmin -{LEASE_MINUTES} 2>/dev/null)" ]; do sleep 20; done'
)


class NewHosts:
    """The hosts that are made for one sweep."""

    def __init__(self, context: EngineContext, host_dir: str, on_made: Callable[[HostAccess], None]) -> None:
        self._context = context
        self._host_dir = host_dir
        self._on_made = on_made
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
    def is_hopeless(self) -> bool:
        """Whether there is no host, and the provider makes none."""
        return self._refusals >= REFUSALS and not self.names()

    def names(self) -> list[str]:
        """Return the hosts that are there and are not being given back."""
        hosts = self._context.state.hosts
        return [name for name, host in hosts.items() if host.stage == "made" and name not in self._busy]

    def work(self, group: asyncio.TaskGroup, queued: int, free_slots: int, agents: Mapping[str, int]) -> None:
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
            queued=queued,
            free_slots=free_slots,
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
        for name in plan.give_back:
            self._begin(group, name, self._give_back(name, "nothing is left to do there"))

    async def take_up(self) -> None:
        """Go on with the hosts of an earlier engine; one that it was making is given back, whatever became of it."""
        for name, host in list(self._context.state.hosts.items()):
            if host.access is not None:
                self._on_made(host.access)
            elif host.stage == "making":
                await self._give_back(name, "its engine ended while it was made")

    async def end(self) -> None:
        """Return all hosts to their provider."""
        await asyncio.gather(*(self._give_back(name, "the sweep is over") for name in self.names()))

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
        self._on_made(access)

    async def _renew(self, name: str) -> None:
        host = self._context.state.hosts[name]
        address = keeper_address(self._context.spec, name, self._host_dir)
        try:
            await self._context.place.write_file(AgentFile(address, LEASE), str(int(time.time())).encode())
        except (SwarmError, OSError) as error:
            if host.lost_since is None:
                self._context.note(f"the lease of {name} could not be renewed: {error}", level="warning")

    async def _give_back(self, name: str, reason: str, *, is_failed: bool = False) -> None:
        try:
            await destroy_host(self._context, name)
        except SwarmError as error:
            self._context.note(f"{name} could not be given back: {error}", level="error")
            return
        self._idle_since.pop(name, None)
        self._context.record(HostEnded(host=name, reason=reason, is_failed=is_failed))


def keeper_name(host: str) -> str:
    """Return the name of the agent that holds a host."""
    return f"{host.partition('.')[0]}-keeper"


def keeper_address(spec: SweepSpec, host: str, host_dir: str) -> AgentAddress:
    """Return where the agent lives that holds a host."""
    return agent_address(spec, host_dir, keeper_name(host), 1, host)


async def make_host(context: EngineContext, name: str, host_dir: str) -> tuple[HostAccess, str, str]:
    """Have mngr make a host; return how it is reached, its id, and that of its keeper."""
    spec = context.spec
    host, _, provider = name.partition(".")
    address = keeper_address(spec, name, host_dir)
    source = context.folder.root.absolute() / "hosts" / "empty"
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
    """Make what the keeper gets a copy of: mngr makes no agent elsewhere without a repository."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        repository = init_repository(folder, branch="main", identity=("swarm-tui", "swarm-tui@localhost"))
        repository.run("commit", "--quiet", "--allow-empty", "--message=Nothing")


def _access_of(keeper: AgentDetails | None, name: str, provider: str, host_dir: str) -> HostAccess:
    ssh = keeper.host.ssh if keeper is not None and keeper.host is not None else None
    if ssh is None:
        raise AdapterError(f"mngr has made {name}, and does not say how it is reached by ssh")
    return HostAccess(
        name=name,
        provider=provider,
        address=ssh.host,
        host_dir=host_dir,
        port=ssh.port,
        user=ssh.user,
        key_file=ssh.key_path or "",
        known_hosts_file=ssh.known_hosts_path or "",
    )


async def destroy_host(context: EngineContext, name: str) -> None:
    """Destroy a host with everything on it."""
    host, _, provider = name.partition(".")
    await context.mngr.destroy_host(host, provider)

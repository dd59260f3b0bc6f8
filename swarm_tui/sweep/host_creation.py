"""Create and destroy hosts with mngr. An agent of the sweep, the keeper, holds each host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from swarm_tui.adapters.git.checkouts import init_repository
from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_messages import AgentDetails, CreateRequest, NewHost
from swarm_tui.errors import AdapterError, ImageBuildFailed, SwarmError
from swarm_tui.hosts.events import HostAbandoned, HostCreated, HostCreating, HostDestroyed, HostNotReleased, made_hosts
from swarm_tui.hosts.preparation import HostCheckFailed
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, Host, HostUnfit
from swarm_tui.hosts.registry import open_host
from swarm_tui.model.results import State
from swarm_tui.model.spec import HostSettings, SweepSpec
from swarm_tui.sweep.agent_context import agent_address
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.host_pool import MAKES_AT_ONCE, HostPool, HostUse, plan_hosts
from swarm_tui.sweep.slots import next_launches, slots_taken

if TYPE_CHECKING:
    from swarm_tui.sweep.run import RunningSweep


IDLE_TIMEOUT: Final = 1800
LEASE_MINUTES: Final = 60
MODAL_LIFE: Final = 82_800
"""Seconds after which Modal terminates a sandbox in any case. A day is the maximum."""
LABEL_KEEPS: Final = "swarm_keeps"
LEASE: Final = "lease"
UNFIT_IMAGE: Final = "add it to a Dockerfile, and name its folder with --build-arg=FOLDER"

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
    life = ("--timeout=" + str(MODAL_LIFE),) if spec.new_host_backend == "modal" else ()
    image = await asyncio.to_thread(_write_dockerfile, context) if spec.dockerfile else ()
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
            build_arguments=(*life, *image, *spec.build_arguments),
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


def _write_dockerfile(context: SweepContext) -> tuple[str, ...]:
    """Write the Dockerfile of the sweep, and return the arguments that build its hosts from it."""
    folder = context.folder.root.absolute() / "hosts" / "image"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(context.spec.dockerfile)
    # Without this, docker keeps the container of a step that fails.
    return "--force-rm", str(folder)


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
    """Return the created hosts of a sweep that still exist. Raise AdapterError if that is unknown."""
    keepers = (agent for agent in await _listed(mngr, spec.provider) if agent.labels.get(LABEL_KEEPS) == spec.sweep)
    return sorted(f"{agent.host.name}.{spec.provider}" for agent in keepers if agent.host is not None)


async def _listed(mngr: MngrAdapter, provider: str) -> list[AgentDetails]:
    """Return the agents on hosts that exist. A host that was destroyed stays in the listing of mngr."""
    listed = await mngr.list_agents(provider)
    if listed.errors:
        raise AdapterError(listed.errors[0].message, listed.errors[0].help_text or "")
    return [agent for agent in listed.agents if agent.host is not None and agent.host.state != _DESTROYED]


_DESTROYED: Final = "DESTROYED"
_ENDED: Final = frozenset({_DESTROYED, "CRASHED", "STOPPED", "FAILED"})
"""The states of a host in mngr without running agents."""
RELEASE_PAUSES: Final = (2.0, 10.0)
"""Seconds to wait after each failed attempt to destroy a host except the last."""


async def release_host(mngr: MngrAdapter, name: str, pauses: Sequence[float] = RELEASE_PAUSES) -> None:
    """Destroy a host and everything on it, and check that it is gone; raise AdapterError if it may still exist.

    Release one host of a provider at a time: mngr fails if another host is removed at the same moment.
    """
    host, _, provider = name.partition(".")
    for pause in (*pauses, None):
        try:
            await mngr.destroy_host(host, provider)
            agents = await _listed(mngr, provider)
            if not any(agent.host is not None and agent.host.name == host for agent in agents):
                return
            problem = "mngr still lists it"
        except AdapterError as error:
            problem = error.message
        if pause is None:
            raise AdapterError(f"{name} could not be destroyed: {problem}", f"run `{release_command(name)}`")
        await asyncio.sleep(pause)


def release_command(name: str) -> str:
    """Return the command of mngr that removes a host."""
    host, _, provider = name.partition(".")
    return f"mngr destroy --force @{host}.{provider}"


def why_ended(keeper: AgentDetails | None, access: HostSettings | None) -> str:
    """Return why no agent runs any more on a host that does not answer, according to mngr; "" if agents may run."""
    host = keeper.host if keeper is not None else None
    if host is None:
        return "mngr does not list it any more"
    if host.state in _ENDED:
        return f"mngr reports it as {host.state.lower()}"
    is_elsewhere = access is not None and host.ssh is not None and (host.ssh.host, host.ssh.port) != _endpoint(access)
    return "it was restarted, which ends its agents" if is_elsewhere else ""


def _endpoint(access: HostSettings) -> tuple[str, int]:
    return access.address, access.port


RENEW_SECONDS: Final = 300.0
REFUSALS: Final = 3
"""After this many refusals in a row, the provider is not asked again."""
PAUSE_AFTER_REFUSAL: Final = 20.0
INQUIRY_PAUSE: Final = 30.0
"""Seconds between two questions to mngr about a host that does not answer."""


class HostCreation:
    """The hosts that mngr creates for one sweep."""

    def __init__(
        self, context: SweepContext, pool: HostPool, *, release_pauses: Sequence[float] = RELEASE_PAUSES
    ) -> None:
        self._context = context
        self._host_dir = context.spec.new_host_dir
        self._pool = pool
        for access in made_hosts(context.state.hosts):
            self._take_in(open_host(access, context.spec))
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._releasing = asyncio.Lock()
        self._release_pauses = release_pauses
        self._idle_since: dict[str, float] = {}
        self._renewed_at: dict[str, float] = {}
        self._inquired_at: dict[str, float] = {}
        self._refusals = 0
        self._not_before = 0.0
        self._has_made = bool(pool.hosts)
        """Whether a host was created. Until then, one is created at a time: the others would fail as the first."""
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
        """Start creating and destroying hosts as the present state requires."""
        state, uses = self._context.state, sweep.hosts_in_use()
        occupied = {address.host for address in sweep.stopper.agents} | {*uses, *sweep.checks.hosts}
        launchable = 0
        if not sweep.is_stopping and not state.launches_nothing and sweep.throttled.recovery.may_launch(time.time()):
            # The state does not count agents that have just got a slot.
            active = max(state.active, sum(use.active + use.creating for use in uses.values()))
            chosen = next_launches(
                sweep.queue,
                state.records,
                slots=state.open_slots,
                taken=slots_taken(active, state.counts[State.WAITING.value], state.open_slots),
                creating=0,
                creates_at_once=state.open_slots,
                groups_at_work=sweep.checks.groups_at_work,
            )
            launchable = len(chosen)
        self.work(sweep.group, launchable, uses, occupied)
        for name in self.names():
            if name in sweep.hosts.unreachable:
                self._inquire(sweep.group, name)

    def work(
        self,
        group: asyncio.TaskGroup,
        launchable: int,
        uses: Mapping[str, HostUse],
        occupied: Collection[str] = (),
    ) -> None:
        """Start what is due: create hosts, renew leases, destroy idle hosts.

        `uses` are the agents on each host. Hosts in `occupied` are not idle, even if they have no agents.
        """
        now = time.monotonic()
        names = self.names()
        gone = [name for name in names if self._context.state.hosts[name].is_gone]
        free = {name: uses.get(name, HostUse()).free(self._context.spec.per_host) for name in names if name not in gone}
        for name in names:
            if name in occupied or uses.get(name, HostUse()).number:
                self._idle_since.pop(name, None)
            else:
                self._idle_since.setdefault(name, now)
            if name in free and now >= self._renewed_at.get(name, 0.0) + RENEW_SECONDS:
                self._renewed_at[name] = now
                group.create_task(self._renew(name))
        plan = plan_hosts(
            launchable=launchable,
            per_host=self._context.spec.per_host,
            free=free,
            making=sum(self._context.state.hosts[name].stage == "making" for name in self._busy),
            idle_since=self._idle_since,
            now=now,
            makes_at_once=MAKES_AT_ONCE if self._has_made else 1,
        )
        if now >= self._not_before and self._refusals < REFUSALS:
            for _ in range(plan.make):
                name = self._next_name()
                self._context.record(HostCreating(host=name))
                self._begin(group, name, self._make(name))
        for name in gone:
            self._begin(group, name, self._release(name, self._context.state.hosts[name].reason))
        for name in plan.give_back:
            self._begin(group, name, self._release(name, "nothing is left to do there"))

    async def take_up(self) -> None:
        """Destroy the hosts that an earlier engine was creating or destroying, whatever their state is."""
        for name, host in list(self._context.state.hosts.items()):
            if host.stage == "making":
                await self._release(name, "its engine exited while mngr was creating it")
            elif host.stage == "unreleased":
                await self._release(name, "an earlier engine could not destroy it")

    async def end(self) -> None:
        """Destroy all hosts, unless the user wants to keep the agents."""
        if self._context.spec.keep_agents and self.names():
            self._context.note(f"{', '.join(self.names())} stay with their agents until `swarm-tui clean`")
            return
        for name, host in list(self._context.state.hosts.items()):
            if host.stage in ("made", "unreleased"):
                await self._release(name, "the sweep is over")

    def _take_in(self, host: Host) -> None:
        self._context.hosts.add(host)
        self._pool.add(host.name)

    def _begin(self, group: asyncio.TaskGroup, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = group.create_task(work)
        self._busy[name] = task
        task.add_done_callback(lambda _: self._busy.pop(name, None))

    def _next_name(self) -> str:
        spec = self._context.spec
        made = sum(name.startswith(f"swarm-{spec.sweep}-") for name in self._context.state.hosts)
        return f"swarm-{spec.sweep}-{made + 1}.{spec.provider}"

    async def _make(self, name: str) -> None:
        """Create a host and prepare it; destroy it if agents cannot work there."""
        host: Host | None = None
        try:
            access, host_id, keeper = await make_host(self._context, name, self._host_dir)
            host = open_host(access, self._context.spec)
            await self._context.preparation.prepared(host)
        except SwarmError as error:
            if host is not None:
                await host.close()
            is_lasting = isinstance(error, ImageBuildFailed | HostCheckFailed | HostUnfit)
            self._refusals = REFUSALS if is_lasting else self._refusals + 1
            self._not_before = time.monotonic() + PAUSE_AFTER_REFUSAL
            self.reason = _with_advice(error)
            await self._release(name, self.reason, is_failed=True)
            return
        self._refusals = 0
        self._has_made = True
        self._renewed_at[name] = time.monotonic()
        self._context.record(HostCreated(host=name, host_id=host_id, keeper=keeper, access=msgspec.to_builtins(access)))
        self._take_in(host)

    async def _renew(self, name: str) -> None:
        host = self._context.state.hosts[name]
        address = keeper_address(self._context.spec, name, self._host_dir)
        try:
            lease = AgentFile(address, LEASE).full_path
            await self._context.hosts[name].write_file(lease, str(int(time.time())).encode())
        except (SwarmError, OSError) as error:
            if host.lost_since is None:
                self._context.note(f"the lease of {name} could not be renewed: {error}", level="warning")

    def _inquire(self, group: asyncio.TaskGroup, name: str) -> None:
        """Ask mngr about a host that does not answer, and give it up if no agent can run there any more."""
        now = time.monotonic()
        if now >= self._inquired_at.get(name, float("-inf")) + INQUIRY_PAUSE:
            self._inquired_at[name] = now
            group.create_task(self.inquire(name))

    async def inquire(self, name: str) -> None:
        """Ask mngr about a host, and give the host up if no agent can run there any more."""
        known = self._context.state.hosts[name]
        try:
            listed = await self._context.mngr.list_agents(self._context.spec.provider)
        except SwarmError:
            return
        keeper = next((agent for agent in listed.agents if agent.id == known.keeper), None)
        reason = "" if listed.errors else why_ended(keeper, known.access)
        now = self._context.state.hosts[name]
        if reason and now.lost_since is not None and now.stage == "made" and not now.is_gone:
            self._context.record(HostAbandoned(host=name, reason=reason))

    async def _release(self, name: str, reason: str, *, is_failed: bool = False) -> None:
        self._pool.remove(name)
        await self._context.hosts.remove(name)
        self._idle_since.pop(name, None)
        try:
            async with self._releasing:
                await release_host(self._context.mngr, name, self._release_pauses)
        except SwarmError as error:
            self._context.record(HostNotReleased(host=name, reason=error.message, command=release_command(name)))
            return
        self._context.record(HostDestroyed(host=name, reason=reason, is_failed=is_failed))


def _with_advice(error: SwarmError) -> str:
    if isinstance(error, HostCheckFailed | HostUnfit):
        return f"{error.message}: hosts of this image cannot run agents ({UNFIT_IMAGE})"
    return str(error)

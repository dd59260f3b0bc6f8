"""Has mngr make a host and destroy it; the host is held by an agent of ours, its keeper."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.checkouts import init_repository
from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_messages import AgentDetails, CreateRequest, NewHost
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.names import agent_address
from swarm_tui.errors import AdapterError
from swarm_tui.model.hosts import HostAccess
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.place import AgentAddress

IDLE_TIMEOUT: Final = 1800
LEASE_MINUTES: Final = 60
MODAL_LIFE: Final = 82_800
"""Seconds after which Modal ends a sandbox whatever runs in it; it allows a day at most."""
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
    """Return where the agent lives that holds a host."""
    return agent_address(spec, host_dir, keeper_name(host), 1, host)


async def make_host(context: EngineContext, name: str, host_dir: str) -> tuple[HostAccess, str, str]:
    """Have mngr make a host; return how it is reached, its id, and that of its keeper."""
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


async def held_hosts(mngr: MngrAdapter, spec: SweepSpec) -> list[str]:
    """Return the hosts that were made for a sweep and are still held by their keepers; AdapterError when unknown."""
    listed = await mngr.list_agents(spec.provider)
    if listed.errors:
        raise AdapterError(listed.errors[0].message, listed.errors[0].help_text or "")
    keepers = (agent for agent in listed.agents if agent.labels.get(LABEL_KEEPS) == spec.sweep)
    return sorted(f"{agent.host.name}.{spec.provider}" for agent in keepers if agent.host is not None)


async def destroy_host(mngr: MngrAdapter, name: str) -> None:
    """Destroy a host with everything on it."""
    host, _, provider = name.partition(".")
    await mngr.destroy_host(host, provider)

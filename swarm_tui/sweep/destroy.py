"""Removes agents with all that is theirs on their hosts: session, record and copy; never an agent of somebody else."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Sequence
from typing import Final

from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_messages import AgentFailure
from swarm_tui.errors import SwarmError
from swarm_tui.hosts.protocol import AgentAddress, Host
from swarm_tui.hosts.registry import Hosts
from swarm_tui.hosts.ssh import SshHost

# git keeps a line for each copy in the settings of the host's user.
_FORGET_COPIES: Final = """
for copy in "$@"; do
  rm -rf -- "$copy"
  git config --global --fixed-value --unset-all safe.directory "$copy" 2>/dev/null
done
exit 0
"""


_KILL_SESSIONS: Final = """
for name in "$@"; do tmux kill-session -t "=$name" 2>/dev/null; done
exit 0
"""


async def destroy_agents(
    mngr: MngrAdapter, place: Host, agents: Sequence[AgentAddress], *, is_branch_deleted: bool = False
) -> list[AgentFailure]:
    """Destroy agents, with a call for each host; return those that could not be destroyed."""
    by_host: dict[str, list[AgentAddress]] = {}
    for agent in agents:
        by_host.setdefault(agent.host, []).append(agent)
    parts = await asyncio.gather(
        *(_destroy_on_host(mngr, place, own, is_branch_deleted=is_branch_deleted) for own in by_host.values())
    )
    return [failure for part in parts for failure in part]


async def _destroy_on_host(
    mngr: MngrAdapter, place: Host, agents: Sequence[AgentAddress], *, is_branch_deleted: bool
) -> list[AgentFailure]:
    there = place_on(place, agents[0].host)
    try:
        if isinstance(there, SshHost):
            # mngr takes seconds for each agent there, and fails in the end because it cannot destroy the host.
            await remove_by_hand(there, agents)
            return []
        names = [agent.mngr_name for agent in agents]
        return list((await mngr.destroy(names, is_branch_deleted=is_branch_deleted)).failed)
    except SwarmError as error:
        return [AgentFailure(agent=agent.name, error=str(error)) for agent in agents]


async def remove_by_hand(place: SshHost, agents: Sequence[AgentAddress]) -> None:
    """Remove agents of a host: their sessions, their records and their copies; mngr is content with that."""
    folder = posixpath.join(place.access.host_dir, "agents")
    records = [agent.state_dir for agent in agents if _is_in(agent.state_dir, folder)]
    await place.link.run(["sh", "-c", _KILL_SESSIONS, "kill", *(agent.session for agent in agents)], timeout=120)
    await _remove_copies(place, [agent.work_dir for agent in agents])
    await place.link.run(["rm", "-rf", "--", *records], timeout=600)


async def _remove_copies(place: SshHost, copies: Sequence[str]) -> None:
    """Remove copies on a host; a path that leads elsewhere is left alone."""
    folder = posixpath.join(place.access.host_dir, "copies")
    ours = [copy for copy in copies if _is_in(copy, folder)]
    for start in range(0, len(ours), 500):
        words = ["sh", "-c", _FORGET_COPIES, "forget", *ours[start : start + 500]]
        await place.link.run(words, timeout=600)


def _is_in(path: str, folder: str) -> bool:
    """Return whether a path, which a host has named, leads right into a folder and nowhere else."""
    return posixpath.dirname(path) == folder and posixpath.normpath(path) == path


def place_on(place: Host, host: str) -> Host:
    """Return the place of one host."""
    return place.of(host) if isinstance(place, Hosts) else place

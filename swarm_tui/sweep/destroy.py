"""Remove agents from their hosts: sessions, records and copies."""

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

# git has a line for each copy in the settings of the host's user.
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
    mngr: MngrAdapter, hosts: Hosts, agents: Sequence[AgentAddress], *, is_branch_deleted: bool = False
) -> list[AgentFailure]:
    """Destroy agents, with one call for each host; return the agents that could not be destroyed."""
    by_host: dict[str, list[AgentAddress]] = {}
    for agent in agents:
        by_host.setdefault(agent.host, []).append(agent)

    async def destroy(name: str, own: list[AgentAddress]) -> list[AgentFailure]:
        try:
            host = hosts[name]
            if host.settings is None:
                names = [agent.mngr_name for agent in own]
                return list((await mngr.destroy(names, is_branch_deleted=is_branch_deleted)).failed)
            # mngr takes seconds for each agent on another host, and then fails because it cannot destroy the host.
            await remove_by_hand(host, own)
        except SwarmError as error:
            return [AgentFailure(agent=agent.name, error=str(error)) for agent in own]
        return []

    parts = await asyncio.gather(*(destroy(*part) for part in by_host.items()))
    return [failure for part in parts for failure in part]


async def remove_by_hand(host: Host, agents: Sequence[AgentAddress]) -> None:
    """Remove the sessions, records and copies of agents from a host. mngr needs no call for that."""
    folder = posixpath.join(host.host_dir, "agents")
    records = [agent.state_dir for agent in agents if _is_in(agent.state_dir, folder)]
    await host.run(["sh", "-c", _KILL_SESSIONS, "kill", *(agent.session for agent in agents)], timeout=120)
    await _remove_copies(host, [agent.work_dir for agent in agents])
    await host.run(["rm", "-rf", "--", *records], timeout=600)


async def _remove_copies(host: Host, copies: Sequence[str]) -> None:
    """Remove copies from a host, except paths outside mngr's folder of copies."""
    folder = posixpath.join(host.host_dir, "copies")
    ours = [copy for copy in copies if _is_in(copy, folder)]
    for start in range(0, len(ours), 500):
        words = ["sh", "-c", _FORGET_COPIES, "forget", *ours[start : start + 500]]
        await host.run(words, timeout=600)


def _is_in(path: str, folder: str) -> bool:
    """Return whether a path that a host reported is directly in a folder."""
    return posixpath.dirname(path) == folder and posixpath.normpath(path) == path

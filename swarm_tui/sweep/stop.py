"""Stop and destroy agents, many with one call: a call of mngr takes as long for one agent as for ten."""

from __future__ import annotations

import asyncio
import contextlib
import posixpath
import time
from collections.abc import Sequence
from typing import Final

from swarm_tui.adapters.git.names import branch_ref
from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_messages import AgentFailure
from swarm_tui.errors import JournalError, SwarmError
from swarm_tui.hosts.protocol import AgentAddress, Host
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.events import AgentsStopped
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import State
from swarm_tui.money.events import UsageReported
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.pull import pull_transcript
from swarm_tui.sweep.watch import AgentFollower, read_new_events

BATCH: Final = 32
BATCH_AGE: Final = 60.0


class Stopper:
    """Stops agents in batches, one batch after the other."""

    def __init__(self, context: SweepContext) -> None:
        self._context = context
        self.waiting: dict[AgentAddress, float] = {}
        """The agents of the next batch, each with the time when it was added."""
        self._uncounted: dict[AgentAddress, AgentFollower] = {}
        """Agents that work until they are stopped: their last usage is counted afterwards."""
        self._is_urgent = False
        """Whether an agent of the next batch is still working."""
        self._stopping: frozenset[AgentAddress] = frozenset()
        self._is_done = asyncio.Event()

    @property
    def is_busy(self) -> bool:
        return bool(self.waiting or self._stopping)

    @property
    def agents(self) -> tuple[AgentAddress, ...]:
        """The agents that are being stopped, or will be."""
        return (*self.waiting, *self._stopping)

    def stop(self, watch: AgentFollower, *, is_working: bool) -> None:
        """Stop an agent whose work was pulled with the next batch; at once if it is still working."""
        self.stop_left_over(watch.address, is_working=is_working)
        if is_working:
            self._uncounted[watch.address] = watch

    def stop_left_over(self, agent: AgentAddress, *, is_working: bool) -> None:
        """Do the same with an agent that no coroutine follows."""
        self.waiting[agent] = time.monotonic()
        self._is_urgent = self._is_urgent or is_working

    def forget(self, agent: str) -> None:
        """Take an agent off the next batch: it is removed, or another agent gets its name."""
        for address in [address for address in self.waiting if address.name == agent]:
            del self.waiting[address]

    def is_stopping(self, agent: str) -> bool:
        """Return whether a call is under way that would stop any agent of this name."""
        return any(address.name == agent for address in self._stopping)

    async def finished(self, agent: str) -> None:
        """Wait until no such call is under way."""
        while self.is_stopping(agent):
            await self._is_done.wait()

    def work(self, group: asyncio.TaskGroup, *, is_last: bool) -> None:
        """Begin to stop a batch when it is large, old or urgent enough."""
        if not self.waiting or self._stopping:
            return
        is_old = time.monotonic() - min(self.waiting.values()) >= BATCH_AGE
        if is_last or self._is_urgent or is_old or len(self.waiting) >= BATCH:
            self._stopping = frozenset(self.waiting)
            self.waiting.clear()
            self._is_urgent = False
            self._is_done.clear()
            group.create_task(self._stop()).add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._stopping = frozenset()
        self._is_done.set()

    async def _stop(self) -> None:
        """Stop a batch, with a call for each host: a host that does not answer does not delay the others."""
        by_host: dict[str, list[AgentAddress]] = {}
        for address in sorted(self._stopping, key=lambda address: address.name):
            by_host.setdefault(address.host, []).append(address)
        await asyncio.gather(*map(self._stop_on_host, by_host.values()))

    async def _stop_on_host(self, agents: Sequence[AgentAddress]) -> None:
        """Stop agents of one host. A failure is noted, and does not stop the sweep."""
        try:
            report = await self._context.mngr.stop([agent.mngr_name for agent in agents])
            failed = {failure.agent.partition("@")[0] for failure in report.failed}
            stopped = [agent.name for agent in agents if agent.name not in failed]
            if stopped:
                self._context.record(AgentsStopped(agents=tuple(stopped)))
                await self._count_last(agents)
            if self._context.spec.transfer == "worktree":
                await asyncio.to_thread(self._forget_branches, set(stopped))
        except JournalError:
            raise
        except SwarmError as error:
            self._context.note(f"{counted(len(agents), 'agent')} could not be stopped: {error}", level="warning")
            return
        for failure in report.failed:
            self._context.note(f"{failure.agent} could not be stopped: {failure.error}", level="warning")

    async def _count_last(self, agents: Sequence[AgentAddress]) -> None:
        """Record the final usage of agents that were stopped while working, and pull the end of their transcripts."""
        watches = [watch for agent in agents if (watch := self._uncounted.pop(agent, None)) is not None]
        if not watches:
            return
        for watch in watches:
            # The transcript is pulled as a whole.
            watch.kept_transcript = None
            record = self._context.state.record_of(watch.task.key)
            if record.agent_id == watch.address.agent_id and record.state is State.DONE:
                folder, sources = self._context.work_folder(record.test), watch.task.kind.transcript_sources
                # If this fails, the pulled transcript stays.
                with contextlib.suppress(SwarmError, OSError):
                    await pull_transcript(self._context.hosts[watch.address.host], watch.address, folder, sources)
        events = await read_new_events(self._context.hosts, watches, time.monotonic())
        events += [event for watch in watches for event in watch.held_back_events()]
        ids = {watch.task.key: watch.address.agent_id for watch in watches}
        for event in events:
            # The test may have another agent by now.
            if (
                isinstance(event, UsageReported)
                and self._context.state.record_of(event.test).agent_id == ids[event.test]
            ):
                self._context.record(event)

    def _forget_branches(self, names: set[str]) -> None:
        """Remove the agents' branches from the user's list. Their commits are kept under refs/swarm."""
        repository = self._context.repository
        for record in list(self._context.state.tests()):
            if record.agent not in names:
                continue
            name = branch_ref(record.branch)
            tip = repository.ref(name)
            if tip is not None and tip in (record.pulled.tip, self._context.spec.base):
                repository.delete_ref(name, old=tip)


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

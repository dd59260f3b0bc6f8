"""Record the loss and the return of hosts, and adopt or stop agents on hosts that are back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from swarm_tui.agents.contract import ARCHIVE_PATH
from swarm_tui.hosts.events import HostAbandoned, HostLost, HostPolled, HostRecovered
from swarm_tui.hosts.protocol import AgentFile, AgentStatus, HostReport, HostUnreachable, ReadRequest
from swarm_tui.model.formatting import duration
from swarm_tui.model.results import State
from swarm_tui.sweep.agent_context import LABEL_SWEEP, agent_id_of, launched_event
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.host_pool import HostUse
from swarm_tui.sweep.job import TestJob
from swarm_tui.sweep.watch import AgentFollower

if TYPE_CHECKING:
    from swarm_tui.sweep.run import RunningSweep


_LIVING: Final = frozenset({"RUNNING", "WAITING", "REPLACED"})


async def resume_on_host(sweep: RunningSweep, host: str) -> None:
    """Adopt agents of queued tests that kept running while their host was lost; stop those that were replaced."""
    context = sweep.context
    try:
        found = (await context.hosts.statuses()).agents
        stale = sweep.hosts.stale_agents(host, found)
        archives = await context.hosts.read_files([ReadRequest(AgentFile(one.address, ARCHIVE_PATH)) for one in stale])
    except HostUnreachable:
        # It is lost again.
        return
    test_of = {record.agent: record.test for record in context.state.tests()}
    for status, archive in zip(stale, archives, strict=True):
        record = context.state.record_of(test_of[status.name])
        is_last = status.address.agent_id == agent_id_of(context.spec, status.name, record.launch)
        is_of_use = status.state in _LIVING or archive is not None
        if is_last and is_of_use and sweep.is_queued(record.test):
            context.record(launched_event(record.test, status.address, is_adopted=True))
            sweep.adopt(TestJob(record.test, context.spec))
        elif status.state != "STOPPED":
            sweep.stopper.stop_left_over(status.address, is_working=True)


SEEN_INTERVAL: Final = 30.0


@dataclass(frozen=True, slots=True)
class HostChanges:
    """What has changed about the hosts since the last poll."""

    back: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """Hosts that were given up, now or earlier. Agents that are still followed there must be moved."""


class HostKeeper:
    """Compares the reports of the hosts with the journal."""

    def __init__(self, context: SweepContext, watches: Mapping[str, AgentFollower]) -> None:
        self.lost: frozenset[str] = frozenset()
        """The hosts that do not answer now. Nothing is concluded about their agents."""
        self.unreachable: frozenset[str] = frozenset()
        """Those that failed to answer. The others were not polled yet."""
        self._context = context
        self._watches = watches
        self._lost_at: dict[str, float] = {}
        self._seen_at: dict[str, float] = {}

    @property
    def gone(self) -> frozenset[str]:
        return frozenset(name for name, host in self._context.state.hosts.items() if host.is_gone)

    def look(self, now: float) -> HostChanges:
        """Record what has changed."""
        reports = self._context.hosts.reports()
        self.lost = frozenset(report.host for report in reports if not report.is_there)
        self.unreachable = frozenset(report.host for report in reports if not report.is_there and report.reason)
        back = [report.host for report in reports if self._look_at(report, now)]
        return HostChanges(tuple(back), tuple(self.gone & self.lost))

    def uses(self, creating: Mapping[str, str]) -> dict[str, HostUse]:
        """Return the number of agents on each host; `creating` are the hosts of the agents that are being created."""
        watches = self._watches.values()
        waiting = Counter(watch.address.host for watch in watches if watch.state is State.WAITING)
        active = Counter(watch.address.host for watch in watches if watch.state is not State.WAITING)
        made = Counter(creating.values())
        return {host: HostUse(active[host], waiting[host], made[host]) for host in {*waiting, *active, *made}}

    def stale_agents(self, host: str, found: Mapping[str, AgentStatus]) -> list[AgentStatus]:
        """Return the agents of this sweep on a host that no test waits for, because others have replaced them."""
        spec, state = self._context.spec, self._context.state
        watched = {watch.address.agent_id for watch in self._watches.values()}
        launches = {record.agent: record.launch for record in state.tests()}
        return [
            status
            for status in found.values()
            if status.address.host == host
            and status.labels.get(LABEL_SWEEP) == spec.sweep
            and status.address.agent_id not in watched
            and status.address.agent_id
            in {agent_id_of(spec, status.name, number + 1) for number in range(launches.get(status.name, 0))}
        ]

    def _look_at(self, report: HostReport, now: float) -> bool:
        """Record changes of one host; return whether it is back."""
        known = self._context.state.hosts.get(report.host)
        is_known_lost = known is not None and known.lost_since is not None
        if report.is_there:
            self._lost_at.pop(report.host, None)
            if is_known_lost:
                seconds = time.time() - known.lost_since if known is not None and known.lost_since else 0.0
                self._context.record(HostRecovered(host=report.host, seconds=max(0.0, round(seconds, 1))))
            elif now >= self._seen_at.get(report.host, float("-inf")) + SEEN_INTERVAL and report.processors:
                self._seen_at[report.host] = now
                self._context.record(
                    HostPolled(host=report.host, load=round(report.load, 2), processors=report.processors)
                )
            return is_known_lost
        if not report.reason:
            # The first connection is being opened.
            return False
        since = self._lost_at.setdefault(report.host, now)
        if not is_known_lost:
            self._context.record(HostLost(host=report.host, reason=report.reason))
        elif known is not None and not known.is_gone and now - since >= self._context.spec.host_timeout:
            limit = duration(self._context.spec.host_timeout)
            self._context.record(HostAbandoned(host=report.host, reason=f"no answer for {limit}: {report.reason}"))
        return False

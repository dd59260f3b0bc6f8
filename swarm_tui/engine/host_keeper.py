"""Writes down which hosts answer, gives up those that do not for too long, and takes up again what is on those back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.host_pool import HostUse
from swarm_tui.engine.live_agents import LiveAgents
from swarm_tui.engine.names import LABEL_SWEEP, agent_id_of
from swarm_tui.model.events import HostBack, HostGone, HostLost, HostSeen
from swarm_tui.model.formatting import duration
from swarm_tui.model.states import State
from swarm_tui.places.place import AgentStatus, HostReport

SEEN_INTERVAL: Final = 30.0


@dataclass(frozen=True, slots=True)
class HostChanges:
    """What has become of the hosts since the last look."""

    back: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    """Given up by now, or before; agents that are watched there still have to be given up too."""


class HostKeeper:
    """Compares what the place reports of its hosts with the journal."""

    def __init__(self, context: EngineContext, live_agents: LiveAgents) -> None:
        self.lost: frozenset[str] = frozenset()
        """The hosts that do not answer at this moment: nothing is concluded about their agents."""
        self.unreachable: frozenset[str] = frozenset()
        """Those of them that have failed to answer; the others were not asked yet."""
        self._context = context
        self._live_agents = live_agents
        self._lost_at: dict[str, float] = {}
        self._seen_at: dict[str, float] = {}

    @property
    def gone(self) -> frozenset[str]:
        return frozenset(name for name, host in self._context.state.hosts.items() if host.is_gone)

    def look(self, now: float) -> HostChanges:
        """Record what has changed."""
        reports = self._context.place.reports()
        self.lost = frozenset(report.host for report in reports if not report.is_there)
        self.unreachable = frozenset(report.host for report in reports if not report.is_there and report.reason)
        back = [report.host for report in reports if self._look_at(report, now)]
        return HostChanges(tuple(back), tuple(self.gone & self.lost))

    def uses(self, creating: Mapping[str, str]) -> dict[str, HostUse]:
        """Return what is on each host; `creating` are the hosts of the agents that are being created."""
        watches = self._live_agents.watches.values()
        waiting = Counter(watch.address.host for watch in watches if watch.state is State.WAITING)
        active = Counter(watch.address.host for watch in watches if watch.state is not State.WAITING)
        made = Counter(creating.values())
        return {host: HostUse(active[host], waiting[host], made[host]) for host in {*waiting, *active, *made}}

    def stale_agents(self, host: str, found: Mapping[str, AgentStatus]) -> list[AgentStatus]:
        """Return the agents of this sweep on a host that no test is waiting for: others took their place meanwhile."""
        spec, state = self._context.spec, self._context.state
        watched = {watch.address.agent_id for watch in self._live_agents.watches.values()}
        attempts = {record.agent: record.attempt for record in state.tests()}
        return [
            status
            for status in found.values()
            if status.address.host == host
            and status.labels.get(LABEL_SWEEP) == spec.sweep
            and status.address.agent_id not in watched
            and status.address.agent_id
            in {agent_id_of(spec, status.name, number + 1) for number in range(attempts.get(status.name, 0))}
        ]

    def _look_at(self, report: HostReport, now: float) -> bool:
        """Record what is new of one host; return whether it is back."""
        known = self._context.state.hosts.get(report.host)
        is_known_lost = known is not None and known.lost_since is not None
        if report.is_there:
            self._lost_at.pop(report.host, None)
            if is_known_lost:
                seconds = time.time() - known.lost_since if known is not None and known.lost_since else 0.0
                self._context.record(HostBack(host=report.host, seconds=max(0.0, round(seconds, 1))))
            elif now >= self._seen_at.get(report.host, float("-inf")) + SEEN_INTERVAL and report.processors:
                self._seen_at[report.host] = now
                self._context.record(
                    HostSeen(host=report.host, load=round(report.load, 2), processors=report.processors)
                )
            return is_known_lost
        if not report.reason:
            # It is being connected for the first time.
            return False
        since = self._lost_at.setdefault(report.host, now)
        if not is_known_lost:
            self._context.record(HostLost(host=report.host, reason=report.reason))
        elif known is not None and not known.is_gone and now - since >= self._context.spec.host_timeout:
            limit = duration(self._context.spec.host_timeout)
            self._context.record(HostGone(host=report.host, reason=f"no answer for {limit}: {report.reason}"))
        return False

"""Keeps the watches of a sweep's living agents, and the list of agents that are to be stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.results import State
from swarm_tui.model.spec import SweepSpec
from swarm_tui.sweep.agent_context import recorded_address
from swarm_tui.sweep.launch import AgentTask
from swarm_tui.sweep.watch import AgentFollower, KeptTranscript
from swarm_tui.transcripts.locate import HARVESTED_NAME


@dataclass(slots=True)
class TaskWatch(AgentFollower):
    """One living agent that was launched for a task."""

    task: AgentTask


@dataclass(slots=True)
class LiveAgents:
    """The watches of living agents by test, and the agents that wait to be stopped, each with the time since when."""

    watches: dict[str, TaskWatch] = field(default_factory=dict)
    to_stop: dict[AgentAddress, float] = field(default_factory=dict)
    folder: SweepFolder | None = None
    """The folder of the sweep, for what is read of agents on other hosts."""
    uncounted: dict[AgentAddress, TaskWatch] = field(default_factory=dict)
    """Agents that work until they are stopped: what they use until then is counted after it."""
    is_urgent: bool = False
    """One of those that wait to be stopped still works."""

    def watch_agent(self, spec: SweepSpec, task: AgentTask, record: TestRecord, *, is_adopted: bool) -> TaskWatch:
        now = time.monotonic()
        # The wall clock may have jumped, so that it is not believed beyond half of the time.
        elapsed = time.time() - record.launched_at if is_adopted and record.launched_at else 0.0
        watch = TaskWatch(
            task=task,
            address=recorded_address(spec, record),
            started=now - min(max(elapsed, 0.0), task.timeout / 2),
            timeout=task.timeout,
            wait_timeout=spec.wait_timeout,
            kept_transcript=self._kept_transcript(task, record),
        )
        # Its first message was typed before the launch was over.
        watch.note_typing(record.launched_at or 0.0)
        if is_adopted:
            watch.continue_from(record)
            if record.state is State.WAITING:
                watch.state, watch.waiting_since = State.WAITING, now
        self.watches[task.key] = watch
        return watch

    def _kept_transcript(self, task: AgentTask, record: TestRecord) -> KeptTranscript | None:
        is_here = record.host in ("", LOCAL_HOST)
        if self.folder is None or (is_here and not task.kind.transcript_sources.has_subagents):
            return None
        return KeptTranscript(self.folder.agent(record.agent) / HARVESTED_NAME)

    def stop_watched(self, watch: TaskWatch, *, is_working: bool) -> None:
        """Have an agent stopped whose work is over for us; one that still works at once."""
        self.stop_later(watch.address, is_working=is_working)
        if is_working:
            self.uncounted[watch.address] = watch

    def stop_later(self, agent: AgentAddress, *, is_working: bool = False) -> None:
        """Have an agent stopped with the next batch; at once when it still works."""
        self.to_stop[agent] = time.monotonic()
        self.is_urgent = self.is_urgent or is_working

    def stop_not(self, agent: str) -> None:
        """Take an agent off the list of those to be stopped: it is removed, or another gets its name."""
        for address in [address for address in self.to_stop if address.name == agent]:
            del self.to_stop[address]

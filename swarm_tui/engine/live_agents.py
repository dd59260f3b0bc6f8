"""The living agents of a sweep, and those whose work is done and who are to be stopped."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from swarm_tui.engine.agent_task import AgentTask
from swarm_tui.engine.names import recorded_address
from swarm_tui.engine.watch import Watch
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.sweep import SweepSpec


@dataclass(slots=True)
class LiveAgents:
    """Who is watched, by test; who waits to be stopped, by agent, and since when."""

    watches: dict[str, Watch] = field(default_factory=dict)
    retired: dict[str, float] = field(default_factory=dict)
    is_urgent: bool = False
    """Among the retired is one that still works."""

    def join(self, spec: SweepSpec, task: AgentTask, record: TestRecord, *, is_adopted: bool) -> Watch:
        """Begin to watch the agent of a task."""
        now = time.monotonic()
        # The wall clock is asked once, and not believed beyond reason.
        elapsed = time.time() - record.launched_at if is_adopted and record.launched_at else 0.0
        watch = Watch(
            task=task,
            address=recorded_address(spec, record),
            started=now - min(max(elapsed, 0.0), task.timeout / 2),
            timeout=task.timeout,
            wait_timeout=spec.wait_timeout,
        )
        if is_adopted:
            watch.continue_from(record)
            if record.state is State.WAITING:
                watch.state, watch.waiting_since = State.WAITING, now
        self.watches[task.key] = watch
        return watch

    def retire(self, agent: str, *, is_working: bool = False) -> None:
        """Have an agent stopped with the next batch; at once when it still works."""
        self.retired[agent] = time.monotonic()
        self.is_urgent = self.is_urgent or is_working

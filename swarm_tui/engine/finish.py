"""Has a sweep integrated when its last test is harvested, and again when a test was retried after that."""

from __future__ import annotations

import asyncio

from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.integrate import integrate_sweep
from swarm_tui.model.events import IntegrationFailed


class Finish:
    """The integration of one sweep: whether it is due, and that there is only one at a time."""

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._task: asyncio.Task[None] | None = None
        self._is_due = context.state.integration.state != "done"

    @property
    def is_busy(self) -> bool:
        """Whether the integrator is at work."""
        return self._task is not None and not self._task.done()

    @property
    def is_due(self) -> bool:
        """Whether there is work that no integration has seen."""
        return self._is_due and self._context.spec.integrator != "none"

    def expect(self) -> None:
        """There is new work: the integrator is due at the end."""
        self._is_due = True

    def begin(self, group: asyncio.TaskGroup) -> None:
        """Start the integrator."""
        self._is_due = False
        self._task = group.create_task(self._integrate())

    def cancel(self) -> None:
        """Have the integrator stop; it can be repeated from its start."""
        if self._task is not None:
            self._task.cancel()

    async def _integrate(self) -> None:
        try:
            await integrate_sweep(self._context)
        except asyncio.CancelledError:
            self._context.record(IntegrationFailed(reason="stopped; `swarm-tui resume` repeats it"))
            raise

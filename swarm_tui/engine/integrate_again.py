"""Repeats the integration of a sweep that no engine works on; nothing else of it is taken up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
from typing import Literal

from swarm_tui import __version__
from swarm_tui.agents.kinds import kind_of_sweep
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.engine import make_context
from swarm_tui.engine.journal_keeper import take_up_journal
from swarm_tui.engine.names import integrator_of
from swarm_tui.engine.sweep_runner import SweepRunner, first_error
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.events import EngineEnded, EngineStarted, IntegrationFailed

Who = Literal["builtin", "agent"]


def integrate_again(folder: SweepFolder, by: Who | None = None) -> SweepState:
    """Integrate what the agents have made so far and return the state after it; `by` None is the sweep's own choice."""
    spec = folder.read_spec()
    if spec.why_not_continued:
        raise UsageError(f"{folder.name} has no engine", spec.why_not_continued)
    if spec.is_newer_format:
        raise UsageError(f"{folder.name} was made by a newer swarm-tui", "it can be looked at, not continued")
    who: Who = by or ("agent" if spec.integrator == "agent" else "builtin")
    if who == "agent" and not kind_of_sweep(spec).can_integrate:
        raise UsageError(f"the {spec.agent_type} agent cannot integrate", "`--integrator builtin` can")
    lock = EngineLock(folder.lock)
    lock.acquire()
    try:
        taken_up = take_up_journal(folder, spec)
        state = taken_up.state
        ended_why, ended_reason, slots = state.ended_why, state.ended_reason, state.slots
        with taken_up.writer as writer:
            context = make_context(folder, spec.model_copy(update={"integrator": who}), writer, state)
            started = EngineStarted(pid=os.getpid(), machine=platform.node(), version=__version__, slots=slots)
            context.record(started.model_copy(update={"is_resumed": True}))
            try:
                asyncio.run(integrate_sweep(context))
            except KeyboardInterrupt:
                context.record(IntegrationFailed(reason="stopped; `swarm-tui integrate` repeats it"))
                asyncio.run(_stop_integrator(context))
                raise
            finally:
                # The end of the sweep is recorded as it was before.
                is_finished = ended_why == "finished"
                context.record(EngineEnded(why="finished" if is_finished else "stopped", reason=ended_reason))
                writer.sync()
    finally:
        lock.release()
    return state


async def integrate_sweep(context: EngineContext) -> None:
    try:
        await SweepRunner(context, is_integrating_only=True).run(_NoRequests())
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors


class _NoRequests:
    """No engine lives that people could ask."""

    is_busy = False

    def carry_out_new(self, group: asyncio.TaskGroup) -> None:
        """Do nothing."""


async def _stop_integrator(context: EngineContext) -> None:
    """Stop the integrator's agent, which no engine watches."""
    with contextlib.suppress(SwarmError):
        await context.mngr.stop([integrator_of(context.spec)])

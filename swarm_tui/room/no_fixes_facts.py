"""Gathers from the store what the merge view tells while there are no fixes."""

from __future__ import annotations

from swarm_tui.model.states import Result, State
from swarm_tui.model.text import plain
from swarm_tui.room.draw.cells import short_name
from swarm_tui.room.draw.no_fixes import NoFixesFacts
from swarm_tui.room.notices import FINISHED_MARKS
from swarm_tui.room.store import EngineState, Store


def no_fixes_facts(store: Store) -> NoFixesFacts:
    """Return where the sweep stands now."""
    state, spec = store.state, store.opened.spec
    integration, counts = state.integration, state.counts
    return NoFixesFacts(
        sweep=plain(spec.sweep, 60),
        integration=integration.state,
        detail=integration.detail,
        last_line=plain(integration.last_line, 200),
        integrating_for=store.clock() - integration.started_at if integration.started_at is not None else 0.0,
        done=sum(counts[mark] for mark in FINISHED_MARKS),
        total=len(state.records),
        working=state.active,
        waiting=counts[State.WAITING.value],
        queued=counts[State.QUEUED.value],
        is_living=store.engine in (EngineState.LIVING, EngineState.ELSEWHERE),
        has_integrator=spec.integrator != "none",
        is_simulated=spec.agent_type == "simulated",
        coming=tuple(
            (short_name(record), plain(record.harvest.summary, 200))
            for record in state.tests()
            if record.result is Result.IMPL_FIX
        ),
    )

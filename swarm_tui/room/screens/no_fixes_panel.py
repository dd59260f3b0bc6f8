"""The panel of the merge view while there are no fixes: the progress of the sweep towards them."""

from __future__ import annotations

from swarm_tui.agents.kinds import kind_of_sweep
from swarm_tui.model.states import Result, State
from swarm_tui.model.text import plain
from swarm_tui.room.draw.cells import short_name
from swarm_tui.room.draw.no_fixes import NoFixesFacts, draw_no_fixes, no_fixes_message
from swarm_tui.room.draw.parts import Part, wrap_text
from swarm_tui.room.notices import FINISHED_MARKS
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.store import EngineState, Store
from swarm_tui.room.widgets.lines import TextLines


class NoFixesPanel:
    """Shows why there are no fixes, in the place of their list."""

    def __init__(self, screen: ScreenServices) -> None:
        self._screen = screen
        self.lines = TextLines(id="no-fixes")

    def show(self, problem: str) -> None:
        """Show the progress of the sweep, or the problem with its branch."""
        width = max(20, self.lines.text_width)
        facts = no_fixes_facts(self._screen.store)
        if problem and not facts.is_simulated:
            title, text, role = "No fixes", problem, "warning"
        else:
            title, text, role = no_fixes_message(facts)
        self.lines.title(title)
        if self._screen.room.given_review is None:
            self.lines.show(draw_no_fixes(facts, text, role, width))
        else:
            self.lines.show([[Part(row, role)] for row in wrap_text(text, width, 12)])


def no_fixes_facts(store: Store) -> NoFixesFacts:
    """Return the progress of the sweep."""
    state, spec = store.state, store.opened.spec
    integration, counts = state.integration, state.counts
    return NoFixesFacts(
        sweep=plain(spec.sweep, 60),
        integration=integration.state,
        detail=integration.detail,
        progress=store.integration_progress(),
        integrating_for=store.clock() - integration.started_at if integration.started_at is not None else 0.0,
        done=sum(counts[mark] for mark in FINISHED_MARKS),
        total=len(state.records),
        working=state.active,
        waiting=counts[State.WAITING.value],
        queued=counts[State.QUEUED.value],
        is_living=store.engine in (EngineState.RUNNING, EngineState.ELSEWHERE),
        has_integrator=spec.integrator != "none",
        is_simulated=kind_of_sweep(spec).is_simulated,
        coming=tuple(
            (short_name(record), plain(record.harvest.summary, 200))
            for record in state.tests()
            if record.result is Result.IMPL_FIX
        ),
    )

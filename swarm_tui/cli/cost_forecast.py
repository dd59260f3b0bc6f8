"""What is said of the costs of a sweep before it begins: an estimate, and whether its budget can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.model.budget import limit_text

if TYPE_CHECKING:
    from swarm_tui.insight.estimate import PastSweep
    from swarm_tui.model.sweep import SweepSpec

SWEEPS_READ: Final = 5
"""So many earlier sweeps with known costs are read, the newest first."""


def say_cost(spec: SweepSpec, tests: Sequence[str], say: Callable[[str], None]) -> SweepSpec:
    """Say what a sweep will cost as far as that is known, and whether its budget can hold; return it with that."""
    from swarm_tui.agents.kinds import kind_of_sweep
    from swarm_tui.insight.estimate import estimate_cost

    kind = kind_of_sweep(spec)
    if not kind.has_model:
        if spec.has_budget:
            say("these agents cost nothing: the budget has nothing to hold")
        return spec
    past = islice(past_sweeps(spec), SWEEPS_READ)
    estimate = estimate_cost(tests, past, has_integrator=spec.integrator == "agent")
    if spec.has_budget and not kind.says_cost:
        say(f"{kind.title or spec.agent_type} may not say what it costs: then the budget cannot hold")
    if estimate is None:
        say("cost: unknown, for no earlier sweep here says it")
        return spec
    say(f"cost: {estimate.text}{' imputed' if spec.is_cost_imputed else ''}")
    if spec.budget is not None and estimate.dollars > spec.budget:
        say(f"the budget of {limit_text(spec.budget)} will most likely be spent before the last test is launched")
    return spec.model_copy(update={"estimated_cost": (estimate.dollars, estimate.low, estimate.high)})


def past_sweeps(spec: SweepSpec) -> Iterator[PastSweep]:
    """Return what earlier sweeps of the same repository by the same type of agent have cost, the newest first."""
    from swarm_tui.errors import SwarmError
    from swarm_tui.insight.estimate import PastSweep
    from swarm_tui.journal.folder import list_sweeps
    from swarm_tui.journal.open import open_sweep

    for folder in reversed(list_sweeps(Path(spec.repository))):
        try:
            earlier = folder.read_spec()
            if (earlier.agent_type, earlier.kind) != (spec.agent_type, spec.kind):
                continue
            state = open_sweep(folder).state
        except SwarmError:
            continue
        integrator = state.integrator.spending if state.integrator is not None else None
        tests = {
            record.test: record.spending.dollars
            for record in state.tests()
            # What still runs, or was stopped, would have cost more.
            if record.result is not None and record.spending.priced and not record.spending.unpriced
        }
        if tests:
            yield PastSweep(tests, integrator.known_dollars if integrator is not None else None)

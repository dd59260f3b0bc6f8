"""What can be done about the budget: another limit for the sweep, chosen from a list or typed into the palette."""

from __future__ import annotations

from functools import partial

from swarm_tui.insight.budget import cost_text
from swarm_tui.model.budget import is_possible_budget, limit_text, parse_dollars
from swarm_tui.model.requests import RequestKind
from swarm_tui.room.actions import OF_NO_SWEEP, Action
from swarm_tui.room.screens.dialog import Choosable, PickScreen
from swarm_tui.room.screens.engine_requests import EngineRequests
from swarm_tui.room.screens.services import ScreenServices


class BudgetCommands:
    """The actions on the budget of the sweep."""

    def __init__(self, screen: ScreenServices, requests: EngineRequests) -> None:
        self._screen = screen
        self._requests = requests

    def actions(self) -> tuple[Action, ...]:
        return (
            Action("sweep.budget", ("$",), "", "Another budget; when it is spent, nothing further is launched",
                   self.choose, self.why_not, is_of_now=True, why_not_in_watch=OF_NO_SWEEP),
        )  # fmt: skip

    def why_not(self) -> str:
        return self._screen.store.why_no_requests()

    def choose(self) -> None:
        """Let the person choose another limit, and ask the engine for it."""
        state = self._screen.store.state
        limits = suggested_limits(state.budget.total, state.spending.dollars)
        entries = [Choosable(str(limit), limit_text(limit), key=str(key)) for key, limit in enumerate(limits, 1)]
        entries.append(Choosable("0", "none", ":budget 40 sets any other", key="n"))
        spent = cost_text(state, is_imputed=self._screen.store.opened.spec.is_cost_imputed)
        title = f"Budget · {spent}" if spent else "Budget"

        def send(values: tuple[str, ...] | None) -> None:
            if values:
                self._requests.send(RequestKind.BUDGET, dollars=float(values[0]))

        self._screen.room.push_screen(PickScreen(title, entries), send)


def suggested_limits(total: float, spent: float) -> list[float]:
    """Return three round limits above what is spent, and above the present limit."""
    least = max(total, spent, 0.5)
    power = 1.0
    while power * 10 <= least:
        power *= 10
    steps = [factor * power * scale for scale in (0.1, 1.0, 10.0) for factor in (1, 1.5, 2, 3, 4, 5, 7)]
    return [step for step in steps if step > least][:3]


def budget_command(requests: EngineRequests, command: str, words: str) -> tuple[str, str, partial[None]] | None:
    """Return what `budget 40` in the palette is: its name, its meaning and what does it; None for other words."""
    kinds = {"budget": RequestKind.BUDGET, "budget-each": RequestKind.BUDGET_EACH}
    if command not in kinds or not words:
        return None
    try:
        dollars = 0.0 if words == "none" else parse_dollars(words)
    except ValueError:
        return None
    if words != "none" and not is_possible_budget(dollars):
        return None
    whose = "the sweep" if command == "budget" else "each test's agent"
    meaning = f"{limit_text(dollars)} for {whose}" if dollars else f"No limit for {whose}"
    send = partial(requests.send, kinds[command], dollars=dollars)
    return f"{command} {words}", meaning, send

"""Before a sweep begins it is said what it will cost, as far as earlier sweeps of the repository tell."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from swarm_tui.cli.sweep_options import say_cost
from swarm_tui.integrator.events import IntegrationStarted
from swarm_tui.journal.events import Pulled
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.results import Result
from swarm_tui.model.spec import derive_tests
from swarm_tui.money.events import UsageReported
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.start import write_sweep
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep

TESTS = [f"tests/test_{number}.py::test_{number}" for number in range(4)]


@pytest.fixture
def earlier(tmp_path: Path) -> SweepContext:
    """Return a sweep by Claude whose four agents have cost a dollar each, and its integrator two."""
    context = scripted_sweep(tmp_path, 4, QuickMngr(tmp_path / "mngr"), agent_type="claude", integrator="agent")
    context.record(IntegrationStarted(by="agent", agent="i"))
    for test in TESTS:
        context.record(UsageReported(test=test, dollars=1.0, tokens=9))
        context.record(Pulled(test=test, result=Result.CLEAN))
    context.record(UsageReported(test=INTEGRATOR_KEY, dollars=2.0, tokens=9))
    return context


def said(context: SweepContext, tests: list[str] = TESTS, **changes: Any) -> list[str]:
    lines: list[str] = []
    spec = dataclasses.replace(context.spec, **changes)
    assert (say_cost(spec, tests, lines.append).estimated_cost is not None) == any("about" in line for line in lines)
    return lines


def test_it_is_said_with_its_range(earlier: SweepContext) -> None:
    about = "cost: about $6.00 ($6.00 to $6.00), from 1 earlier sweep, 4 agents"
    assert said(earlier) == [about]
    assert said(earlier, is_cost_imputed=True) == [f"{about} imputed"]
    spent = "the budget of $5 is probably too small to launch all tests"
    assert said(earlier, budget=5.0) == [about, spent]
    assert said(earlier, budget=50.0, budget_each=2.0) == [about]


def test_unknown_is_said_to_be_unknown(earlier: SweepContext) -> None:
    unknown = "cost: unknown (no earlier sweep here reported it)"
    assert said(earlier, agent_type="aider") == [unknown]
    cannot = "aider may not report its cost; the budget is not enforced then"
    assert said(earlier, agent_type="aider", budget=3.0) == [cannot, unknown]
    assert said(earlier, kind="fill") == [unknown]
    assert said(earlier, repository=str(Path(earlier.spec.repository).parent)) == [unknown]


def test_agents_without_a_model_cost_nothing(earlier: SweepContext) -> None:
    assert said(earlier, agent_type="offline") == []
    assert said(earlier, agent_type="offline", budget_each=1.0) == [
        "the budget has no effect: these agents cost nothing"
    ]


def test_sweeps_that_cannot_be_read_or_say_nothing_are_passed_over(earlier: SweepContext) -> None:
    runs = earlier.folder.root.parent
    (runs / "20261119-000000").mkdir()
    (runs / "20261119-000000" / "sweep.json").write_text("{")
    later = dataclasses.replace(earlier.spec, sweep="20261119-000001")
    write_sweep(SweepFolder(runs / later.sweep), later, derive_tests(later.sweep, [(test, "", 1) for test in TESTS]))
    assert said(earlier)[0].startswith("cost: about $6.00")


def test_unknown_price_is_reported_with_its_setting(earlier: SweepContext) -> None:
    lines = said(earlier, agent_type="codex", agent_arguments=("-c", "model=new-model"), budget=3.0)
    assert lines[0].startswith("the price of new-model is unknown, so its cost is shown as ?; add it to [prices] in ")
    assert lines[1] == '  "new-model" = { input = 2, output = 8 }  # dollars for a million tokens'
    assert lines[2] == "the budget cannot be enforced without this price"
    known = said(earlier, agent_type="codex", agent_arguments=("-c", "model=gpt-5.5"), budget=3.0)
    assert known == ["cost: unknown (no earlier sweep here reported it)"]

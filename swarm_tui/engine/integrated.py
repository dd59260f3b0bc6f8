"""What every integration ends with: the integrated branch, the outcome, and what is said of tests that stay open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from swarm_tui.adapters.git import Repository
from swarm_tui.engine.context import EngineContext
from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import write_beside
from swarm_tui.model.outcome import INTEGRATOR_OUTCOME_FILE, Escalation, EscalationKind, IntegratorOutcome
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import PULLED_RESULTS, Result, State
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain

_TITLES_NAMED: Final = 50


def set_branch(repository: Repository, spec: SweepSpec, tip: str) -> None:
    """Set the integrated branch, wherever it stood before."""
    name = integrated_branch(spec)
    if name in repository.checked_out_branches():
        raise SwarmError(
            f"{name} is checked out, and a checkout is never changed",
            "check out another branch, then `swarm-tui integrate`",
        )
    repository.update_ref(f"refs/heads/{name}", tip, old=repository.ref(f"refs/heads/{name}"), reason="integrated")


def integrated_branch(spec: SweepSpec) -> str:
    return f"swarm/{spec.sweep}/integrated"


def write_outcome(context: EngineContext, outcome: IntegratorOutcome) -> None:
    context.folder.integrator.mkdir(parents=True, exist_ok=True)
    content = outcome.model_dump_json(indent=1).encode() + b"\n"
    write_beside(context.folder.integrator / INTEGRATOR_OUTCOME_FILE, content)


def with_open_tests(outcome: IntegratorOutcome, records: Sequence[TestRecord]) -> IntegratorOutcome:
    """Add what no commit speaks of: the tests that are still open, and what stands in their way."""
    still_open = [
        {"test": record.test, "result": record.mark, "reason": record.reason}
        for record in records
        if record.state is not State.DONE or (record.result not in PULLED_RESULTS and record.result is not Result.CLEAN)
    ]
    causes: dict[str, list[TestRecord]] = {}
    for record in records:
        for escalation in record.harvest.escalations:
            if record.result is Result.BLOCKED and escalation.kind is EscalationKind.BLOCKER:
                causes.setdefault(escalation.title or record.reason, []).append(record)
    blockers = tuple(
        Escalation(
            kind=EscalationKind.BLOCKER,
            title=f"{title} ({len(blocked)} tests)" if len(blocked) > 1 else title,
            detail_markdown="\n".join(f"* {plain(record.test, 300)}" for record in blocked),
        )
        for title, blocked in list(causes.items())[:_TITLES_NAMED]
    )
    update: dict[str, Any] = {"open": still_open, "escalations": (*outcome.escalations, *blockers)}
    return outcome.model_copy(update=update)

"""Harvests one agent: pulls its work, judges it, and writes down what it came to."""

from __future__ import annotations

from swarm_tui.agents.judging import End, Evidence, judge
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.pull import Pulled, pull_work
from swarm_tui.engine.tutorial_harvest import judge_batch
from swarm_tui.model.events import Harvested, Harvesting
from swarm_tui.model.harvest import HarvestedChange, HarvestReport
from swarm_tui.model.outcome import Escalation, Outcome
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.places.place import AgentAddress

_TEXT_LIMIT = 8_000
_ESCALATION_LIMIT = 20


async def harvest(context: EngineContext, test: str, agent: AgentAddress, end: End) -> Harvested:
    """Pull and judge the work of a test's agent."""
    context.record(Harvesting(test=test, source=end.value))
    pulled = await pull_work(context, context.state.records[test], agent)
    for note in pulled.notes:
        context.note(note, level="warning", test=test)
    # Asked again: the last try may have been noticed meanwhile.
    record = context.state.records[test]
    harvested = _harvested(record, pulled, end)
    if context.spec.kind != "tests":
        harvested = await judge_batch(context, record, pulled, harvested)
    context.record(harvested)
    return harvested


def _harvested(record: TestRecord, pulled: Pulled, end: End) -> Harvested:
    last = next((made for made in reversed(record.tries) if made.passed is not None), None)
    judgement = judge(
        Evidence(
            end=end,
            outcome=pulled.outcome,
            problem=pulled.problem,
            commits=pulled.brought.commits,
            commits_problem=pulled.brought.problem,
            last_try_passed=last.passed if last else None,
            last_failure=last.failure if last else "",
        )
    )
    return Harvested(
        test=record.test, result=judgement.result, reason=judgement.reason, harvest=_report_of(pulled, end)
    )


def _report_of(pulled: Pulled, end: End) -> HarvestReport:
    brought, outcome = pulled.brought, pulled.outcome or Outcome(errored=True)
    commit_of = {commit.kind: commit.commit for commit in brought.commits}
    return HarvestReport(
        end=end.value,
        summary=_clipped(outcome.summary_markdown),
        passing_before=outcome.tests_passing_before,
        passing_after=outcome.tests_passing_after,
        errored=outcome.errored,
        changes=tuple(
            HarvestedChange(
                kind=kind.value,
                status=change.status.value,
                summary=_clipped(change.summary_markdown),
                commit=commit_of.get(kind, ""),
            )
            for kind, change in outcome.changes.items()
        ),
        escalations=tuple(
            Escalation(
                kind=escalation.kind,
                title=plain(escalation.title, 300),
                detail_markdown=_clipped(escalation.detail_markdown),
            )
            for escalation in outcome.escalations[:_ESCALATION_LIMIT]
        ),
        tip=brought.tip,
        has_uncommitted=pulled.has_uncommitted,
    )


def _clipped(text: str) -> str:
    return plain_lines(text[:_TEXT_LIMIT])

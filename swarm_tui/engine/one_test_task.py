"""The task of most agents: one test, or one batch of a tutorial's blocks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.agents.judging import End, Evidence, judge
from swarm_tui.agents.kinds import AgentKind, kind_of_sweep
from swarm_tui.engine.agent_python import remove_agent_python
from swarm_tui.engine.agent_task import AgentTask
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.launch import create_request
from swarm_tui.engine.names import harvest_ref
from swarm_tui.engine.pull import Pulled, read_output
from swarm_tui.engine.schedule import LAUNCH_ATTEMPTS
from swarm_tui.engine.surroundings import Surroundings
from swarm_tui.engine.tutorial_harvest import judge_batch
from swarm_tui.model.events import Harvested, Stopped
from swarm_tui.model.harvest import HarvestReport, report_of
from swarm_tui.model.outcome import OUTCOME_FILE, BrokenReport, Outcome, parse_outcome
from swarm_tui.model.state import TestRecord, Try
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.places.place import AgentAddress
from swarm_tui.teeth.harvested import why_weaker


@dataclass(frozen=True, slots=True)
class OneTestTask:
    """Make a test pass, and better."""

    key: str
    spec: SweepSpec
    launch_attempts: int = LAUNCH_ATTEMPTS

    @property
    def kind(self) -> AgentKind:
        return kind_of_sweep(self.spec)

    @property
    def timeout(self) -> float:
        return self.spec.timeout

    def folder(self, context: EngineContext) -> Path:
        return context.agent_folder(context.state.record_of(self.key).agent)

    def commits_ref(self, context: EngineContext) -> str:
        return harvest_ref(self.spec, context.state.record_of(self.key).branch)

    def create_request(
        self, context: EngineContext, record: TestRecord, address: AgentAddress, around: Surroundings
    ) -> CreateRequest:
        return create_request(context, record, address, around)

    async def finish(self, context: EngineContext, pulled: Pulled, end: End) -> AgentTask | None:
        record = context.state.record_of(self.key)
        if pulled.has_output:
            outcome, problem = await asyncio.to_thread(_read_outcome, self.folder(context))
            pulled = replace(pulled, outcome=outcome, problem=problem)
        weaker = ""
        if pulled.fetched.tip and record.file:
            where = (context.spec.base, pulled.fetched.tip, record.file, record.test)
            weaker = await asyncio.to_thread(why_weaker, context.repository, *where)
        harvested = _harvested(record, pulled, end, weaker)
        if self.spec.kind != "tests":
            harvested = await judge_batch(context, record, pulled, harvested)
        context.record(harvested)
        if not self.spec.keep_agents:
            work_dir = context.address_of(record.agent, record.attempt).work_dir
            await asyncio.to_thread(remove_agent_python, context.folder, self.folder(context), work_dir)
        return None

    async def give_up(self, context: EngineContext, attempt: int, reason: str) -> AgentTask | None:
        judgement = judge(Evidence(end=End.NOT_LAUNCHED, problem=f"it could not be launched: {reason}"))
        report = HarvestReport(errored=True, end=End.NOT_LAUNCHED.value)
        context.record(Harvested(test=self.key, result=judgement.result, reason=judgement.reason, harvest=report))
        return None

    def record_stop(self, context: EngineContext, reason: str) -> None:
        context.record(Stopped(test=self.key, reason=reason))


def _read_outcome(folder: Path) -> tuple[Outcome | None, str]:
    raw = read_output(folder, OUTCOME_FILE)
    if raw is None:
        return None, "its archive holds no outcome"
    try:
        return parse_outcome(raw), ""
    except BrokenReport as error:
        return None, plain(str(error), 300)


def _last_try(record: TestRecord) -> Try | None:
    """Return the last try of this attempt; those of an earlier one say nothing of it."""
    tries = [made for made in record.tries if record.launched_at is None or made.at >= record.launched_at]
    return tries[-1] if tries else None


def _harvested(record: TestRecord, pulled: Pulled, end: End, weaker: str) -> Harvested:
    judgement = judge(
        Evidence(
            end=end,
            outcome=pulled.outcome,
            problem=pulled.problem,
            commits=pulled.fetched.commits,
            commits_problem=pulled.fetched.problem,
            last_try=_last_try(record),
            foreign_imports=record.foreign_imports,
            weaker=weaker,
        )
    )
    fetched = pulled.fetched
    report = report_of(
        pulled.outcome or Outcome(errored=True),
        {commit.kind: commit.commit for commit in fetched.commits},
        end=end.value,
        tip=fetched.tip,
        has_uncommitted=pulled.has_uncommitted,
        weaker=weaker,
    )
    return Harvested(test=record.test, result=judgement.result, reason=judgement.reason, harvest=report)

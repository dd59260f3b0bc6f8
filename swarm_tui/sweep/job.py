"""What agents are launched for: a test or a batch of a tutorial's blocks; see integrator.py for the integrator."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path

from msgspec import structs

from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.agents.judging import AgentEnd, Evidence, claim_of, judge, lacks_commits
from swarm_tui.agents.types import AgentType, agent_type_of_sweep
from swarm_tui.hosts.preparation import AgentPaths
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.journal.events import Pulled, Stopped
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import Try
from swarm_tui.model.pulled import OUTCOME_FILE, PulledWork
from swarm_tui.model.report import AgentReport, InvalidReport, parse_report, report_of
from swarm_tui.model.results import MARKS, Result
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.strength.signs import remarks_on_tests, why_weaker
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.integrator import IntegratorJob
from swarm_tui.sweep.launch import create_request
from swarm_tui.sweep.pull import NO_BRANCH, PulledOutput, read_output
from swarm_tui.sweep.slots import MAX_LAUNCHES
from swarm_tui.sweep.tutorial_work import judge_batch
from swarm_tui.testing.python import remove_agent_python


@dataclass(frozen=True, slots=True)
class TestJob:
    """Make a test pass, and better; or write the tests for a batch of a tutorial's blocks."""

    __test__ = False

    key: str
    spec: SweepSpec
    max_launches: int = MAX_LAUNCHES

    @property
    def kind(self) -> AgentType:
        return agent_type_of_sweep(self.spec)

    @property
    def timeout(self) -> float:
        return self.spec.timeout

    def create_request(
        self, context: SweepContext, record: TestRecord, address: AgentAddress, around: AgentPaths
    ) -> CreateRequest:
        """Return the request to mngr, and write the files that it names."""
        return create_request(context, record, address, around)

    async def finish(self, context: SweepContext, pulled: PulledOutput, end: AgentEnd) -> None:
        """Judge and record what the agent submitted."""
        record = context.state.record_of(self.key)
        if pulled.has_output:
            outcome, problem = await asyncio.to_thread(_read_outcome, context.work_folder(self.key))
            pulled = replace(pulled, outcome=outcome, problem=problem)
        weaker, remarks = "", tuple[str, ...]()
        if pulled.fetched.tip and record.file:
            where = (context.spec.base, pulled.fetched.tip, record.file, record.test)
            weaker = await asyncio.to_thread(why_weaker, context.repository, *where)
            remarks = await asyncio.to_thread(remarks_on_tests, context.repository, *where)
        is_verified = self.spec.verifies and self.spec.kind == "tests"
        event = _pulled_event(record, pulled, end, weaker, remarks, is_verified=is_verified)
        if self.spec.kind != "tests":
            event = await judge_batch(context, record, pulled, event)
        context.record(event)
        if not self.spec.keep_agents:
            work_dir = context.address_of(record.agent, record.launch).work_dir
            await asyncio.to_thread(remove_agent_python, context.folder, context.work_folder(self.key), work_dir)

    async def give_up(self, context: SweepContext, reason: str, end: AgentEnd = AgentEnd.NOT_LAUNCHED) -> None:
        """Record that the agent failed without a result."""
        judgement = judge(Evidence(end=end, problem=reason))
        report = PulledWork(errored=True, end=end.value)
        context.record(Pulled(test=self.key, result=judgement.result, reason=judgement.reason, pulled=report))

    def record_stop(self, context: SweepContext, reason: str) -> None:
        """Record that the agent was stopped before its end."""
        context.record(Stopped(test=self.key, reason=reason))


Job = TestJob | IntegratorJob
"""What one agent is launched for."""


def _read_outcome(folder: Path) -> tuple[AgentReport | None, str]:
    raw = read_output(folder, OUTCOME_FILE)
    if raw is None:
        return None, "its archive contains no report"
    try:
        return parse_report(raw), ""
    except InvalidReport as error:
        return None, plain(str(error), 300)


def _last_try(record: TestRecord) -> Try | None:
    """Return the last try since the launch. Earlier launches do not count."""
    tries = [made for made in record.tries if record.launched_at is None or made.at >= record.launched_at]
    return tries[-1] if tries else None


def _pulled_event(
    record: TestRecord,
    pulled: PulledOutput,
    end: AgentEnd,
    weaker: str,
    remarks: tuple[str, ...] = (),
    *,
    is_verified: bool,
) -> Pulled:
    """Return the event of a test's pulled work. If swarm-tui runs the test next, the result is a claim until then."""
    fetched = pulled.fetched
    if pulled.outcome is not None and not lacks_commits(pulled.outcome, fetched.commits):
        # An agent that discards its own commits, and reports no change, has lost nothing.
        fetched = replace(fetched, elsewhere=tuple(left for left in fetched.elsewhere if left.where != NO_BRANCH))
    judgement = judge(
        Evidence(
            is_verified=is_verified,
            end=end,
            report=pulled.outcome,
            problem=pulled.problem,
            commits=fetched.commits,
            commits_problem=fetched.problem,
            last_try=_last_try(record),
            foreign_imports=record.foreign_imports,
            weaker=weaker,
            remarks=(*fetched.remarks, *remarks),
        )
    )
    report = report_of(
        pulled.outcome or AgentReport(errored=True),
        {commit.kind: commit.commit for commit in fetched.commits},
        end=end.value,
        tip=fetched.tip,
        has_uncommitted=pulled.has_uncommitted,
        weaker=weaker,
        used_branch=fetched.used_branch,
        elsewhere=fetched.elsewhere,
        copy_problem=fetched.copy_problem,
    )
    claim = claim_of(judgement) if is_verified else None
    if claim is None:
        return Pulled(test=record.test, result=judgement.result, reason=judgement.reason, pulled=report)
    reason = f"{MARKS[judgement.result].word}; swarm-tui has not run the test yet"
    report = structs.replace(report, check=claim)
    return Pulled(test=record.test, result=Result.CLAIMED, reason=reason, pulled=report)

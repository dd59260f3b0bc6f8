"""One agent, from its slot to the result of its test: one coroutine."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from swarm_tui.agents.judging import ENDED_BY_ITSELF, AgentEnd
from swarm_tui.errors import ResourceShortage, SwarmError, UsageError, resource_shortage, shortage_in_words
from swarm_tui.hosts.preparation import HostCheckFailed, HostSetupFailed
from swarm_tui.hosts.protocol import HostUnreachable
from swarm_tui.integrator.events import Revision
from swarm_tui.journal.events import LaunchFailed, Pulled, Queued
from swarm_tui.limits.events import WORDS
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import integrator_of
from swarm_tui.model.text import plain
from swarm_tui.sweep.agent_context import recorded_address
from swarm_tui.sweep.integrator import IntegratorJob, begin_integrator, prepare_integration
from swarm_tui.sweep.job import Job
from swarm_tui.sweep.launch import (
    clear_debris,
    commits_ref,
    destroy_agent,
    follow_agent,
    launch,
    pull_for,
    pull_to_finish,
)
from swarm_tui.sweep.send_back import integrate_revision
from swarm_tui.sweep.slots import LAUNCH_PAUSES
from swarm_tui.sweep.verify import is_unchecked
from swarm_tui.sweep.watch import AgentFollower

if TYPE_CHECKING:
    from swarm_tui.sweep.run import RunningSweep

# A resumed engine continues tests that were stopped for this reason, and no others.
SWEEP_STOPPED: Final = "the sweep was stopped"
RETRY_PULL: Final = 1.0
"""Seconds until the work on a host that did not answer is pulled again."""
# Agents with these ends are still working when they are stopped.
_STILL_WORKING: Final = frozenset({AgentEnd.TIMEOUT, AgentEnd.NO_ANSWER, AgentEnd.OVER_BUDGET})


class Slot(NamedTuple):
    """The agent may be launched now."""

    host: str


class Stop(NamedTuple):
    """Stop the agent and keep its work; with `is_retried`, queue its test again."""

    reason: str
    is_retried: bool = False
    revision: Revision | None = None
    """The fix that was sent back, if that is why."""
    note: str = ""
    """A note for the prompt of the next agent."""


class HostAbandoned(NamedTuple):
    """The agent's host was given up."""

    reason: str


class NoHost(NamedTuple):
    """No host will launch this agent."""

    reason: str


class Checked(NamedTuple):
    """swarm-tui has run the test on the submitted commit."""


News = Slot | AgentEnd | Stop | HostAbandoned | NoHost | Checked


@dataclass(slots=True, eq=False)
class Agent:
    """The coroutine of one test, or of the integrator, and what it has been told and not yet handled."""

    key: str
    job: Job | None
    """None for an integrator whose inputs are being composed."""
    not_before: float = 0.0
    """When it may be launched, by the monotonic clock."""
    launch_failures: int = 0
    is_idle: bool = False
    """Whether its coroutine waits for news."""
    _news: deque[News] = field(default_factory=deque)
    _has_news: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, news: News) -> None:
        """Have the coroutine handle something as soon as it has handled everything before."""
        # The last request of a user counts.
        if isinstance(news, Stop):
            self._news = deque(each for each in self._news if not isinstance(each, Stop))
        self._news.append(news)
        self.is_idle = False
        self._has_news.set()

    @property
    def is_being_stopped(self) -> bool:
        return any(isinstance(news, Stop) for news in self._news)

    @property
    def is_retry_wanted(self) -> bool:
        return any(isinstance(news, Stop) and news.is_retried for news in self._news)

    async def next_news(self) -> News:
        self.is_idle = not self._news
        while not self._news:
            self._has_news.clear()
            await self._has_news.wait()
        return self._news.popleft()


async def run_agent(sweep: RunningSweep, agent: Agent) -> None:
    """Run an agent until its test has a result or is stopped, or until the sweep stops while the test is queued."""
    try:
        job = agent.job = agent.job or await _integrator_job(sweep)
        is_over = False
        while job is not None and not is_over:
            is_over = await _handle(sweep, agent, job, await agent.next_news()) and not agent.is_retry_wanted
            sweep.wake()
    finally:
        del sweep.agents[agent.key]
        sweep.wake()


async def _integrator_job(sweep: RunningSweep) -> IntegratorJob | None:
    job = await prepare_integration(sweep.context)
    if job is None:
        return None
    if sweep.is_stopping:
        job.record_stop(sweep.context, sweep.stop_reason)
        return None
    sweep.stopper.forget(integrator_of(sweep.context.spec))
    await begin_integrator(sweep.context, job)
    return job


async def _handle(sweep: RunningSweep, agent: Agent, job: Job, news: News) -> bool:
    """Do what follows from some news; return whether nothing is left to do for the test."""
    watch = sweep.watches.get(agent.key)
    match news:
        case Slot(host=host) if watch is None:
            return await _launch(sweep, agent, job, host)
        case NoHost(reason=reason) if watch is None:
            await job.give_up(sweep.context, f"it could not be launched: {reason}")
            return True
        case AgentEnd() if watch is not None:
            return await _finish(sweep, agent, job, watch, news)
        case HostAbandoned(reason=reason) if watch is not None:
            return _leave_host(sweep, agent, reason)
        case Stop():
            return await _stop(sweep, agent, job, watch, news)
        case Checked() if watch is None and sweep.context.state.record_of(agent.key).is_finished:
            await _after_check(sweep, agent.key)
            return True
        case _:
            return False


async def _launch(sweep: RunningSweep, agent: Agent, job: Job, host: str) -> bool:
    context, key = sweep.context, agent.key
    launch_number = context.state.record_of(key).launch + 1
    try:
        await launch(context, job, launch_number, host)
    except (HostSetupFailed, HostUnreachable) as error:
        _after_host_failure(sweep, agent, launch_number, str(error), is_lasting=isinstance(error, HostCheckFailed))
    except (SwarmError, OSError) as error:
        shortage = resource_shortage(error) or shortage_in_words(str(error))
        if isinstance(error, UsageError) and shortage is None:
            # The request itself is invalid, so that another launch would fail, too.
            await _give_up(sweep, job, launch_number, str(error), AgentEnd.NOT_LAUNCHED)
            return True
        sweep.pool.note_failure(host, str(error), time.monotonic())
        if host in sweep.hosts.unreachable:
            _after_host_failure(sweep, agent, launch_number, str(error))
        else:
            return await _after_failure(sweep, agent, job, launch_number, shortage, str(shortage or error))
    else:
        sweep.pool.note_success(host)
        agent.launch_failures = 0
        sweep.watches[key] = follow_agent(context, job, context.state.record_of(key), is_adopted=False)
    finally:
        del sweep.launching[key]
    return False


def _after_host_failure(
    sweep: RunningSweep, agent: Agent, launch_number: int, reason: str, *, is_lasting: bool = False
) -> None:
    """Queue a test again that could not be launched because of its host."""
    host = sweep.launching[agent.key]
    if host not in sweep.hosts.unreachable:
        sweep.pool.note_failure(host, reason, time.monotonic(), is_lasting=is_lasting)
    sweep.context.record(LaunchFailed(test=agent.key, reason=reason, launch=launch_number))
    sweep.move_to_end(agent)


async def _after_failure(
    sweep: RunningSweep, agent: Agent, job: Job, launch_number: int, shortage: ResourceShortage | None, reason: str
) -> bool:
    context, key = sweep.context, agent.key
    try:
        await clear_debris(context, context.state.record_of(key).agent, launch_number, sweep.launching[key])
    except SwarmError as error:
        context.note(f"the remains of the failed launch could not be removed: {error}", level="warning", test=key)
    pauses: Sequence[float] = LAUNCH_PAUSES[: job.max_launches - 1]
    if shortage is not None:
        pauses = context.shortage_pauses
    agent.launch_failures += 1
    if agent.launch_failures > len(pauses):
        end = AgentEnd.NOT_LAUNCHED if shortage is None else AgentEnd.OUT_OF_RESOURCES
        await _give_up(sweep, job, launch_number, reason, end)
        return True
    context.record(LaunchFailed(test=key, reason=reason, launch=launch_number))
    agent.not_before = time.monotonic() + pauses[agent.launch_failures - 1]
    sweep.move_to_end(agent)
    return False


async def _give_up(sweep: RunningSweep, job: Job, launch_number: int, reason: str, end: AgentEnd) -> None:
    sweep.context.record(LaunchFailed(test=job.key, reason=reason, launch=launch_number, is_final=True))
    await job.give_up(sweep.context, f"it could not be launched: {reason}", end)


async def _finish(sweep: RunningSweep, agent: Agent, job: Job, watch: AgentFollower, end: AgentEnd) -> bool:
    """Pull the work of an agent that has exited or submitted, judge it, and have the claim checked."""
    context, key = sweep.context, agent.key
    await _read_to_end(sweep, watch)
    # The agent may have submitted its work after its end was observed.
    end = AgentEnd.ARCHIVE if watch.has_archive else end
    api_error = watch.last_api_error(time.time())
    if end in ENDED_BY_ITSELF and api_error is not None:
        # This says nothing about its test.
        agent.not_before = time.monotonic() + sweep.throttled.recovery.pause_before_relaunch(key)
        reason = f"its agent exited during an API error: {WORDS[api_error.kind]}"
        return await _stop(sweep, agent, job, watch, Stop(reason, is_retried=True))
    try:
        await _pull(sweep, job, watch, end)
    except HostUnreachable as error:
        # The next poll after the host is back observes the end again.
        context.note_once(f"the work of {watch.address.name} cannot be pulled now: {error}", level="warning")
        await asyncio.sleep(RETRY_PULL)
        return False
    del sweep.watches[key]
    if key == INTEGRATOR_KEY:
        return True
    _stop_ended(sweep, watch, end)
    if is_unchecked(context.state.record_of(key)):
        sweep.checks.add(key)
        return sweep.is_stopping
    await _after_check(sweep, key)
    return True


async def _read_to_end(sweep: RunningSweep, watch: AgentFollower) -> None:
    await sweep.record_new_events([watch], time.monotonic())
    for event in watch.held_back_events():
        sweep.context.record(event)


async def _pull(sweep: RunningSweep, job: Job, watch: AgentFollower, end: AgentEnd) -> None:
    """Pull and judge an agent's work; an error fails only this agent, and a shortage of resources is retried."""
    context = sweep.context
    for pause in (*context.shortage_pauses, None):
        try:
            pulled, counted_end = await pull_to_finish(context, job, watch.address, end)
            if job.key == INTEGRATOR_KEY:
                # swarm-tui measures its branch next, which takes a while.
                _stop_ended(sweep, watch, end)
            await job.finish(context, pulled, counted_end)
            return
        except HostUnreachable:
            raise
        except Exception as error:
            record, shortage = context.state.record_of(job.key), resource_shortage(error)
            if record.state is State.DONE:
                context.note(f"after its work was pulled: {error}", level="warning", test=job.key)
                return
            if shortage is None:
                if not isinstance(error, SwarmError | OSError):
                    traceback.print_exc()
                reason = f"its work could not be processed: {plain(str(error), 300) or type(error).__name__}"
                await job.give_up(context, reason, AgentEnd.UNREADABLE)
                return
            if pause is None or sweep.is_stopping:
                reason = f"its work could not be fetched; `swarm-tui resume` repeats it: {shortage}"
                await job.give_up(context, reason, AgentEnd.OUT_OF_RESOURCES)
                return
            context.note_once(f"agents' work is fetched again in a moment: {shortage}", level="warning")
            await asyncio.sleep(pause)


def _stop_ended(sweep: RunningSweep, watch: AgentFollower, end: AgentEnd) -> None:
    if not sweep.context.spec.keep_agents:
        sweep.stopper.stop(watch, is_working=end in _STILL_WORKING or watch.is_mid_turn(time.time()))


async def _after_check(sweep: RunningSweep, key: str) -> None:
    """Let the next integration include the final result of a test."""
    if not await integrate_revision(sweep.context, key):
        sweep.is_integration_due = True


def _leave_host(sweep: RunningSweep, agent: Agent, reason: str) -> bool:
    """Queue the test of an agent again whose host was given up; without another host it fails."""
    del sweep.watches[agent.key]
    if sweep.pool.why_hopeless(sweep.hosts.gone):
        report = PulledWork(errored=True, end=AgentEnd.GONE.value)
        sweep.context.record(Pulled(test=agent.key, result=Result.ERROR, reason=reason, pulled=report))
        sweep.is_integration_due = True
        return True
    sweep.context.record(Queued(test=agent.key, reason=reason))
    sweep.move_to_end(agent)
    return False


async def _stop(sweep: RunningSweep, agent: Agent, job: Job, watch: AgentFollower | None, stop: Stop) -> bool:
    context, record = sweep.context, sweep.context.state.record_of(agent.key)
    if watch is not None:
        await _read_to_end(sweep, watch)
        if watch.has_archive and not stop.is_retried:
            return await _finish(sweep, agent, job, watch, AgentEnd.ARCHIVE)
        try:
            await _keep_work(sweep, job, watch)
        except HostUnreachable as error:
            context.note(f"its work so far cannot be pulled: {error}", level="warning", test=agent.key)
        job.record_stop(context, stop.reason)
        del sweep.watches[agent.key]
        if not stop.is_retried:
            sweep.stopper.stop(watch, is_working=True)
    elif not stop.is_retried and not record.is_finished:
        is_left_queued = stop.reason == SWEEP_STOPPED and agent.key != INTEGRATOR_KEY and record.state is State.QUEUED
        if not is_left_queued:
            job.record_stop(context, stop.reason)
    return await _retry(sweep, agent, stop) if stop.is_retried else True


async def _keep_work(sweep: RunningSweep, job: Job, watch: AgentFollower) -> None:
    """Pull what an agent has committed so far."""
    context = sweep.context
    pulled = await pull_for(context, job, watch.address)
    for note in pulled.notes:
        context.note(note, test=job.key)
    if pulled.fetched.tip and job.key != INTEGRATOR_KEY:
        kept = commits_ref(context, job.key)
        context.note(f"its {len(pulled.fetched.commits)} commits are kept as {kept}", test=job.key)


async def _retry(sweep: RunningSweep, agent: Agent, stop: Stop) -> bool:
    """Queue a test again after its old agent, which has the same name, was removed."""
    context, record = sweep.context, sweep.context.state.record_of(agent.key)
    if agent.key == INTEGRATOR_KEY:
        # The next integration removes it.
        sweep.is_integration_due = True
        return True
    # A call that stops the old agent would also stop the new one.
    await sweep.stopper.finished(record.agent)
    sweep.stopper.forget(record.agent)
    try:
        if record.state_dir:
            await destroy_agent(context, recorded_address(context.spec, record))
    except HostUnreachable as error:
        # It is stopped when its host is back.
        context.note(f"its old agent is not removed yet: {error}", level="warning", test=agent.key)
    except SwarmError as error:
        context.note(f"its old agent could not be removed: {error}", level="error", test=agent.key)
        return True
    context.record(Queued(test=agent.key, reason=stop.reason, revision=stop.revision, note=stop.note))
    agent.launch_failures = 0
    sweep.move_to_end(agent)
    return sweep.is_stopping

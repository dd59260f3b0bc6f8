"""One sweep while its engine works on it: the agents' coroutines, the polls that serve all of them, and the guards."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from swarm_tui.adapters.file_notices import FileNotices, NoticedFile
from swarm_tui.agents.judging import AgentEnd
from swarm_tui.errors import JournalError, ResourceShortage, SwarmError, resource_shortage
from swarm_tui.hosts.protocol import HostUnreachable
from swarm_tui.journal.events import PollFailed, PollRecovered
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.results import State
from swarm_tui.model.spec import LOCAL_HOST, integrator_of
from swarm_tui.sweep.agent import SWEEP_STOPPED, Agent, Checked, HostAbandoned, NoHost, Slot, Stop, run_agent
from swarm_tui.sweep.answers import AnswerDelivery
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.guards import BudgetGuard, PatternGuard, StuckAgents, ThrottledAgents
from swarm_tui.sweep.host_creation import HostCreation
from swarm_tui.sweep.host_keeper import HostKeeper, resume_on_host
from swarm_tui.sweep.host_pool import HostPool, HostUse
from swarm_tui.sweep.integrator import IntegratorJob
from swarm_tui.sweep.job import Job, TestJob
from swarm_tui.sweep.launch import follow_agent
from swarm_tui.sweep.messages import AgentMessages
from swarm_tui.sweep.polls import DoubtfulScreens, EditWatch
from swarm_tui.sweep.send_back import integrate_pending
from swarm_tui.sweep.slots import next_launches, slots_taken
from swarm_tui.sweep.stop import Stopper
from swarm_tui.sweep.verify import ClaimChecks, is_unchecked
from swarm_tui.sweep.watch import AgentFollower, read_new_events

if TYPE_CHECKING:
    from swarm_tui.sweep.requests import RequestHandler

TICK: Final = 0.1
TICKS_OF_ROUND: Final = 5
"""The ticks between two rounds if all changes of files are reported: a round then only checks the time."""
TICKS_OF_LOOK: Final = 20
"""The ticks between two reads of all files, reported or not."""
PAUSE: Final = 0.005
"""Seconds in which changes are collected, so that the files of many agents are read at once."""
STATUS_INTERVAL: Final = 1.0


class Wakeup:
    """Wakes the loop when files change or an agent needs it. If not all changes are reported, each tick is a round."""

    def __init__(self, context: SweepContext, tick: float) -> None:
        self._context = context
        self._tick = tick
        self._notices = FileNotices()
        self._requests: NoticedFile | None = None
        self._agents: set[str] = set()
        self._is_round_due = False
        self._has_come = asyncio.Event()
        self._look_due = 0.0

    def begin(self) -> None:
        """Let the hosts and the system report changes."""
        self._context.hosts.on_change(self._note)
        self._requests = self._notices.follow(self._context.folder.requests, self.wake)

    def close(self) -> None:
        self._notices.close()

    def wake(self) -> None:
        """Begin the next round now."""
        self._is_round_due = True
        self._has_come.set()

    def _note(self, agent: str) -> None:
        self._agents.add(agent)
        self._has_come.set()

    @property
    def _is_complete(self) -> bool:
        is_request_told = self._requests is not None and self._requests.is_noticed
        return is_request_told and self._context.hosts.reports_changes()

    def next_round(self) -> float:
        """Return when the next round is due, by the monotonic clock."""
        return time.monotonic() + self._tick * (TICKS_OF_ROUND if self._is_complete else 1)

    async def come_before(self, next_round: float) -> bool:
        """Wait until agents have written something and return True, or return False if a round is due."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(next_round - time.monotonic()):
                await self._has_come.wait()
                while not self._is_round_due and not self._is_complete:
                    self._has_come.clear()
                    await self._has_come.wait()
                await asyncio.sleep(PAUSE)
        is_due = self._is_round_due or time.monotonic() >= next_round
        self._is_round_due = False
        self._has_come.clear()
        return not is_due

    def take(self, now: float) -> set[str] | None:
        """Return the ids of the agents that have written, or None if the files of all agents must be read."""
        agents, self._agents = self._agents, set()
        if now < self._look_due and self._is_complete:
            return agents
        self._look_due = now + self._tick * TICKS_OF_LOOK
        return None


class RunningSweep:
    """Runs one sweep on one event loop. Only git and the writing of large files use threads.

    Each test without a result has an `Agent`: a coroutine, which is told its slot, its agent's end, and requests. Calls
    that cost the same for one agent as for many are in this class, for all agents at once.
    """

    group: asyncio.TaskGroup

    def __init__(self, context: SweepContext, *, tick: float = TICK, is_integrating_only: bool = False) -> None:
        self.context = context
        self.agents: dict[str, Agent] = {}
        """The agents with a coroutine by test; those that are queued are in the order of the queue."""
        self.launching: dict[str, str] = {}
        """The hosts on which agents are being created, by test."""
        self.watches: dict[str, AgentFollower] = {}
        """The agents that were launched, by test, until their work is pulled."""
        self.is_integration_due = is_integrating_only or context.state.integration.state != "done"
        """Whether there is work that no integration has included."""
        self.is_stopping = False
        self.stop_reason = ""
        self.stopper = Stopper(context)
        self.checks = ClaimChecks(context, lambda test: self._tell(test, Checked()))
        self.messages = AgentMessages(context, self)
        self.answers = AnswerDelivery(context, self, self.messages)
        spec = context.spec
        is_growing = spec.provider != LOCAL_HOST
        self.pool = HostPool([access.name for access in spec.access], spec.per_host, is_growing=is_growing)
        self.hosts = HostKeeper(context, self.watches)
        self.new_hosts = HostCreation(context, self.pool) if is_growing else None
        self._returning: set[str] = set()
        """Hosts that are back, but whose agents are not known yet."""
        self.budget_guard = BudgetGuard(context, self, self.messages)
        self.throttled = ThrottledAgents(
            context, self, self.messages, lambda test, reason: self.stop_test(test, Stop(reason, is_retried=True))
        )
        self._stuck_agents = StuckAgents(context, self, self.messages)
        self._pattern_guard = PatternGuard(context)
        self._edit_watch = EditWatch(context, self)
        self._screens = DoubtfulScreens(context.hosts)
        self._wakeup = Wakeup(context, tick)
        self._status_due = 0.0
        self._is_stale = False
        self._is_overfull = False
        """Whether as many agents wait for an answer as there are slots."""
        self._is_running = False
        for record in () if is_integrating_only else context.state.tests():
            if record.state is State.QUEUED:
                self.add(record.test)
            elif is_unchecked(record):
                self.add(record.test)
                self.checks.add(record.test)

    async def run(self, inbox: RequestHandler | None = None) -> None:
        """Run until no work is left, or until the sweep is stopped; `inbox` has the requests of users."""
        await integrate_pending(self.context)
        self._wakeup.begin()
        try:
            await self._work(inbox)
        finally:
            self._wakeup.close()
            await self.checks.close()
        if self.new_hosts is not None:
            await self.new_hosts.end()

    async def _work(self, inbox: RequestHandler | None) -> None:
        async with asyncio.TaskGroup() as self.group:
            self._is_running = True
            for agent in list(self.agents.values()):
                self.group.create_task(run_agent(self, agent))
            while True:
                now = time.monotonic()
                if inbox is not None:
                    self._read_requests(inbox)
                await self._read_files(now)
                if now >= self._status_due:
                    self._status_due = now + STATUS_INTERVAL
                    self._look_at_hosts(now)
                    await self._read_statuses(now)
                    self.throttled.work(self.group, time.time())
                    self._stuck_agents.work(self.group, time.time())
                for test in self.budget_guard.work(self.group, now):
                    self._tell(test, AgentEnd.OVER_BUDGET)
                self._watch_patterns(now)
                self.answers.apply_rules(self.group)
                self.checks.work(self.group, self.hosts.unreachable, self.hosts.gone)
                self._grant_slots(now)
                is_last = not self.checks.is_busy and self.agents.keys() <= {INTEGRATOR_KEY}
                self.stopper.work(self.group, is_last=is_last)
                if is_last:
                    self._integrate(now)
                # Messages and answers that are still being sent end with the group: their agents are gone.
                if is_last and not self.agents and not self.stopper.is_busy:
                    break
                await self._pause()

    # Agents

    def add(self, test: str) -> Agent:
        """Add the coroutine of a test at the end of the queue."""
        return self.add_agent(Agent(test, TestJob(test, self.context.spec)))

    def add_agent(self, agent: Agent) -> Agent:
        self.agents[agent.key] = agent
        if self._is_running:
            self.group.create_task(run_agent(self, agent))
        return agent

    def adopt(self, job: Job) -> None:
        """Follow an agent that was launched before."""
        agent = self.agents.get(job.key) or self.add_agent(Agent(job.key, job))
        record = self.context.state.record_of(agent.key)
        self.watches[agent.key] = follow_agent(self.context, job, record, is_adopted=True)

    def move_to_end(self, agent: Agent) -> None:
        """Move a queued test to the end of the queue."""
        self.agents[agent.key] = self.agents.pop(agent.key)

    def is_queued(self, test: str) -> bool:
        """Return whether a test waits for a slot, and nothing else is being done with it."""
        agent = self.agents.get(test)
        is_waiting = agent is not None and agent.is_idle and test not in self.watches
        return is_waiting and self.context.state.record_of(test).state is State.QUEUED

    @property
    def queue(self) -> list[str]:
        """The tests that wait for a slot."""
        records = self.context.state.records
        started = self.launching.keys() | self.watches.keys() | {INTEGRATOR_KEY}
        return [test for test in self.agents if test not in started and records[test].state is State.QUEUED]

    def wake(self) -> None:
        """Begin the next round of the loop now."""
        self._wakeup.wake()

    def stop_test(self, test: str, stop: Stop) -> None:
        """Stop the agent of a test, and queue the test again if that is wanted."""
        if test in self.agents:
            self.agents[test].tell(stop)
        elif test == INTEGRATOR_KEY:
            self.is_integration_due = self.is_integration_due or stop.is_retried
        elif stop.is_retried:
            self.add(test).tell(stop)

    def stop_sweep(self, reason: str) -> None:
        """Launch nothing more, pull submitted work and stop the other agents; `resume` continues."""
        self.is_stopping, self.stop_reason = True, reason
        self.checks.cancel()
        for agent in self.agents.values():
            if isinstance(agent.job, IntegratorJob):
                agent.job.cancel()
            if not agent.is_being_stopped:
                agent.tell(Stop(SWEEP_STOPPED))

    def _tell(self, test: str, news: Checked | AgentEnd) -> None:
        """Pass news to an agent's coroutine if it is idle; otherwise drop them."""
        agent = self.agents.get(test)
        if agent is not None and agent.is_idle:
            agent.tell(news)

    # Slots

    def _grant_slots(self, now: float) -> None:
        state = self.context.state
        is_empty = not state.counts[State.QUEUED.value]
        if (
            self.is_stopping
            or state.launches_nothing
            or is_empty
            or not self.throttled.recovery.may_launch(time.time())
        ):
            return
        waiting, slots = state.counts[State.WAITING.value], state.open_slots
        if waiting >= slots and not self._is_overfull:
            most = 2 * slots
            self.context.note(f"{waiting} agents wait for an answer: others are launched, until {most} live at once")
        self._is_overfull = waiting >= slots
        chosen = next_launches(
            (test for test, agent in self.agents.items() if agent.not_before <= now and self.is_queued(test)),
            state.records,
            slots=slots,
            taken=slots_taken(state.active, waiting, slots),
            creating=len(self.launching),
            creates_at_once=self.pool.creates_at_once,
            groups_at_work=self.checks.groups_at_work,
        )
        for test in chosen:
            closed = self.hosts.unreachable | self._returning
            host = self.pool.choose(self.hosts_in_use(), closed, now)
            if host is None:
                self._give_up_hopeless()
                return
            self.launching[test] = host
            self.agents[test].tell(Slot(host))

    def _give_up_hopeless(self) -> None:
        """Give up all queued tests if no host will launch an agent any more."""
        reason = self.pool.why_hopeless(self.hosts.gone) or (self.new_hosts.why_hopeless if self.new_hosts else "")
        for test, agent in self.agents.items() if reason else ():
            if self.is_queued(test):
                agent.tell(NoHost(reason))

    def _integrate(self, now: float) -> None:
        """Start an integrator when all tests have results, or launch the one that waits for it."""
        agent = self.agents.get(INTEGRATOR_KEY)
        if agent is not None:
            is_unpaid = agent.job is not None and agent.job.kind.has_model and self.context.state.budget.is_used_up
            is_waiting = agent.is_idle and INTEGRATOR_KEY not in self.watches
            if is_waiting and not is_unpaid and agent.not_before <= now:
                self.launching[INTEGRATOR_KEY] = LOCAL_HOST
                agent.tell(Slot(LOCAL_HOST))
        elif (
            self.is_integration_due
            and not self.is_stopping
            and self.context.spec.integrator != "none"
            # A stop that is under way would also stop the new integrator, which has the same name.
            and not self.stopper.is_stopping(integrator_of(self.context.spec))
        ):
            self.is_integration_due = False
            self.add_agent(Agent(INTEGRATOR_KEY, None))

    # Polls

    def _read_requests(self, inbox: RequestHandler) -> None:
        try:
            inbox.carry_out_new(self.group)
        except JournalError as error:
            self._wait_out_shortage(error, "requests are")

    def _wait_out_shortage(self, error: SwarmError, what: str) -> None:
        """Note a shortage of this machine that may be over in the next round; raise other errors."""
        shortage = resource_shortage(error)
        if shortage is None:
            raise error
        self.context.note_once(f"{what} read again in a moment: {shortage}", level="warning")

    async def _pause(self) -> None:
        """Wait for the next round, and read what agents write until then."""
        next_round = self._wakeup.next_round()
        while await self._wakeup.come_before(next_round):
            await self._read_files(time.monotonic())

    async def _read_files(self, now: float) -> None:
        """Record the news in the files of agents; tell agents that have submitted their work or are overdue."""
        lost, changed = self.hosts.lost, self._wakeup.take(now)
        watches = [
            watch
            for test, watch in self.watches.items()
            if self.agents[test].is_idle and watch.address.host not in lost
            if changed is None or watch.is_unread or watch.address.agent_id in changed
        ]
        await self.record_new_events(watches, now)
        clock = time.time()
        for watch in watches:
            end = watch.overdue_end(now) if not watch.has_archive else None
            if watch.is_ready_to_pull(now, clock):
                end = AgentEnd.ARCHIVE
            if end is not None:
                self._tell(watch.task.key, end)

    async def record_new_events(self, watches: Sequence[AgentFollower], now: float) -> None:
        """Record the news in the files of some agents."""
        try:
            events = await read_new_events(self.context.hosts, watches, now)
        except ResourceShortage as error:
            self._wait_out_shortage(error, "agents' files are")
            return
        for event in events:
            self.context.record(event)

    async def _read_statuses(self, now: float) -> None:
        """Record what all agents are doing; tell those that have exited."""
        if not self.watches:
            return
        try:
            statuses = await self.context.hosts.statuses(follow=True)
        except HostUnreachable as error:
            if not self._is_stale:
                self._is_stale = True
                self.context.record(PollFailed(reason=str(error)))
            return
        if self._is_stale:
            self._is_stale = False
            self.context.record(PollRecovered())
        clock = time.time()
        doubtful = [watch.address for watch in self.watches.values() if watch.needs_screen(now, clock)]
        screens = await self._screens.read(doubtful)
        for test, watch in self.watches.items():
            if not self.agents[test].is_idle or statuses.is_unknown(watch.address):
                continue
            status = statuses.agents.get(watch.address.agent_id)
            was_waiting = watch.state is State.WAITING
            process = status.state if status else None
            seen, end = watch.observe(process, now, clock, screens.get(watch.address.session))
            if seen is not None:
                self.context.record(seen)
                if seen.state is State.WAITING and not was_waiting:
                    self.messages.answer_question(self.group, watch)
            if end is not None:
                self._tell(test, end)

    def hosts_in_use(self) -> dict[str, HostUse]:
        """Return the agents of each host."""
        return self.hosts.uses(self.launching)

    def _look_at_hosts(self, now: float) -> None:
        changes = self.hosts.look(now)
        for host in changes.back:
            # Its agents are adopted or stopped before anything new is launched there.
            self._returning.add(host)
            task = self.group.create_task(resume_on_host(self, host))
            task.add_done_callback(lambda _, host=host: self._returning.discard(host))  # type: ignore[misc]
        for test, watch in self.watches.items():
            name = watch.address.host
            if name in changes.gone and self.agents[test].is_idle:
                self.agents[test].tell(HostAbandoned(f"{name} was given up: {self.context.state.hosts[name].reason}"))
        if self.new_hosts is not None:
            self.new_hosts.look(self)

    # Guards

    def _watch_patterns(self, now: float) -> None:
        self._pattern_guard.work(now)
        self._edit_watch.work(self.group, now)
        is_idle = not self.watches and all(agent.is_idle for agent in self.agents.values())
        queue = self.queue if is_idle else []
        for test in self._pattern_guard.unreleased(now, queue, is_idle=is_idle):
            self.stop_test(test, Stop("held because of similar failures and not released"))


def first_error(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

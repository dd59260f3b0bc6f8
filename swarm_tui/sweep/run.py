"""TaskGroup of agents, guards, wake-ups, requests delivered to agents' tasks."""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Protocol

from swarm_tui.adapters.file_notices import FileNotices, NoticedFile
from swarm_tui.agents.judging import ENDED_BY_ITSELF, AgentEnd
from swarm_tui.errors import (
    JournalError,
    ResourceShortage,
    SwarmError,
    UsageError,
    resource_shortage,
    shortage_in_words,
)
from swarm_tui.hosts.preparation import HostCheckFailed, HostSetupFailed
from swarm_tui.hosts.protocol import HostUnreachable
from swarm_tui.integrator.events import Revision
from swarm_tui.journal.events import LaunchFailed, ProbeFailed, ProbeRecovered, Queued
from swarm_tui.limits.events import WORDS
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.results import State
from swarm_tui.model.text import plain
from swarm_tui.sweep.agent import OneTestTask
from swarm_tui.sweep.agent_context import integrator_of, recorded_address
from swarm_tui.sweep.answers import AnswerDelivery
from swarm_tui.sweep.budget_guard import BudgetGuard
from swarm_tui.sweep.context import SweepContext
from swarm_tui.sweep.host_creation import HostCreation
from swarm_tui.sweep.host_keeper import HostKeeper, abandon_hosts, resume_on_host
from swarm_tui.sweep.host_pool import HostPool, HostUse
from swarm_tui.sweep.integrator import IntegratorTask, begin_integrator, prepare_integration
from swarm_tui.sweep.launch import AgentTask, clear_debris, destroy_agent, launch, pull_for, pull_to_finish
from swarm_tui.sweep.live_agents import LiveAgents, TaskWatch
from swarm_tui.sweep.messages import AgentMessages
from swarm_tui.sweep.pattern_guard import PatternGuard
from swarm_tui.sweep.polls import DoubtfulScreens, EditWatch
from swarm_tui.sweep.send_back import integrate_pending, integrate_revision
from swarm_tui.sweep.slots import LAUNCH_PAUSES, next_launches, slots_taken
from swarm_tui.sweep.stop import Stopper
from swarm_tui.sweep.stuck_agents import StuckAgents
from swarm_tui.sweep.throttle import ThrottledAgents
from swarm_tui.sweep.verify import ClaimChecks, is_unchecked
from swarm_tui.sweep.watch import AgentFollower, read_new_events

TICKS_OF_ROUND: Final = 5
"""A round comes after so many ticks where whatever happens is told, for it has only clocks to look at."""
TICKS_OF_LOOK: Final = 20
"""All files are looked at after so many ticks all the same."""
PAUSE: Final = 0.005
"""What many agents write within so many seconds is read at once."""


class Wakeup:
    """What has happened since the runner looked last. Where not everything is told, every tick is a look at all."""

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
        """Ask hosts and system for notifications."""
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
        """Wait until agents have written something, and return True; False when a round is due."""
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
        """Return the ids of the agents that have written; None when all are to be looked at."""
        agents, self._agents = self._agents, set()
        if now < self._look_due and self._is_complete:
            return agents
        self._look_due = now + self._tick * TICKS_OF_LOOK
        return None


TICK: Final = 0.1
STATUS_INTERVAL: Final = 1.0
# A resumed engine continues tests that were stopped for this reason, and no others.
SWEEP_STOPPED: Final = "the sweep was stopped"
# An agent that still runs after its time is over is working against the next one.
_STILL_WORKING: Final = frozenset({AgentEnd.TIMEOUT, AgentEnd.NO_ANSWER, AgentEnd.OVER_BUDGET})


class Requests(Protocol):
    """The requests of people, as the runner uses them."""

    @property
    def is_busy(self) -> bool: ...

    def carry_out_new(self, group: asyncio.TaskGroup) -> None: ...


class SweepRunner:
    """Runs one sweep on one event loop; only git and the writing of large files use threads."""

    def __init__(self, context: SweepContext, *, tick: float = TICK, is_integrating_only: bool = False) -> None:
        self.context = context
        self.live_agents = LiveAgents(folder=context.folder)
        self.queue: dict[str, None] = {}
        if not is_integrating_only:
            self.queue |= dict.fromkeys(rec.test for rec in context.state.tests() if rec.state is State.QUEUED)
        self.is_integration_due = is_integrating_only or context.state.integration.state != "done"
        """Whether there is work that no integration has seen."""
        self.checks = ClaimChecks(context, self._after_check)
        for record in () if is_integrating_only else context.state.tests():
            if is_unchecked(record):
                self.checks.add(record.test)
        self.integrator: IntegratorTask | None = None
        """The task of the integrator while it is under way."""
        self.is_stopping = False
        self.stop_reason = ""
        self._news = Wakeup(context, tick)
        self._stopper = Stopper(context, self.live_agents)
        self.messages = AgentMessages(context, self.live_agents)
        self._pattern_guard = PatternGuard(context)
        self._edit_watch = EditWatch(context, self.live_agents)
        self.budget_guard = BudgetGuard(context, self.live_agents, self.messages)
        self._stuck_agents = StuckAgents(context, self.live_agents, self.messages)
        self.hindered = ThrottledAgents(context, self.live_agents, self.messages, self._relaunch)
        self.answers = AnswerDelivery(context, self.live_agents, self.messages)
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._creating: dict[str, str] = {}
        """Agents that are being created, each with its host."""
        spec = context.spec
        is_growing = spec.provider != LOCAL_HOST
        self.pool = HostPool([access.name for access in spec.access], spec.per_host, is_growing=is_growing)
        self.new_hosts = HostCreation(context, self.pool) if is_growing else None
        self.hosts = HostKeeper(context, self.live_agents)
        self._returning: set[str] = set()
        """Hosts that are back, and whose agents are being looked for."""
        self._screens = DoubtfulScreens(context.hosts)
        self._is_integrator_queued = False
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._to_stop: dict[str, tuple[str, bool]] = {}
        """Tests to be stopped: why, and whether they are queued again."""
        self._revisions: dict[str, Revision] = {}
        self._notes: dict[str, str] = {}
        """What was sent back, of tests that are about to be queued again."""
        self._is_stale = False
        self._is_overfull = False
        """Whether as many agents wait for an answer as there are slots."""
        self._status_due = 0.0
        self.group: asyncio.TaskGroup

    async def run(self, inbox: Requests) -> None:
        """Run until no work is left, or until the sweep is stopped."""
        await integrate_pending(self.context)
        self._news.begin()
        try:
            await self._work(inbox)
        finally:
            self._news.close()
            await self.checks.close()
        if self.new_hosts is not None:
            await self.new_hosts.end()

    async def _work(self, inbox: Requests) -> None:
        async with asyncio.TaskGroup() as self.group:
            while True:
                now = time.monotonic()
                self._read_requests(inbox)
                await self._read_files(now)
                if now >= self._status_due:
                    self._status_due = now + STATUS_INTERVAL
                    self._look_at_hosts(now)
                    await self._read_statuses(now)
                    self.hindered.work(self.group, time.time())
                    self._stuck_agents.work(self.group, time.time())
                self._hold_to_budget(now)
                self._watch_patterns(now)
                self.answers.apply_rules(self.group)
                self._stop_tests()
                self.checks.work(self.group, self.hosts.unreachable, self.hosts.gone)
                self._launch(now)
                is_last = self._are_tests_done()
                self._stopper.work(self.group, is_last=is_last)
                self._integrate(now)
                parts = (self._stopper, self.messages, self.answers, self.budget_guard, inbox)
                if is_last and not self._is_integrating and not any(part.is_busy for part in parts):
                    break
                await self._pause()

    def _read_requests(self, inbox: Requests) -> None:
        try:
            inbox.carry_out_new(self.group)
        except JournalError as error:
            self._wait_out_shortage(error, "requests are")

    def _wait_out_shortage(self, error: SwarmError, what: str) -> None:
        """Note a shortage of this machine that the next round may not meet; raise other errors."""
        shortage = resource_shortage(error)
        if shortage is None:
            raise error
        self.context.note_once(f"{what} read again in a moment: {shortage}", level="warning")

    async def _pause(self) -> None:
        """Wait for the next round, and read meanwhile what agents write."""
        next_round = self._news.next_round()
        while await self._news.come_before(next_round):
            await self._read_files(time.monotonic())

    def _are_tests_done(self) -> bool:
        under_way = self.live_agents.watches.keys() | self._busy.keys() | self._to_stop.keys()
        is_idle = not under_way - {INTEGRATOR_KEY} and not self.checks.is_busy
        return is_idle and (self.is_stopping or not self.queue)

    @property
    def _is_integrating(self) -> bool:
        under_way = (self.live_agents.watches, self._busy, self._to_stop)
        return self._is_integrator_queued or any(INTEGRATOR_KEY in keys for keys in under_way)

    def _integrate(self, now: float) -> None:
        """Begin to integrate when the last test is harvested, and again when a test was retried after that."""
        if self.is_stopping or INTEGRATOR_KEY in self._busy:
            return
        if self._is_integrator_queued:
            if self._is_integrator_unpaid or self._not_before.get(INTEGRATOR_KEY, 0.0) > now:
                return
            self._is_integrator_queued = False
            self._creating[INTEGRATOR_KEY] = LOCAL_HOST
            self._begin(INTEGRATOR_KEY, self._create(INTEGRATOR_KEY, LOCAL_HOST))
        elif (
            self.is_integration_due
            and self.context.spec.integrator != "none"
            and self._are_tests_done()
            and not self._is_integrating
            # A stop that is under way would also stop the new integrator, which has the same name.
            and not self._stopper.is_stopping(integrator_of(self.context.spec))
        ):
            self.is_integration_due = False
            self._begin(INTEGRATOR_KEY, self._prepare_integration())

    @property
    def _is_integrator_unpaid(self) -> bool:
        """Whether the budget is used up and the integrator would cost something."""
        is_paid = self.integrator is not None and self.integrator.kind.has_model
        return is_paid and self.context.state.budget.is_used_up

    async def _prepare_integration(self) -> None:
        task = await prepare_integration(self.context)
        if task is not None:
            await self._queue_integrator(task)

    async def _queue_integrator(self, task: IntegratorTask) -> None:
        if self.is_stopping:
            task.record_stop(self.context, self.stop_reason)
            return
        self.integrator = task
        self.live_agents.stop_not(integrator_of(self.context.spec))
        await begin_integrator(self.context, task)
        self._failures.pop(INTEGRATOR_KEY, None)
        self._not_before.pop(INTEGRATOR_KEY, None)
        self._is_integrator_queued = True

    def task_of(self, key: str) -> AgentTask:
        if key == INTEGRATOR_KEY and self.integrator is not None:
            return self.integrator
        return OneTestTask(key, self.context.spec)

    def _begin(self, test: str, work: Coroutine[Any, Any, None]) -> None:
        """Start work on one test, which is busy until the work has ended."""
        task = self.group.create_task(work)
        self._busy[test] = task
        task.add_done_callback(lambda _: self._end(test))

    def _end(self, test: str) -> None:
        self._busy.pop(test, None)
        self._news.wake()

    async def _read_files(self, now: float) -> None:
        """Record what is new in the files of living agents; begin to harvest those that are done or overdue."""
        lost, busy, told = self.hosts.lost, self._busy, self._news.take(now)
        watches = [
            watch
            for test, watch in self.live_agents.watches.items()
            if test not in busy and watch.address.host not in lost
            if told is None or watch.is_unread or watch.address.agent_id in told
        ]
        await self._record_new_events(watches, now)
        clock = time.time()
        for watch in watches:
            end = watch.overdue_end(now) if not watch.has_archive else None
            if watch.is_ready_to_harvest(now, clock):
                end = AgentEnd.ARCHIVE
            if end is not None:
                self._begin(watch.task.key, self._harvest(watch.task.key, end))

    def _hold_to_budget(self, now: float) -> None:
        for test in self.budget_guard.work(self.group, now):
            if test not in self._busy:
                self._begin(test, self._harvest(test, AgentEnd.OVER_BUDGET))

    def _watch_patterns(self, now: float) -> None:
        self._pattern_guard.work(now)
        self._edit_watch.work(self.group, now)
        is_idle = not self.live_agents.watches and not self._busy and not self._to_stop
        for test in self._pattern_guard.unreleased(now, list(self.queue), is_idle=is_idle):
            self.request_stop(test, "held by the breaker, and nobody released it")

    async def _record_new_events(self, watches: Sequence[AgentFollower], now: float) -> None:
        try:
            events = await read_new_events(self.context.hosts, watches, now)
        except ResourceShortage as error:
            self._wait_out_shortage(error, "agents' files are")
            return
        for event in events:
            self.context.record(event)

    async def _read_statuses(self, now: float) -> None:
        """Record what all living agents are doing; begin to harvest those that have ended."""
        if not self.live_agents.watches:
            return
        try:
            statuses = await self.context.hosts.statuses(follow=True)
        except HostUnreachable as error:
            if not self._is_stale:
                self._is_stale = True
                self.context.record(ProbeFailed(reason=str(error)))
            return
        if self._is_stale:
            self._is_stale = False
            self.context.record(ProbeRecovered())
        clock = time.time()
        doubtful = [watch.address for watch in self.live_agents.watches.values() if watch.needs_screen(now, clock)]
        screens = await self._screens.read(doubtful)
        for test, watch in list(self.live_agents.watches.items()):
            if test in self._busy or statuses.is_unknown(watch.address):
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
                self._begin(test, self._harvest(test, end))

    def _launch(self, now: float) -> None:
        state = self.context.state
        if self.is_stopping or state.launches_nothing or not self.queue or not self.hindered.may_launch(time.time()):
            return
        waiting = state.counts[State.WAITING.value]
        slots = state.open_slots
        if waiting >= slots and not self._is_overfull:
            most = 2 * slots
            self.context.note(f"{waiting} agents wait for an answer: others are launched, until {most} live at once")
        self._is_overfull = waiting >= slots
        chosen = next_launches(
            self.queue,
            state.records,
            slots=slots,
            taken=slots_taken(state.active, waiting, slots),
            creating=len(self._creating),
            creates_at_once=self.pool.creates_at_once,
            not_before=self._not_before,
            groups_at_work=self.checks.groups_at_work,
            now=now,
        )
        for test in chosen:
            closed = self.hosts.unreachable | self._returning
            host = self.pool.choose(self.hosts_in_use(), closed, now)
            if host is None:
                self._give_up_hopeless()
                return
            if test not in self._busy:
                del self.queue[test]
                self._creating[test] = host
                self._begin(test, self._create(test, host))

    def _look_at_hosts(self, now: float) -> None:
        changes = self.hosts.look(now)
        for host in changes.back:
            # What is there already is seen to before anything new is launched there.
            self._returning.add(host)
            task = self.group.create_task(resume_on_host(self, host))
            task.add_done_callback(lambda _, host=host: self._returning.discard(host))  # type: ignore[misc]
        if changes.gone:
            abandon_hosts(self, changes.gone)
        if self.new_hosts is not None:
            self.new_hosts.look(self)

    def _give_up_hopeless(self) -> None:
        """Give up all queued tests when no host takes an agent any more."""
        reason = self.pool.why_hopeless(self.hosts.gone) or (self.new_hosts.why_hopeless if self.new_hosts else "")
        for test in [test for test in self.queue if reason and test not in self._busy]:
            del self.queue[test]
            self._begin(test, self._give_up_queued(test, reason))

    async def _give_up_queued(self, test: str, reason: str) -> None:
        await self.task_of(test).give_up(self.context, f"it could not be launched: {reason}")

    def hosts_in_use(self) -> dict[str, HostUse]:
        """Return what is on each host."""
        return self.hosts.uses(self._creating)

    def is_busy_with(self, test: str) -> bool:
        """Return whether something is being done with a test."""
        return test in self._busy

    async def _create(self, key: str, host: str) -> None:
        task, record = self.task_of(key), self.context.state.record_of(key)
        attempt = record.attempt + 1
        try:
            await launch(self.context, task, attempt, host)
        except (HostSetupFailed, HostUnreachable) as error:
            self._after_host_failure(key, attempt, host, str(error), is_lasting=isinstance(error, HostCheckFailed))
        except (SwarmError, OSError) as error:
            shortage = resource_shortage(error) or shortage_in_words(str(error))
            if isinstance(error, UsageError) and shortage is None:
                # The request itself is wrong, so that another attempt would fail too.
                await self._give_up(task, attempt, str(error), AgentEnd.NOT_LAUNCHED)
                return
            self.pool.note_failure(host, str(error), time.monotonic())
            if host in self.hosts.unreachable:
                self._after_host_failure(key, attempt, host, str(error))
            else:
                reason = str(shortage or error)
                await self._after_failure(task, attempt, host, reason, is_machine_short=shortage is not None)
        else:
            self.pool.note_success(host)
            self._failures.pop(key, None)
            self.live_agents.watch_agent(self.context.spec, task, self.context.state.record_of(key), is_adopted=False)
        finally:
            self._creating.pop(key, None)

    def _after_host_failure(self, key: str, attempt: int, host: str, reason: str, *, is_lasting: bool = False) -> None:
        """Queue a test again that cannot be launched for a reason which is its host's."""
        if host not in self.hosts.unreachable:
            self.pool.note_failure(host, reason, time.monotonic(), is_lasting=is_lasting)
        self.context.record(LaunchFailed(test=key, reason=reason, attempt=attempt))
        self.queue[key] = None

    async def _after_failure(
        self, task: AgentTask, attempt: int, host: str, reason: str, *, is_machine_short: bool
    ) -> None:
        key = task.key
        try:
            await clear_debris(self.context, self.context.state.record_of(key).agent, attempt, host)
        except SwarmError as error:
            self.context.note(f"what the failed launch left could not be removed: {error}", level="warning", test=key)
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pauses = self.context.shortage_pauses if is_machine_short else LAUNCH_PAUSES[: task.launch_attempts - 1]
        if failures > len(pauses):
            end = AgentEnd.OUT_OF_RESOURCES if is_machine_short else AgentEnd.NOT_LAUNCHED
            await self._give_up(task, attempt, reason, end)
            return
        self.context.record(LaunchFailed(test=key, reason=reason, attempt=attempt))
        self._not_before[key] = time.monotonic() + pauses[failures - 1]
        if key == INTEGRATOR_KEY:
            self._is_integrator_queued = True
        else:
            self.queue[key] = None

    async def _give_up(self, task: AgentTask, attempt: int, reason: str, end: AgentEnd) -> None:
        self.context.record(LaunchFailed(test=task.key, reason=reason, attempt=attempt, is_final=True))
        self._failures.pop(task.key, None)
        await task.give_up(self.context, f"it could not be launched: {reason}", end)

    async def _harvest(self, test: str, end: AgentEnd) -> None:
        watch = self.live_agents.watches[test]
        await self._record_new_events([watch], time.monotonic())
        for event in watch.held_back_events():
            self.context.record(event)
        # Since its end was observed, the agent may have handed in its work after all.
        end = AgentEnd.ARCHIVE if watch.has_archive else end
        trouble = watch.last_trouble(time.time())
        if end in ENDED_BY_ITSELF and trouble is not None:
            # That says nothing about its test.
            self._not_before[test] = time.monotonic() + self.hindered.pause_before_relaunch(test)
            await self._stop(test, f"its agent ended while in trouble: {WORDS[trouble.kind]}", is_retried=True)
            return
        try:
            await self._harvest_apart(watch, end)
        except HostUnreachable as error:
            # It is harvested when its host is back.
            self.context.note_once(f"the work of {watch.address.name} cannot be had now: {error}", level="warning")
            await asyncio.sleep(STATUS_INTERVAL)
            return
        if test != INTEGRATOR_KEY:
            if is_unchecked(self.context.state.record_of(test)):
                self.checks.add(test)
            else:
                await self._after_check(test)
        del self.live_agents.watches[test]
        if test != INTEGRATOR_KEY:
            self._stop_ended(watch, end)

    def _stop_ended(self, watch: TaskWatch, end: AgentEnd) -> None:
        if not self.context.spec.keep_agents:
            is_working = end in _STILL_WORKING or watch.is_mid_turn(time.time())
            self.live_agents.stop_watched(watch, is_working=is_working)

    async def _harvest_apart(self, watch: TaskWatch, end: AgentEnd) -> None:
        """Harvest an agent's work; a failure fails this agent only, and is repeated if this machine lacks resources."""
        context, task = self.context, watch.task
        for pause in (*context.shortage_pauses, None):
            try:
                pulled, counted_end = await pull_to_finish(context, task, watch.address, end)
                if task.key == INTEGRATOR_KEY:
                    # Its branch is measured next, which takes a while.
                    self._stop_ended(watch, end)
                await task.finish(context, pulled, counted_end)
                return
            except HostUnreachable:
                raise
            except Exception as error:
                record, shortage = context.state.record_of(task.key), resource_shortage(error)
                if record.state is State.DONE:
                    context.note(f"after its harvest: {error}", level="warning", test=task.key)
                    return
                if shortage is None:
                    if not isinstance(error, SwarmError | OSError):
                        traceback.print_exc()
                    reason = f"its work could not be processed: {plain(str(error), 300) or type(error).__name__}"
                    await task.give_up(context, reason, AgentEnd.UNREADABLE)
                    return
                if pause is None or self.is_stopping:
                    reason = f"its work could not be fetched; `swarm-tui resume` repeats it: {shortage}"
                    await task.give_up(context, reason, AgentEnd.OUT_OF_RESOURCES)
                    return
                context.note_once(f"agents' work is fetched again in a moment: {shortage}", level="warning")
                await asyncio.sleep(pause)

    async def _after_check(self, test: str) -> None:
        """Let the next integration include the final result of a test."""
        if not await integrate_revision(self.context, test):
            self.is_integration_due = True
        self._news.wake()

    def _relaunch(self, test: str, reason: str) -> None:
        self.request_stop(test, reason, is_retried=True)

    def request_stop(self, test: str, reason: str, *, is_retried: bool = False) -> None:
        """Stop one test as soon as nothing else is being done with it, and queue it again when that is wanted."""
        self._to_stop[test] = (reason, is_retried)

    def request_retry(self, test: str, reason: str, note: str) -> None:
        """Queue a test again; `note` becomes part of the new agent's prompt."""
        self._notes[test] = note
        self.request_stop(test, reason, is_retried=True)

    def request_revision(self, test: str, reason: str, revision: Revision) -> None:
        """Queue a finished test again, for an agent that goes on with the work of the one before."""
        self._revisions[test] = revision
        self.request_stop(test, reason, is_retried=True)

    def stop_sweep(self, reason: str) -> None:
        """Launch nothing more; harvest what is handed in and stop the rest, so that it can be resumed."""
        self.is_stopping, self.stop_reason = True, reason
        self.checks.cancel()
        if self.integrator is not None:
            self.integrator.cancel()
            if self._is_integrator_queued:
                self._is_integrator_queued = False
                self.integrator.record_stop(self.context, reason)
        for test in (*self.live_agents.watches, *self._creating):
            self._to_stop.setdefault(test, (SWEEP_STOPPED, False))

    def _stop_tests(self) -> None:
        for test, (reason, is_retried) in list(self._to_stop.items()):
            record = self.context.state.record_of(test)
            # A stop that is under way would also stop the new agent, which has the same name.
            if test in self._busy or (is_retried and self._stopper.is_stopping(record.agent)):
                continue
            del self._to_stop[test]
            if test in self.live_agents.watches:
                self._begin(test, self._stop(test, reason, is_retried=is_retried))
            elif is_retried:
                self._begin(test, self._retry(test, reason))
            elif not record.is_finished:
                self.queue.pop(test, None)
                self.task_of(test).record_stop(self.context, reason)

    async def _stop(self, test: str, reason: str, *, is_retried: bool) -> None:
        watch = self.live_agents.watches[test]
        await self._record_new_events([watch], time.monotonic())
        for event in watch.held_back_events():
            self.context.record(event)
        if watch.has_archive and not is_retried:
            await self._harvest(test, AgentEnd.ARCHIVE)
            return
        try:
            await self._keep_work(watch)
        except HostUnreachable as error:
            self.context.note(f"what it has made so far cannot be had: {error}", level="warning", test=test)
        watch.task.record_stop(self.context, reason)
        del self.live_agents.watches[test]
        if is_retried:
            await self._retry(test, reason)
        else:
            self.live_agents.stop_watched(watch, is_working=True)

    async def _keep_work(self, watch: TaskWatch) -> None:
        """Pull what an agent has made so far."""
        test = watch.task.key
        pulled = await pull_for(self.context, watch.task, watch.address)
        for note in pulled.notes:
            self.context.note(note, test=test)
        if pulled.fetched.tip and test != INTEGRATOR_KEY:
            kept = watch.task.commits_ref(self.context)
            self.context.note(f"its {len(pulled.fetched.commits)} commits are kept as {kept}", test=test)

    async def _retry(self, test: str, reason: str) -> None:
        """Queue a test again after removing its old agent, which has the same name."""
        record = self.context.state.record_of(test)
        self.live_agents.stop_not(record.agent)
        try:
            if record.state_dir:
                await destroy_agent(self.context, recorded_address(self.context.spec, record))
        except HostUnreachable as error:
            # It is stopped when its host is back, for another has taken its place.
            self.context.note(f"its old agent stays for now: {error}", level="warning", test=test)
        except SwarmError as error:
            self.context.note(f"its old agent could not be removed: {error}", level="error", test=test)
            return
        if test == INTEGRATOR_KEY:
            self.is_integration_due = True
            return
        revision, note = self._revisions.pop(test, None), self._notes.pop(test, "")
        self.context.record(Queued(test=test, reason=reason, revision=revision, note=note))
        self._failures.pop(test, None)
        self.queue[test] = None


def first_error(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

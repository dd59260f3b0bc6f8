"""Runs a sweep from its queue to its last harvest: fills slots, watches agents, harvests and stops them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Protocol

from swarm_tui.agents.judging import ENDED_BY_ITSELF, End
from swarm_tui.engine.agent_task import AgentTask, harvest, pull_for
from swarm_tui.engine.answers import Answerer
from swarm_tui.engine.budget_guard import BudgetGuard
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.doubtful_screens import DoubtfulScreens
from swarm_tui.engine.edit_watch import EditWatch
from swarm_tui.engine.hindered_agents import HinderedAgents
from swarm_tui.engine.host_changes import leave_hosts, take_up_again
from swarm_tui.engine.host_keeper import HostKeeper
from swarm_tui.engine.host_pool import HostPool, HostUse
from swarm_tui.engine.host_preparation import HostUnfit, HostUnusable
from swarm_tui.engine.integrator_task import IntegratorTask, begin_integrator, prepare_integration
from swarm_tui.engine.launch import clear_debris, destroy_agent, launch
from swarm_tui.engine.live_agents import LiveAgents, TaskWatch
from swarm_tui.engine.messages import MessageSender
from swarm_tui.engine.names import integrator_of, recorded_address
from swarm_tui.engine.new_hosts import NewHosts
from swarm_tui.engine.news import News
from swarm_tui.engine.one_test_task import OneTestTask
from swarm_tui.engine.pattern_guard import PatternGuard
from swarm_tui.engine.revise import take_left_over, take_revision
from swarm_tui.engine.schedule import back_off, choose_launches, slots_taken
from swarm_tui.engine.stopping import Stopper
from swarm_tui.engine.stuck_agents import StuckAgents
from swarm_tui.engine.watch import Watch, read_new_events
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.events import LaunchFailed, ProbeFailed, ProbeRecovered, Queued
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.revision import Revision
from swarm_tui.model.states import State
from swarm_tui.model.sweep import INTEGRATOR_KEY
from swarm_tui.model.trouble import WORDS
from swarm_tui.places.place import PlaceUnreachable

TICK: Final = 0.1
STATUS_INTERVAL: Final = 1.0
# A resumed engine continues tests that were stopped for this reason, and no others.
SWEEP_STOPPED: Final = "the sweep was stopped"
# An agent that still runs after its time is over is working against the next one.
_STILL_WORKING: Final = frozenset({End.TIMEOUT, End.NO_ANSWER, End.OVER_BUDGET})


class Requests(Protocol):
    """The requests of people, as the runner uses them."""

    @property
    def is_busy(self) -> bool: ...

    def carry_out_new(self, group: asyncio.TaskGroup) -> None: ...


class SweepRunner:
    """Runs one sweep on one event loop; only git and the writing of large files use threads."""

    def __init__(self, context: EngineContext, *, tick: float = TICK, is_integrating_only: bool = False) -> None:
        self.context = context
        self.live_agents = LiveAgents(folder=context.folder)
        self.queue: dict[str, None] = {}
        if not is_integrating_only:
            self.queue |= dict.fromkeys(rec.test for rec in context.state.tests() if rec.state is State.QUEUED)
        self.is_integration_due = is_integrating_only or context.state.integration.state != "done"
        """Whether there is work that no integration has seen."""
        self.integrator: IntegratorTask | None = None
        """The task of the integrator while it is under way."""
        self.is_stopping = False
        self.stop_reason = ""
        self._news = News(context, tick)
        self._stopper = Stopper(context, self.live_agents)
        self.messages = MessageSender(context, self.live_agents)
        self._pattern_guard = PatternGuard(context)
        self._edit_watch = EditWatch(context, self.live_agents)
        self.budget_guard = BudgetGuard(context, self.live_agents, self.messages)
        self._stuck_agents = StuckAgents(context, self.live_agents, self.messages)
        self.hindered = HinderedAgents(context, self.live_agents, self.messages, self._relaunch)
        self.answers = Answerer(context, self.live_agents, self.messages)
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._creating: dict[str, str] = {}
        """Agents that are being created, each with its host."""
        spec = context.spec
        is_growing = spec.provider != LOCAL_HOST
        self.pool = HostPool([access.name for access in spec.access], spec.per_host, is_growing=is_growing)
        self.new_hosts = NewHosts(context, self.pool) if is_growing else None
        self.hosts = HostKeeper(context, self.live_agents)
        self._returning: set[str] = set()
        """Hosts that are back, and whose agents are being looked for."""
        self._screens = DoubtfulScreens(context.place)
        self._is_integrator_queued = False
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._to_stop: dict[str, tuple[str, bool]] = {}
        """Tests to be stopped: why, and whether they are queued again."""
        self._revisions: dict[str, Revision] = {}
        """What was sent back, of tests that are about to be queued again."""
        self._is_stale = False
        self._is_overfull = False
        """Whether as many agents wait for an answer as there are slots."""
        self._status_due = 0.0
        self.group: asyncio.TaskGroup

    async def run(self, inbox: Requests) -> None:
        """Run until no work is left, or until the sweep is stopped."""
        await take_left_over(self.context)
        self._news.begin()
        async with asyncio.TaskGroup() as self.group:
            while True:
                now = time.monotonic()
                inbox.carry_out_new(self.group)
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
                self._launch(now)
                is_last = self._are_tests_done()
                self._stopper.work(self.group, is_last=is_last)
                self._integrate(now)
                parts = (self._stopper, self.messages, self.answers, self.budget_guard, inbox)
                if is_last and not self._is_integrating and not any(part.is_busy for part in parts):
                    break
                await self._pause()
        self._news.close()
        if self.new_hosts is not None:
            await self.new_hosts.end()

    async def _pause(self) -> None:
        """Wait for the next round, and read meanwhile what agents write."""
        next_round = self._news.next_round()
        while await self._news.come_before(next_round):
            await self._read_files(time.monotonic())

    def _are_tests_done(self) -> bool:
        under_way = self.live_agents.watches.keys() | self._busy.keys() | self._to_stop.keys()
        return not under_way - {INTEGRATOR_KEY} and (self.is_stopping or not self.queue)

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
                end = End.ARCHIVE
            if end is not None:
                self._begin(watch.task.key, self._harvest(watch.task.key, end))

    def _hold_to_budget(self, now: float) -> None:
        for test in self.budget_guard.work(self.group, now):
            if test not in self._busy:
                self._begin(test, self._harvest(test, End.OVER_BUDGET))

    def _watch_patterns(self, now: float) -> None:
        self._pattern_guard.work(now)
        self._edit_watch.work(self.group, now)
        is_idle = not self.live_agents.watches and not self._busy and not self._to_stop
        for test in self._pattern_guard.unreleased(now, list(self.queue), is_idle=is_idle):
            self.request_stop(test, "held by the breaker, and nobody released it")

    async def _record_new_events(self, watches: Sequence[Watch], now: float) -> None:
        for event in await read_new_events(self.context.place, watches, now):
            self.context.record(event)

    async def _read_statuses(self, now: float) -> None:
        """Record what all living agents are doing; begin to harvest those that have ended."""
        if not self.live_agents.watches:
            return
        try:
            statuses = await self.context.place.latest_statuses()
        except PlaceUnreachable as error:
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
        chosen = choose_launches(
            self.queue,
            state.records,
            slots=slots,
            taken=slots_taken(state.active, waiting, slots),
            creating=len(self._creating),
            creates_at_once=self.pool.creates_at_once,
            not_before=self._not_before,
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
            task = self.group.create_task(take_up_again(self, host))
            task.add_done_callback(lambda _, host=host: self._returning.discard(host))  # type: ignore[misc]
        if changes.gone:
            leave_hosts(self, changes.gone)
        if self.new_hosts is not None:
            self.new_hosts.look(self)

    def _give_up_hopeless(self) -> None:
        """Give up all queued tests when no host takes an agent any more."""
        reason = self.pool.why_hopeless(self.hosts.gone) or (self.new_hosts.why_hopeless if self.new_hosts else "")
        for test in [test for test in self.queue if reason and test not in self._busy]:
            del self.queue[test]
            self._begin(test, self._give_up_queued(test, reason))

    async def _give_up_queued(self, test: str, reason: str) -> None:
        await self.task_of(test).give_up(self.context, self.context.state.record_of(test).attempt, reason)

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
        except (HostUnusable, PlaceUnreachable) as error:
            self._after_host_failure(key, attempt, host, str(error), is_lasting=isinstance(error, HostUnfit))
        except UsageError as error:
            # The request itself is wrong, so that another attempt would fail too.
            await self._give_up(task, attempt, str(error))
        except SwarmError as error:
            self.pool.note_failure(host, str(error), time.monotonic())
            if host in self.hosts.unreachable:
                self._after_host_failure(key, attempt, host, str(error))
            else:
                await self._after_failure(task, attempt, host, str(error))
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

    async def _after_failure(self, task: AgentTask, attempt: int, host: str, reason: str) -> None:
        key = task.key
        try:
            await clear_debris(self.context, self.context.state.record_of(key).agent, attempt, host)
        except SwarmError as error:
            self.context.note(f"what the failed launch left could not be removed: {error}", level="warning", test=key)
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = back_off(failures, task.launch_attempts)
        if pause is None:
            await self._give_up(task, attempt, reason)
            return
        self.context.record(LaunchFailed(test=key, reason=reason, attempt=attempt))
        self._not_before[key] = time.monotonic() + pause
        if key == INTEGRATOR_KEY:
            self._is_integrator_queued = True
        else:
            self.queue[key] = None

    async def _give_up(self, task: AgentTask, attempt: int, reason: str) -> None:
        self.context.record(LaunchFailed(test=task.key, reason=reason, attempt=attempt, is_final=True))
        await self._do_instead(await task.give_up(self.context, attempt, reason))

    async def _do_instead(self, task: AgentTask | None) -> None:
        if isinstance(task, IntegratorTask):
            await self._queue_integrator(task)

    async def _harvest(self, test: str, end: End) -> None:
        watch = self.live_agents.watches[test]
        await self._record_new_events([watch], time.monotonic())
        for event in watch.held_back_events():
            self.context.record(event)
        # Since its end was observed, the agent may have handed in its work after all.
        end = End.ARCHIVE if watch.has_archive else end
        trouble = watch.last_trouble(time.time())
        if end in ENDED_BY_ITSELF and trouble is not None:
            # That says nothing about its test.
            self._not_before[test] = time.monotonic() + self.hindered.pause_before_relaunch(test)
            await self._stop(test, f"its agent ended while in trouble: {WORDS[trouble.kind]}", is_retried=True)
            return
        try:
            instead = await harvest(self.context, watch.task, watch.address, end)
        except PlaceUnreachable as error:
            # It is harvested when its host is back.
            self.context.note_once(f"the work of {watch.address.name} cannot be had now: {error}", level="warning")
            await asyncio.sleep(STATUS_INTERVAL)
            return
        if test != INTEGRATOR_KEY and not await take_revision(self.context, test):
            self.is_integration_due = True
        del self.live_agents.watches[test]
        if instead is not None:
            await self._do_instead(instead)
        elif not self.context.spec.keep_agents:
            self.live_agents.stop_watched(watch, is_working=end in _STILL_WORKING)

    def _relaunch(self, test: str, reason: str) -> None:
        self.request_stop(test, reason, is_retried=True)

    def request_stop(self, test: str, reason: str, *, is_retried: bool = False) -> None:
        """Stop one test as soon as nothing else is being done with it, and queue it again when that is wanted."""
        self._to_stop[test] = (reason, is_retried)

    def request_revision(self, test: str, reason: str, revision: Revision) -> None:
        """Queue a finished test again, for an agent that goes on with the work of the one before."""
        self._revisions[test] = revision
        self.request_stop(test, reason, is_retried=True)

    def stop_sweep(self, reason: str) -> None:
        """Launch nothing more; harvest what is handed in and stop the rest, so that it can be resumed."""
        self.is_stopping, self.stop_reason = True, reason
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
            await self._harvest(test, End.ARCHIVE)
            return
        try:
            await self._keep_work(watch)
        except PlaceUnreachable as error:
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
        except PlaceUnreachable as error:
            # It is stopped when its host is back, for another has taken its place.
            self.context.note(f"its old agent stays for now: {error}", level="warning", test=test)
        except SwarmError as error:
            self.context.note(f"its old agent could not be removed: {error}", level="error", test=test)
            return
        if test == INTEGRATOR_KEY:
            self.is_integration_due = True
            return
        self.context.record(Queued(test=test, reason=reason, revision=self._revisions.pop(test, None)))
        self._failures.pop(test, None)
        self.queue[test] = None


def first_error(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error

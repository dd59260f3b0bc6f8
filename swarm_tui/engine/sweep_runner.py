"""Runs a sweep from its queue to its last harvest: fills slots, watches agents, harvests and stops them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Sequence
from typing import Any, Final, Protocol

from swarm_tui.agents.judging import End, Evidence, judge
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.finish import Finish
from swarm_tui.engine.harvest import harvest
from swarm_tui.engine.launch import clear_debris, destroy_agent, launch
from swarm_tui.engine.live_agents import LiveAgents
from swarm_tui.engine.messages import MessageSender
from swarm_tui.engine.names import harvest_ref, recorded_address
from swarm_tui.engine.pull import pull_work
from swarm_tui.engine.schedule import back_off, choose_launches
from swarm_tui.engine.stopping import Stopper
from swarm_tui.engine.watch import Watch, read_new_events
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.events import Harvested, LaunchFailed, ProbeFailed, ProbeRecovered, Queued, Stopped
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.states import State
from swarm_tui.places.place import PlaceUnreachable

TICK: Final = 0.1
STATUS_INTERVAL: Final = 1.0
# By this reason a resumed engine knows the tests that it may take up again by itself.
SWEEP_STOPPED: Final = "the sweep was stopped"
# An agent that still runs after its time is over is working against the next one.
_STILL_WORKING: Final = frozenset({End.TIMEOUT, End.NO_ANSWER})


class Requests(Protocol):
    """What people ask for, as the runner uses it."""

    @property
    def is_busy(self) -> bool: ...

    def carry_out_new(self, group: asyncio.TaskGroup) -> None: ...


class SweepRunner:
    """One sweep under way. Everything runs on one event loop; only pulling and git leave it for a moment."""

    def __init__(self, context: EngineContext, *, tick: float = TICK) -> None:
        self.context = context
        self.fleet = LiveAgents()
        self.queue: dict[str, None] = dict.fromkeys(
            record.test for record in context.state.tests() if record.state is State.QUEUED
        )
        self.is_stopping = False
        self.stop_reason = ""
        self._tick = tick
        self._slot_freed = asyncio.Event()
        self._stopper = Stopper(context, self.fleet)
        self.messages = MessageSender(context, self.fleet)
        self.finish = Finish(context)
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._creating: set[str] = set()
        self._failures: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._to_stop: dict[str, tuple[str, bool]] = {}
        """Tests to be stopped: why, and whether they are queued again."""
        self._is_stale = False
        self._status_due = 0.0
        self.group: asyncio.TaskGroup

    async def run(self, inbox: Requests) -> None:
        """Work until nothing is left to do, or until somebody has the sweep stopped."""
        async with asyncio.TaskGroup() as self.group:
            while True:
                now = time.monotonic()
                inbox.carry_out_new(self.group)
                await self._read_files(now)
                if now >= self._status_due:
                    self._status_due = now + STATUS_INTERVAL
                    await self._read_statuses(now)
                self._stop_tests()
                self._launch(now)
                is_all_done = self._is_all_done()
                self._stopper.work(self.group, is_last=is_all_done)
                if is_all_done and not self.is_stopping and self.finish.is_due and not self.finish.is_busy:
                    self.finish.begin(self.group)
                if is_all_done and not any(part.is_busy for part in (self.finish, self._stopper, self.messages, inbox)):
                    return
                await self._pause()

    async def _pause(self) -> None:
        """Wait for the next round; a slot that becomes free is not left empty until then."""
        self._slot_freed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._tick):
                await self._slot_freed.wait()

    def _is_all_done(self) -> bool:
        """Whether no test is under way or will be."""
        is_idle = not self.fleet.watches and not self._busy and not self._to_stop
        return is_idle and (self.is_stopping or not self.queue)

    def _begin(self, test: str, work: Coroutine[Any, Any, None]) -> None:
        """Do something with one test; nothing else is done with it meanwhile."""
        task = self.group.create_task(work)
        self._busy[test] = task
        task.add_done_callback(lambda _: self._end(test))

    def _end(self, test: str) -> None:
        self._busy.pop(test, None)
        self._slot_freed.set()

    async def _read_files(self, now: float) -> None:
        """Record what is new in the files of all living agents; begin to harvest those that are done or overdue."""
        watches = [watch for test, watch in self.fleet.watches.items() if test not in self._busy]
        await self._record_new_events(watches, now)
        for watch in watches:
            end = End.ARCHIVE if watch.has_archive else watch.overdue_end(now)
            if end is not None:
                self._begin(watch.test, self._harvest(watch.test, end))

    async def _record_new_events(self, watches: Sequence[Watch], now: float) -> None:
        for event in await read_new_events(self.context.place, watches, now):
            self.context.record(event)

    async def _read_statuses(self, now: float) -> None:
        """Record what all living agents are doing; begin to harvest those that have ended."""
        if not self.fleet.watches:
            return
        try:
            statuses = await self.context.place.agent_statuses()
        except PlaceUnreachable as error:
            if not self._is_stale:
                self._is_stale = True
                self.context.record(ProbeFailed(reason=str(error)))
            return
        if self._is_stale:
            self._is_stale = False
            self.context.record(ProbeRecovered())
        for test, watch in list(self.fleet.watches.items()):
            if test in self._busy or watch.address.agent_id in statuses.unreadable:
                continue
            status = statuses.agents.get(watch.address.name)
            seen, end = watch.observe(status.state if status else None, now)
            if seen is not None:
                self.context.record(seen)
                if seen.state is State.WAITING:
                    self.messages.answer_question(self.group, watch)
            if end is not None:
                self._begin(test, self._harvest(test, end))

    def _launch(self, now: float) -> None:
        state = self.context.state
        if self.is_stopping or state.is_held or not self.queue:
            return
        chosen = choose_launches(
            self.queue,
            state.records,
            slots=state.slots,
            taken=state.active,
            creating=len(self._creating),
            not_before=self._not_before,
            now=now,
        )
        for test in chosen:
            if test not in self._busy:
                del self.queue[test]
                self._creating.add(test)
                self._begin(test, self._create(test))

    async def _create(self, test: str) -> None:
        attempt = self.context.state.records[test].attempt + 1
        try:
            await launch(self.context, test, attempt)
        except UsageError as error:
            # The request itself is wrong, so that another attempt would fare no better.
            self._give_up(test, attempt, str(error))
        except SwarmError as error:
            await self._after_failure(test, attempt, str(error))
        else:
            self._failures.pop(test, None)
            self.fleet.join(self.context.spec, self.context.state.records[test], is_adopted=False)
        finally:
            self._creating.discard(test)

    async def _after_failure(self, test: str, attempt: int, reason: str) -> None:
        try:
            await clear_debris(self.context, self.context.state.records[test].agent, attempt)
        except SwarmError as error:
            self.context.note(f"what the failed launch left could not be removed: {error}", level="warning", test=test)
        failures = self._failures[test] = self._failures.get(test, 0) + 1
        pause = back_off(failures)
        if pause is None:
            self._give_up(test, attempt, reason)
            return
        self.context.record(LaunchFailed(test=test, reason=reason, attempt=attempt))
        self._not_before[test] = time.monotonic() + pause
        self.queue[test] = None

    def _give_up(self, test: str, attempt: int, reason: str) -> None:
        self.context.record(LaunchFailed(test=test, reason=reason, attempt=attempt, is_final=True))
        judgement = judge(Evidence(end=End.NOT_LAUNCHED, problem=f"it could not be launched: {reason}"))
        self.context.record(
            Harvested(
                test=test,
                result=judgement.result,
                reason=judgement.reason,
                harvest=HarvestReport(errored=True, end=End.NOT_LAUNCHED.value),
            )
        )

    async def _harvest(self, test: str, end: End) -> None:
        watch = self.fleet.watches[test]
        await self._record_new_events([watch], time.monotonic())
        for event in watch.held_back_events():
            self.context.record(event)
        # Since its end was observed, the agent may have handed in its work after all.
        await harvest(self.context, test, watch.address, End.ARCHIVE if watch.has_archive else end)
        self.finish.expect()
        del self.fleet.watches[test]
        if not self.context.spec.keep_agents:
            self.fleet.retire(watch.address.name, is_working=end in _STILL_WORKING)

    def request_stop(self, test: str, reason: str, *, is_retried: bool = False) -> None:
        """Stop one test as soon as nothing else is being done with it, and queue it again when that is wanted."""
        self._to_stop[test] = (reason, is_retried)

    def stop_sweep(self, reason: str) -> None:
        """Launch nothing more; harvest what is handed in and stop the rest, so that it can be resumed."""
        self.is_stopping, self.stop_reason = True, reason
        self.finish.cancel()
        for test in (*self.fleet.watches, *self._creating):
            self._to_stop.setdefault(test, (SWEEP_STOPPED, False))

    def _stop_tests(self) -> None:
        for test, (reason, is_retried) in list(self._to_stop.items()):
            record = self.context.state.records[test]
            # A stop that is under way would meet the new agent too: it bears the old one's name.
            if test in self._busy or (is_retried and self._stopper.is_stopping(record.agent)):
                continue
            del self._to_stop[test]
            if test in self.fleet.watches:
                self._begin(test, self._stop(test, reason, is_retried=is_retried))
            elif is_retried:
                self._begin(test, self._retry(test, reason))
            elif not record.is_finished:
                self.queue.pop(test, None)
                self.context.record(Stopped(test=test, reason=reason))

    async def _stop(self, test: str, reason: str, *, is_retried: bool) -> None:
        watch = self.fleet.watches[test]
        await self._record_new_events([watch], time.monotonic())
        if watch.has_archive and not is_retried:
            await self._harvest(test, End.ARCHIVE)
            return
        record = self.context.state.records[test]
        pulled = await pull_work(self.context, record, watch.address)
        for note in pulled.notes:
            self.context.note(note, test=test)
        if pulled.brought.tip:
            kept = harvest_ref(self.context.spec, record.branch)
            self.context.note(f"its {len(pulled.brought.commits)} commits are kept as {kept}", test=test)
        self.context.record(Stopped(test=test, reason=reason))
        del self.fleet.watches[test]
        if is_retried:
            await self._retry(test, reason)
        else:
            self.fleet.retire(watch.address.name, is_working=True)

    async def _retry(self, test: str, reason: str) -> None:
        """Queue a test again; what is left of its old agent goes first, or the new one could not have its name."""
        record = self.context.state.records[test]
        self.fleet.retired.pop(record.agent, None)
        try:
            if record.state_dir:
                await destroy_agent(self.context, recorded_address(self.context.spec, record))
        except SwarmError as error:
            self.context.note(f"its old agent could not be removed: {error}", level="error", test=test)
            return
        self.context.record(Queued(test=test, reason=reason))
        self._failures.pop(test, None)
        self.queue[test] = None

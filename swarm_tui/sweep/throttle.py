"""Sees to agents whose model does not answer: turns the dial, holds the queue, and tells agents to go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from msgspec import structs

from swarm_tui.adapters.machine import read_machine
from swarm_tui.agents.login import check_login
from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.errors import UsageError
from swarm_tui.journal.record import TestRecord
from swarm_tui.limits.events import HOLDING, ApiError, DialTurned, LoginLost, LoginRestored, api_error_text
from swarm_tui.limits.throttle import ThrottleInputs, throttled_slots
from swarm_tui.model.results import Result, State
from swarm_tui.sweep.agent_context import AgentWatches
from swarm_tui.sweep.context import SweepContext, agents_environment
from swarm_tui.sweep.messages import AgentMessages

GO_ON: Final = "The model did not answer you ({words}). That is over: go on where you stopped."
OURS: Final = "swarm-tui"
GOT_THROUGH: Final = "an agent that was refused and works again"
# So long nothing must have gone wrong before an agent is told to go on; longer each time that it was in vain.
FIRST_PAUSE: Final = 15.0
LONGEST_PAUSE: Final = 120.0
# An agent that works for so long after it was told to go on shows that others can.
PROVEN_AFTER: Final = 10.0
# An agent that was launched so long ago has asked its model.
WORKS_AFTER: Final = 20.0
# An agent goes on by itself when the limit of a subscription is over.
GOES_ON_WITHIN: Final = 10.0
TOLD_AGAIN_AFTER: Final = 60.0
TOLD_AT_MOST: Final = 5
"""An agent that was told so often in vain does not keep others from being launched any more."""
# What was written before a login was restored may be read after it.
LATE_NEWS: Final = 5.0


@dataclass(slots=True)
class _Told:
    """How often an agent was told to go on, and when last."""

    times: int = 0
    at: float = 0.0
    problems: int = 0


@dataclass(slots=True)
class ThrottledAgents:
    """The agents of one sweep that are in trouble."""

    context: SweepContext
    live_agents: AgentWatches
    messages: AgentMessages
    relaunch: Callable[[str, str], None]
    """Queues a test again, with a reason."""
    _told: dict[str, _Told] = field(default_factory=dict)
    _ended: dict[str, int] = field(default_factory=dict)
    """How many agents of a test have ended in trouble."""
    _relaunched: set[tuple[str, int]] = field(default_factory=set)
    """Tests and attempts of agents whose own login was still refused after a release."""
    _refused_at: dict[str, float] = field(default_factory=dict)
    """When the login of a test's agent was last seen refused, since one was lost."""
    _old_login_at: float = 0.0
    """The release after which that was so."""
    _told_last: float = float("-inf")
    _pause: float = FIRST_PAUSE
    _is_telling: bool = False

    def work(self, group: asyncio.TaskGroup, clock: float) -> None:
        """Do what is due; `clock` is the time since 1970."""
        self._forget_recovered(clock)
        self._turn_dial(clock)
        self._hold_queue()
        self._end_hold(clock)
        self._tell_one(group, clock)

    def may_launch(self, clock: float) -> bool:
        """Return whether tests may be launched: no login is lost, no limit stands, and no agent goes before them."""
        state = self.context.state
        if state.access.is_holding(clock):
            return False
        if self._waits_for_proof(clock):
            return True
        return not any(
            record.trouble and record.trouble.has_given_up and self._told_of(record).times < TOLD_AT_MOST
            for record in self._believed()
        )

    async def release(self, by: str) -> str:
        """Go on after a lost login or a limit because a person says so; return why that cannot be."""
        state, spec = self.context.state, self.context.spec
        if state.access.lost:
            try:
                await check_login(agent_type_of_sweep(spec), agents_environment(spec, self.context.repository))
            except UsageError as error:
                return str(error)
        self.context.record(LoginRestored(by=by))
        if state.access.dial.until is not None:
            self.context.record(DialTurned(slots=state.access.dial.slots, cause=state.access.dial.cause))
        self._pause = FIRST_PAUSE
        return ""

    def pause_before_relaunch(self, test: str) -> float:
        """Return how long the next agent of a test is to wait whose agent ended in trouble; longer each time."""
        times = self._ended[test] = self._ended.get(test, 0) + 1
        return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(times - 1, 10))

    def _hindered(self) -> list[TestRecord]:
        records = (self.context.state.record_of(test) for test in self.live_agents.watches)
        return [record for record in records if record.is_hindered]

    def _given_up(self) -> list[TestRecord]:
        return [record for record in self._hindered() if record.trouble is not None and record.trouble.has_given_up]

    def _trouble_of(self, record: TestRecord) -> ApiError | None:
        """Return the trouble of an agent, without an end that a person has declared to have come."""
        is_released = record.trouble_at < self.context.state.access.restored_at
        trouble = record.trouble
        return structs.replace(trouble, until=None) if trouble is not None and is_released else trouble

    def _believed(self) -> list[TestRecord]:
        """Return the agents whose trouble concerns all agents.

        One agent's claim must not slow down the others: it counts if another agent has trouble of the same kind.
        """
        found = [(record, record.trouble) for record in self._hindered() if record.trouble is not None]
        needed = min(2, self.context.state.slots)
        times = Counter(trouble.kind for _, trouble in found)
        return [record for record, trouble in found if not trouble.is_claim or times[trouble.kind] >= needed]

    def _believed_troubles(self) -> Iterator[ApiError]:
        """Yield their troubles. A claim may not name a later end than all other agents do."""
        found = [(record, trouble) for record in self._believed() if (trouble := self._trouble_of(record)) is not None]
        for record, trouble in found:
            ends = [each.until or 0.0 for other, each in found if other is not record]
            if trouble.is_claim and ends:
                yield structs.replace(trouble, until=min(trouble.until or 0.0, max(ends)) or None)
            else:
                yield trouble

    def _told_of(self, record: TestRecord) -> _Told:
        return self._told.get(record.test, _Told())

    def _forget_recovered(self, clock: float) -> None:
        hindered = {record.test for record in self._hindered()}
        for test, told in list(self._told.items()):
            if test not in hindered and clock - told.at >= TOLD_AGAIN_AFTER:
                del self._told[test]

    def _turn_dial(self, clock: float) -> None:
        state, spec = self.context.state, self.context.spec
        situation = ThrottleInputs(
            now=clock,
            wanted=state.slots,
            active=state.active,
            given_up=len(self._given_up()),
            troubles=tuple(trouble for trouble in self._believed_troubles() if trouble.kind not in HOLDING),
            hindered_at=state.access.hindered_at,
            machine=None if spec.is_load_ignored or spec.access else read_machine(),
        )
        turned = throttled_slots(state.access.dial, situation)
        if turned is not None:
            self.context.record(turned)

    def _hold_queue(self) -> None:
        """Hold the queue for the first agent whose login is refused; the others say the same."""
        state = self.context.state
        if state.access.lost:
            return
        for record in self._believed():
            is_new = record.trouble_at > state.access.restored_at + LATE_NEWS
            if not is_new or record.trouble is None or record.trouble.kind not in HOLDING:
                continue
            if self._keeps_old_login(record):
                self._relaunched.add((record.test, record.attempt))
                self._old_login_at = state.access.restored_at
                self.relaunch(record.test, "the login that it began with is still refused")
            elif (record.test, record.attempt) not in self._relaunched:
                lost = LoginLost(kind=record.trouble.kind, test=record.test, reason=record.condition)
                self.context.record(lost)
                return

    def _end_hold(self, clock: float) -> None:
        """Go on by ourselves where an agent that was refused has got through since: its program tries again alone."""
        if not self.context.state.access.lost:
            self._refused_at.clear()
            return
        hindered = self._hindered()
        refused = [record.test for record in hindered if record.trouble and record.trouble.kind in HOLDING]
        self._refused_at.update(dict.fromkeys(refused, clock))
        is_quiet = not refused and clock - max(self._refused_at.values(), default=clock) >= WORKS_AFTER
        if is_quiet and any(self._has_result_or_works(test) for test in self._refused_at):
            self.context.record(LoginRestored(by=GOT_THROUGH))

    def _has_result_or_works(self, test: str) -> bool:
        record = self.context.state.record_of(test)
        works = record.state is State.RUNNING and not record.is_hindered and test in self.live_agents.watches
        return works or record.result not in (None, Result.FAILED)

    def _keeps_old_login(self, record: TestRecord) -> bool:
        """Return whether an agent was told to go on after a release, and is refused as before: its login is its own."""
        restored_at = self.context.state.access.restored_at
        is_old = self._told_of(record).at > restored_at > (record.launched_at or 0.0)
        return is_old and (record.test, record.attempt) not in self._relaunched

    def _waits_for_proof(self, clock: float) -> bool:
        """Return whether only an agent with the new login, which is still to come, can show that it is any good."""
        restored_at = self.context.state.access.restored_at
        if self._old_login_at != restored_at or not restored_at:
            return False
        new = [record for record in self.context.state.tests() if (record.launched_at or 0.0) > restored_at]
        return not any(
            not record.is_hindered and clock - (record.launched_at or clock) >= WORKS_AFTER for record in new
        )

    def _tell_one(self, group: asyncio.TaskGroup, clock: float) -> None:
        """Have one agent that has given up go on, when its model seems to answer again."""
        state, given_up = self.context.state, self._given_up()
        self._judge_last(clock)
        if not given_up or self._is_telling or state.access.lost or self._waits_for_proof(clock):
            return
        is_full = state.active - len(given_up) >= state.open_slots
        if (
            is_full
            or clock - state.access.hindered_at < self._pause
            or clock - self._told_last < min(self._pause, PROVEN_AFTER)
        ):
            return
        ready = [record for record in given_up if self._is_ready(record, clock)]
        if ready:
            self._is_telling = True
            self._told_last = clock
            first = min(ready, key=lambda record: (self._told_of(record).times, record.trouble_at))
            group.create_task(self._tell(first, clock))

    def _judge_last(self, clock: float) -> None:
        """Shorten the pause when the agent that was told last works, and lengthen it when that was in vain."""
        if self.context.state.access.hindered_at > self._told_last > 0:
            self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * self._pause))
            self._told_last = float("-inf")
        elif clock - self._told_last >= PROVEN_AFTER and self._told_last > 0:
            self._pause = 1.0

    def _is_ready(self, record: TestRecord, clock: float) -> bool:
        trouble = self._trouble_of(record)
        if trouble is not None and trouble.until is not None and clock < trouble.until + GOES_ON_WITHIN:
            return False
        told = self._told_of(record)
        return clock - told.at >= TOLD_AGAIN_AFTER * max(1, 2 * (told.times - TOLD_AT_MOST))

    async def _tell(self, record: TestRecord, clock: float) -> None:
        told = self._told.setdefault(record.test, _Told())
        told.times, told.at = told.times + 1, clock
        try:
            words = api_error_text(record.trouble.kind, None, clock) if record.trouble is not None else ""
            problems = await self.messages.send([record.test], GO_ON.format(words=words), by=OURS)
        finally:
            self._is_telling = False
        told.problems = told.problems + 1 if problems else 0
        if told.problems > 2:
            del self._told[record.test]
            self.relaunch(record.test, f"it could not be told to go on: {problems[0]}")

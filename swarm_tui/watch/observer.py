"""The observing process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from msgspec import structs

from swarm_tui.adapters.file_notices import FileNotices
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import AgentTypes, mngr_environment
from swarm_tui.agents.types import AgentType, agent_type_of
from swarm_tui.errors import SwarmError
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentStatuses, HostUnreachable
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.append import EngineLock, JournalWriter, encode_event
from swarm_tui.journal.events import (
    AgentStateChanged,
    EngineStarted,
    Launched,
    LogMessage,
    MessageSent,
    PollFailed,
    PollRecovered,
    Queued,
    RequestAnswered,
    Stopped,
)
from swarm_tui.journal.folder import SweepFolder, draft_beside
from swarm_tui.journal.requests import Request, RequestFollower, RequestKind
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.work_events import AgentOutput, CommitsCounted
from swarm_tui.model.event import Event, TestEvent
from swarm_tui.model.results import State
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.money.events import UsageReported
from swarm_tui.sweep.agent_context import AgentContext, AgentWatches
from swarm_tui.sweep.answers import AnswerDelivery
from swarm_tui.sweep.messages import AgentMessages
from swarm_tui.sweep.polls import DoubtfulScreens
from swarm_tui.sweep.watch import AgentFollower, read_new_events
from swarm_tui.watch.agents import (
    ENDED,
    Conditions,
    RemoteAgents,
    WatchedAgent,
    agents_elsewhere,
    agents_here,
    without_repeats,
)

TimedEvent = tuple[float, Event]

_KEPT_OF_AGENT: Final = 200
_KEPT_OF_WATCH: Final = 1_000
_LATEST_COUNTS: Final = (AgentStateChanged, AgentOutput, UsageReported, CommitsCounted, Stopped)
"""For these event types, only the last event of an agent matters."""


class WatchJournal:
    """Records what agents do, and keeps the events that are needed to rewrite the journal."""

    def __init__(self, folder: SweepFolder, begun: Event, clock: Callable[[], float] = time.time) -> None:
        """`begun` is the journal's first event."""
        self.state = SweepState()
        self._folder = folder
        self._begun = begun
        self._clock = clock
        self._of_agents: dict[str, list[TimedEvent]] = {}
        self._of_watch: list[TimedEvent] = []
        self._writer: JournalWriter | None = None

    def add(self, agent: WatchedAgent) -> list[TimedEvent]:
        """Add a new or renamed agent. Return the events that describe it."""
        self._of_agents[agent.key] = events = list(first_events(agent, self._clock()))
        return list(events)

    def forget(self, key: str) -> None:
        """Remove an agent. Afterwards the journal must be rewritten."""
        self._of_agents.pop(key, None)

    def record(self, event: Event) -> None:
        """Append one event."""
        kept, limit = self._of_watch, _KEPT_OF_WATCH
        if isinstance(event, TestEvent) and not isinstance(event, MessageSent) and event.test in self._of_agents:
            kept, limit = self._of_agents[event.test], _KEPT_OF_AGENT
            if isinstance(event, _LATEST_COUNTS):
                kept[:] = [timed for timed in kept if type(timed[1]) is not type(event)]
        kept.append((self._clock(), event))
        # Keep the first two events, which describe the agent.
        del kept[2 : 2 + max(0, len(kept) - limit)]
        self._append(event)

    def append_all(self, events: Iterable[TimedEvent]) -> None:
        """Append the events of new agents."""
        for _, event in sorted(events, key=lambda timed: timed[0]):
            self._append(event)

    def _append(self, event: Event) -> None:
        if self._writer is not None:
            self.state.apply(self._writer.append(event))

    def write_anew(self) -> None:
        """Rewrite the whole journal. Readers start again."""
        kept = [*(timed for of_agent in self._of_agents.values() for timed in of_agent), *self._of_watch]
        kept.sort(key=lambda timed: timed[0])
        events = [(kept[0][0] if kept else self._clock(), self._begun), *kept]
        self.close()
        self.state = SweepState()
        at = 0.0
        with draft_beside(self._folder.events) as draft:
            for number, (when, event) in enumerate(events, 1):
                at = max(at, when)
                written = structs.replace(event, seq=number, at=at)
                draft.write(encode_event(written) + b"\n")
                self.state.apply(written)
        self._writer = JournalWriter(self._folder.events, last_seq=len(events), last_at=at, clock=self._clock)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def first_events(agent: WatchedAgent, now: float) -> Iterator[TimedEvent]:
    """Yield the events that describe an agent, with their times."""
    created = agent.created_at or agent.since or now
    yield created, Queued(test=agent.key, agent=agent.address.name, branch=agent.branch, traits=agent.traits)
    yield created, launch_event(agent)
    yield agent.since or created, state_event(agent)


def launch_event(agent: WatchedAgent) -> Launched:
    address = agent.address
    return Launched(
        test=agent.key,
        agent_id=address.agent_id,
        host=address.host,
        work_dir=address.work_dir,
        state_dir=address.state_dir,
    )


def state_event(agent: WatchedAgent) -> AgentStateChanged | Stopped:
    source = "process" if agent.address.state_dir else "mngr list"
    if not agent.is_alive:
        return Stopped(test=agent.key, reason=ENDED[agent.state], source=source)
    return AgentStateChanged(
        test=agent.key, state=State.WAITING if agent.state == "WAITING" else State.RUNNING, source=source
    )


LOOK_SECONDS: Final = 5.0
"""Seconds between polls of all agents. Needed even with notifications, which do not report programs in terminals."""
READ_AGAIN_SECONDS: Final = 2.5
"""Seconds to keep reading the files of an agent after a change, because not everything is recorded at once."""
REST: Final = 1.0
"""The maximum of seconds to wait for a notification."""


class Alerts:
    """Change notifications of this machine, for one event loop."""

    def __init__(self, host: LocalHost, requests: Path) -> None:
        """`requests` is the file with requests of the user."""
        self._host = host
        self._has_news = asyncio.Event()
        self._notices = FileNotices()
        self._requests = self._notices.follow(requests, self._has_news.set)
        self._is_changed = True
        self._look_due = 0.0
        self._written: dict[str, float] = {}
        """When each agent last changed a file, by agent id."""
        host.on_status_change(self.look_at_all)
        host.on_change(self._note_writing)

    @property
    def is_complete(self) -> bool:
        """Whether all kinds of notifications work on this machine."""
        return self._requests.is_noticed and self._host.reports_status_changes() and self._host.reports_changes()

    def look_at_all(self) -> None:
        """Poll all agents next."""
        self._is_changed = True
        self._has_news.set()

    def _note_writing(self, agent: str) -> None:
        self._written[agent] = time.monotonic()
        self._has_news.set()

    def take(self, now: float) -> Set[str] | None:
        """Return the ids of the agents whose files must be read; None to poll all agents."""
        self._has_news.clear()
        if self._is_changed or now >= self._look_due or not self.is_complete:
            self._is_changed, self._look_due = False, now + LOOK_SECONDS
            return None
        self._written = {agent: at for agent, at in self._written.items() if now < at + READ_AGAIN_SECONDS}
        return self._written.keys()

    async def come(self) -> None:
        """Wait briefly for a notification. Return at once if some kinds of notifications do not work."""
        if self.is_complete and not self._written:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REST):
                    await self._has_news.wait()

    def close(self) -> None:
        self._notices.close()


NO_SWEEP: Final = "not available for watched agents; you can message, answer, attach to and stop them"
_DETAIL_LIMIT: Final = 500


class WatchContext(AgentContext, AgentWatches, Protocol):
    """The parts of the observer that requests use."""

    def agent_of(self, test: str) -> WatchedAgent | None:
        """Return the agent behind a test of the journal."""


class WatchRequests:
    """Carries out the requests of one room."""

    def __init__(self, context: WatchContext, folder: SweepFolder) -> None:
        self._context = context
        self._follower = RequestFollower(folder)
        self._messages = AgentMessages(context, context)
        self._answers = AnswerDelivery(context, context, self._messages)

    def carry_out_new(self, group: asyncio.TaskGroup) -> None:
        """Start the requests that were added since the last call."""
        requests, _ = self._follower.read()
        for request in requests:
            group.create_task(self._carry_out(request))

    async def _carry_out(self, request: Request) -> None:
        by = plain(request.by, 80) or "a user"
        try:
            match request.kind:
                case RequestKind.MESSAGE:
                    problem = await self._send(request, by)
                case RequestKind.ANSWER:
                    outcome = await self._answers.answer(request.items, request.text or "", by=by)
                    problem = "" if outcome.answered == outcome.wanted else outcome.words
                case RequestKind.STOP:
                    problem = await self._stop(request)
                case _:
                    problem = NO_SWEEP
        except SwarmError as error:
            problem = str(error)
        self._answer(request, problem)

    def _answer(self, request: Request, problem: str) -> None:
        detail = plain(problem, _DETAIL_LIMIT)
        self._context.record(RequestAnswered(request=request.id, is_done=not problem, detail=detail))

    async def _send(self, request: Request, by: str) -> str:
        here = [test for test in request.tests if test in self._context.watches]
        far = [agent for test in request.tests if (agent := self._far_agent(test)) is not None]
        problems = await self._messages.send(here, request.text or "", by=by) if here else []
        if far:
            report = await self._context.mngr.message([agent.address.mngr_name for agent in far], request.text or "")
            problems += [f"{failure.agent}: {failure.error}" for failure in (*report.failed, *report.blocked)]
            problems += [f"mngr did not find {name}" for name in report.missing]
        missing = len(request.tests) - len(here) - len(far)
        problems += [f"{missing} of them no longer running"] if missing else []
        return "; ".join(problems)

    def _far_agent(self, test: str) -> WatchedAgent | None:
        agent = self._context.agent_of(test)
        return agent if agent is not None and not agent.address.state_dir and agent.is_alive else None

    async def _stop(self, request: Request) -> str:
        agents = [agent for test in request.tests if (agent := self._context.agent_of(test)) is not None]
        report = await self._context.mngr.stop([agent.address.mngr_name for agent in agents])
        problems = [f"{failure.agent}: {failure.error}" for failure in report.failed]
        return "; ".join([*problems, *(f"mngr did not find {name}" for name in report.missing)])


PAUSE: Final = 0.7
"""The minimum of seconds between polls."""
CONFIRM_SECONDS: Final = 0.15
"""Seconds until a second poll confirms a change, because a poll can happen in the middle of a change."""
SHARE: Final = 9.0
"""The ratio of the pause to the processor time of the last poll, which is long with thousands of agents."""
_FOREVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class AgentToWatch:
    """The key and type of a watched agent."""

    key: str
    kind: AgentType


class Observer:
    """Polls the agents of this machine after changes, and calls mngr for agents on other machines."""

    def __init__(self, folder: SweepFolder, conditions: Conditions) -> None:
        self.spec: SweepSpec = folder.read_spec()
        self.mngr = Mngr(self.spec.mngr.path, mngr_environment(self.spec.mngr))
        self._host = LocalHost(self.spec.mngr)
        self.hosts = Hosts([self._host])
        self.watches: dict[str, AgentFollower] = {}
        self._folder = folder
        self._conditions = conditions
        self._remote = RemoteAgents(self.mngr, conditions, Path(self._host.host_dir))
        self._journal = WatchJournal(folder, EngineStarted(pid=os.getpid()))
        self._requests = WatchRequests(self, folder)
        self._types = AgentTypes(Path(self._host.host_dir))
        self._screens = DoubtfulScreens(self.hosts)
        self._agents: dict[str, WatchedAgent] = {}
        self._statuses = AgentStatuses({})
        self._reported: set[str] = set()
        self._is_stale = False

    # Used for messages and answers.

    @property
    def state(self) -> SweepState:
        return self._journal.state

    def record(self, event: Event) -> None:
        self._journal.record(event)

    def note(self, text: str, *, level: Literal["info", "warning", "error"] = "info", test: str = "") -> None:
        self.record(LogMessage(level=level, text=text, test=test))

    def agent_of(self, test: str) -> WatchedAgent | None:
        """Return the agent behind a test of the journal."""
        return self._agents.get(test)

    # Polls.

    async def look_first(self) -> None:
        """Write the journal with what is known quickly. Filters require a call of mngr, which takes seconds."""
        if self._conditions.are_there:
            await self._remote.ask()
        await self._look_at_processes()
        self._journal.write_anew()

    async def look_once(self) -> None:
        """Write the journal with the complete state of agents on this and other machines."""
        await self._remote.ask_if_it_answers()
        await self._look_at_processes()
        await self._observe(None)
        self._journal.write_anew()
        self._report_problems()

    async def work(self, parent: int) -> None:
        """Poll until the parent process exits."""
        alerts = Alerts(self._host, self._folder.requests)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._remote.ask_again_and_again(alerts.look_at_all))
            while os.getppid() == parent:
                start = time.process_time()
                self._requests.carry_out_new(group)
                changed = alerts.take(time.monotonic())
                if changed is None:
                    await self._look_at_processes()
                if changed is None or changed:
                    await self._observe(changed)
                    self._report_problems()
                    is_unconfirmed = any(watch.is_unconfirmed for watch in self.watches.values())
                    if is_unconfirmed:
                        alerts.look_at_all()
                    # Use processor time, because a poll takes longer on a busy machine.
                    spent = time.process_time() - start
                    await asyncio.sleep(max(CONFIRM_SECONDS if is_unconfirmed else PAUSE, SHARE * spent))
                await alerts.come()
            asking.cancel()
        alerts.close()

    def close(self) -> None:
        self._journal.close()

    def _report_problems(self) -> None:
        for sentence in without_repeats(self._remote.problems, self._reported):
            self.note(sentence, level="warning")

    async def _look_at_processes(self) -> None:
        """Record which agents exist, from mngr's files and the processes in their terminals."""
        try:
            self._statuses = await self._host.statuses()
        except HostUnreachable as error:
            if not self._is_stale:
                self._is_stale = True
                self.record(PollFailed(reason=str(error)))
            return
        if self._is_stale:
            self._is_stale = False
            self.record(PollRecovered())
        self._update_agents(self._matching_agents(self._statuses))

    def _matching_agents(self, statuses: AgentStatuses) -> dict[str, WatchedAgent]:
        every = [*agents_here(statuses), *agents_elsewhere(self._remote.agents, self.spec.mngr.prefix)]
        chosen = self._remote.chosen
        agents = {agent.key: agent for agent in every if chosen is None or agent.address.agent_id in chosen}
        for key, agent in self._agents.items():
            if agent.address.agent_id in statuses.unreadable:
                agents.setdefault(key, agent)
        return agents

    def _update_agents(self, agents: Mapping[str, WatchedAgent]) -> None:
        """Record new, removed and renamed agents, and the states of agents on other machines."""
        gone = [key for key in self._agents if key not in agents]
        renamed = [
            key for key, agent in agents.items() if key in self._agents and agent.names != self._agents[key].names
        ]
        for key in (*gone, *renamed):
            self._journal.forget(key)
            self.watches.pop(key, None)
        added = []
        for key, agent in agents.items():
            if key not in self._agents or key in renamed:
                added += self._journal.add(agent)
                self._begin_watch(agent)
            elif not agent.address.state_dir and agent.state != self._agents[key].state:
                self._record_state(agent)
        self._agents = dict(agents)
        if gone or renamed:
            self._journal.write_anew()
        else:
            self._journal.append_all(added)

    def _record_state(self, agent: WatchedAgent) -> None:
        if agent.is_alive and not self._agents[agent.key].is_alive:
            self.record(launch_event(agent))
        self.record(state_event(agent))

    def _begin_watch(self, agent: WatchedAgent) -> None:
        if not agent.address.state_dir or not agent.is_alive:
            return
        kind = agent_type_of(agent.agent_type, self._types.parents().get(agent.agent_type, ""))
        watch = AgentFollower(
            AgentToWatch(agent.key, kind), agent.address, -_FOREVER, _FOREVER, _FOREVER, is_foreign=True
        )
        watch.state = State.WAITING if agent.state == "WAITING" else State.RUNNING
        self.watches[agent.key] = watch

    async def _observe(self, written: Set[str] | None) -> None:
        """Record what the agents of this machine do, or only those with these ids."""
        if self._is_stale:
            return
        now, clock = time.monotonic(), time.time()
        agents = [agent for agent in self._agents.values() if written is None or agent.address.agent_id in written]
        watches = [watch for agent in agents if (watch := self.watches.get(agent.key)) is not None]
        new = [watch for watch in watches if watch.is_unread]
        for event in await read_new_events(self.hosts, watches, now):
            self.record(event)
        for observer in (watch.observer for watch in new):
            if observer is not None:
                # The first observed state may have begun long before.
                observer.observe(0.0)
        doubtful = [watch.address for watch in watches if watch.needs_screen(now, clock)]
        screens = await self._screens.read(doubtful)
        for agent in agents:
            if not agent.address.state_dir or self._statuses.is_unknown(agent.address):
                continue
            watch = self.watches.get(agent.key)
            if watch is None:
                self._look_at_ended(agent)
                continue
            # An agent of a sweep is watched even after it submitted its work.
            watch.handed_in_at = None
            process = self._statuses.agents[agent.address.agent_id].state
            seen, end = watch.observe(process, now, clock, screens.get(watch.address.session))
            if seen is not None:
                self.record(seen)
            if end is not None:
                del self.watches[agent.key]
                self.record(state_event(agent))

    def _look_at_ended(self, agent: WatchedAgent) -> None:
        """Record that an exited agent was started again, or that its terminal was closed."""
        if agent.is_alive:
            self.record(launch_event(agent))
            self.record(state_event(agent))
            self._begin_watch(agent)
            return
        record = self.state.records.get(agent.key)
        if record is not None and record.reason != ENDED[agent.state]:
            self.record(state_event(agent))


async def look_once(folder: SweepFolder, conditions: Conditions) -> None:
    """Write the journal with the current state of the agents."""
    observer = Observer(folder, conditions)
    try:
        await observer.look_once()
    finally:
        observer.close()


async def observe(folder: SweepFolder, conditions: Conditions, parent: int) -> None:
    """Watch until the parent process exits."""
    lock = EngineLock(folder.lock)
    lock.acquire()
    observer = Observer(folder, conditions)
    try:
        await observer.look_first()
        await observer.work(parent)
    finally:
        observer.close()
        lock.release()

"""Watches agents for a room, as a process of its own, and writes down what they do."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import AgentTypes, mngr_environment
from swarm_tui.agents.kinds import AgentKind, kind_of
from swarm_tui.engine.doubtful_screens import DoubtfulScreens
from swarm_tui.engine.watch import Watch, read_new_events
from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.events import EngineStarted, KnownEvent, Noted, ProbeFailed, ProbeRecovered
from swarm_tui.model.states import State
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.local import LocalPlace
from swarm_tui.places.place import AgentStatuses, PlaceUnreachable
from swarm_tui.watching.agents import ENDED, WatchedAgent, agents_elsewhere, agents_here
from swarm_tui.watching.alerts import Alerts
from swarm_tui.watching.conditions import Conditions
from swarm_tui.watching.far_agents import FarAgents, without_repeats
from swarm_tui.watching.journal import WatchJournal, launch_event, state_event
from swarm_tui.watching.requests import WatchRequests

PAUSE: Final = 0.7
"""Between two looks, also where much happens."""
CONFIRM_SECONDS: Final = 0.15
"""When something has changed it is looked again so soon, as one look alone may fall into a change."""
SHARE: Final = 9.0
"""With thousands of agents a look takes long: the pause after it is so many times as long."""
_FOREVER: Final = float("inf")


@dataclass(frozen=True, slots=True)
class AgentToWatch:
    """What the watch of one agent has to know of it."""

    key: str
    kind: AgentKind


class Observer:
    """Looks at the agents of this machine when something happens there, and asks mngr for those of others."""

    def __init__(self, folder: SweepFolder, conditions: Conditions) -> None:
        self.spec: SweepSpec = folder.read_spec()
        self.mngr = Mngr(self.spec.mngr.path, mngr_environment(self.spec.mngr))
        self.place = LocalPlace(self.spec.mngr)
        self.watches: dict[str, Watch] = {}
        self._folder = folder
        self._conditions = conditions
        self._far = FarAgents(self.mngr, conditions, Path(self.place.host_dir_of("")))
        self._journal = WatchJournal(folder, EngineStarted(pid=os.getpid()))
        self._requests = WatchRequests(self, folder)
        self._types = AgentTypes(Path(self.place.host_dir_of("")))
        self._screens = DoubtfulScreens(self.place)
        self._known: dict[str, WatchedAgent] = {}
        self._statuses = AgentStatuses({})
        self._said: set[str] = set()
        self._is_stale = False

    # What messages and answers need.

    @property
    def state(self) -> SweepState:
        return self._journal.state

    def record(self, event: KnownEvent) -> None:
        self._journal.record(event)

    def note(self, text: str, *, level: Literal["info", "warning", "error"] = "info", test: str = "") -> None:
        self.record(Noted(level=level, text=text, test=test))

    def agent_of(self, test: str) -> WatchedAgent | None:
        """Return the agent behind a test of the journal."""
        return self._known.get(test)

    # Looking.

    async def look_first(self) -> None:
        """Write the journal with what can be known at once; conditions are for mngr to judge, which takes seconds."""
        if self._conditions.are_there:
            await self._far.ask()
        await self._look_at_processes()
        self._journal.write_anew()

    async def look_once(self) -> None:
        """Write the journal with all that can be known of the agents here and elsewhere."""
        await self._far.ask_if_it_answers()
        await self._look_at_processes()
        await self._observe(None)
        self._journal.write_anew()
        self._say_problems()

    async def work(self, parent: int) -> None:
        """Look again and again until the process that started us is gone."""
        alerts = Alerts(self.place, self._folder.requests)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(self._far.ask_again_and_again(alerts.look_at_all))
            while os.getppid() == parent:
                worked = time.process_time()
                self._requests.carry_out_new(group)
                changed = alerts.take(time.monotonic())
                if changed is None:
                    await self._look_at_processes()
                if changed is None or changed:
                    await self._observe(changed)
                    self._say_problems()
                    is_unconfirmed = any(watch.is_unconfirmed for watch in self.watches.values())
                    if is_unconfirmed:
                        alerts.look_at_all()
                    # On a busy machine a look takes long for other reasons than its own work.
                    spent = time.process_time() - worked
                    await asyncio.sleep(max(CONFIRM_SECONDS if is_unconfirmed else PAUSE, SHARE * spent))
                await alerts.come()
            asking.cancel()
        alerts.close()

    def close(self) -> None:
        self._journal.close()

    def _say_problems(self) -> None:
        for sentence in without_repeats(self._far.problems, self._said):
            self.note(sentence, level="warning")

    async def _look_at_processes(self) -> None:
        """Write down which agents there are, by mngr's files and what runs in their terminals."""
        try:
            self._statuses = await self.place.agent_statuses()
        except PlaceUnreachable as error:
            if not self._is_stale:
                self._is_stale = True
                self.record(ProbeFailed(reason=str(error)))
            return
        if self._is_stale:
            self._is_stale = False
            self.record(ProbeRecovered())
        self._take_in(self._wanted(self._statuses))

    def _wanted(self, statuses: AgentStatuses) -> dict[str, WatchedAgent]:
        found = [*agents_here(statuses), *agents_elsewhere(self._far.agents, self.spec.mngr.prefix)]
        chosen = self._far.chosen
        wanted = {agent.key: agent for agent in found if chosen is None or agent.address.agent_id in chosen}
        for key, agent in self._known.items():
            if agent.address.agent_id in statuses.unreadable:
                wanted.setdefault(key, agent)
        return wanted

    def _take_in(self, wanted: Mapping[str, WatchedAgent]) -> None:
        """Write down which agents are new, gone, or called otherwise, and the states of those on other machines."""
        gone = [key for key in self._known if key not in wanted]
        renamed = [key for key, agent in wanted.items() if key in self._known and agent.names != self._known[key].names]
        for key in (*gone, *renamed):
            self._journal.forget(key)
            self.watches.pop(key, None)
        added = []
        for key, agent in wanted.items():
            if key not in self._known or key in renamed:
                added += self._journal.add(agent)
                self._begin_watch(agent)
            elif not agent.address.state_dir and agent.state != self._known[key].state:
                self._record_state(agent)
        self._known = dict(wanted)
        if gone or renamed:
            self._journal.write_anew()
        else:
            self._journal.append_all(added)

    def _record_state(self, agent: WatchedAgent) -> None:
        if agent.is_alive and not self._known[agent.key].is_alive:
            self.record(launch_event(agent))
        self.record(state_event(agent))

    def _begin_watch(self, agent: WatchedAgent) -> None:
        if not agent.address.state_dir or not agent.is_alive:
            return
        kind = kind_of(agent.agent_type, self._types.parents().get(agent.agent_type, ""))
        watch = Watch(AgentToWatch(agent.key, kind), agent.address, -_FOREVER, _FOREVER, _FOREVER, is_foreign=True)
        watch.state = State.WAITING if agent.state == "WAITING" else State.RUNNING
        self.watches[agent.key] = watch

    async def _observe(self, written: Set[str] | None) -> None:
        """Write down what the agents of this machine do, or those whose ids are given."""
        if self._is_stale:
            return
        now, clock = time.monotonic(), time.time()
        agents = [agent for agent in self._known.values() if written is None or agent.address.agent_id in written]
        watches = [watch for agent in agents if (watch := self.watches.get(agent.key)) is not None]
        new = [watch for watch in watches if watch.is_unread]
        for event in await read_new_events(self.place, watches, now):
            self.record(event)
        for observer in (watch.observer for watch in new):
            if observer is not None:
                # What is so when it is looked at for the first time has lasted, as far as anybody can tell.
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
            # An agent of a sweep that has handed in goes on living here.
            watch.handed_in_at = None
            process = self._statuses.agents[agent.address.agent_id].state
            seen, end = watch.observe(process, now, clock, screens.get(watch.address.session))
            if seen is not None:
                self.record(seen)
            if end is not None:
                del self.watches[agent.key]
                self.record(state_event(agent))

    def _look_at_ended(self, agent: WatchedAgent) -> None:
        """Write down when an agent that had ended was started again, or its terminal was closed too."""
        if agent.is_alive:
            self.record(launch_event(agent))
            self.record(state_event(agent))
            self._begin_watch(agent)
            return
        record = self.state.records.get(agent.key)
        if record is not None and record.reason != ENDED[agent.state]:
            self.record(state_event(agent))


async def look_once(folder: SweepFolder, conditions: Conditions) -> None:
    """Write the journal of a watch with what is so now."""
    observer = Observer(folder, conditions)
    try:
        await observer.look_once()
    finally:
        observer.close()


async def observe(folder: SweepFolder, conditions: Conditions, parent: int) -> None:
    """Watch until the parent process is gone."""
    lock = EngineLock(folder.lock)
    lock.acquire()
    observer = Observer(folder, conditions)
    try:
        await observer.look_first()
        await observer.work(parent)
    finally:
        observer.close()
        lock.release()

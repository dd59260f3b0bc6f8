"""Plays the scripts of all simulated agents within a number of slots, in the order of their events."""

from __future__ import annotations

import heapq
import random
from typing import Any, NamedTuple

from swarm_tui.simulate.asks import SimulatedAsks
from swarm_tui.simulate.budget import SimulatedBudget
from swarm_tui.simulate.hosts import HostEvent, SimulatedHosts
from swarm_tui.simulate.material import SimulatedTest
from swarm_tui.simulate.script import Fields, ScriptedEvent, write_script


class TimedEvent(NamedTuple):
    """An event and its time in seconds of the simulated sweep."""

    at: float
    fields: Fields


class SimulatedSweep:
    """A simulated sweep. Its clock is simulated too: the caller of `next_event` sets the pace."""

    def __init__(
        self,
        sweep: str,
        tests: list[SimulatedTest],
        slots: int,
        seed: int,
        budget: float | None = None,
        hosts: int = 0,
    ) -> None:
        self.sweep = sweep
        self.tests = {test.test: test for test in tests}
        self.slots = slots
        self.now = 0.0
        self.is_held = False
        self.budget = budget or 0.0
        self._money = SimulatedBudget(self.budget)
        self._owed: list[Fields] = []
        """Events about the budget that follow from the last one."""
        self._generator = random.Random(seed)
        self._queue = [test.test for test in self._generator.sample(tests, len(tests))]
        self._held: set[str] = set()
        self._steps: dict[str, list[ScriptedEvent]] = {}
        self._round: dict[str, int] = dict.fromkeys(self.tests, 0)
        self._positions = {test.test: position for position, test in enumerate(tests)}
        self._due: list[tuple[float, int, int]] = []
        self._names = [test.test for test in tests]
        self._waiting: set[str] = set()
        self._asks = SimulatedAsks()
        self.hosts = SimulatedHosts(hosts, slots, seed) if hosts else None
        self._host_of: dict[str, str] = {}

    def opening(self, pid: int, machine: str) -> list[Fields]:
        """Return the events with which the sweep begins: the engine and every test in the queue."""
        started = {"pid": pid, "machine": machine, "slots": self.slots, "budget": self.budget}
        events: list[Fields] = [{"type": "engine_started", **started}]
        for position, test in enumerate(self.tests.values()):
            slug = f"{test.name.removeprefix('test_').split('[')[0].replace('_', '-')[:32]}-{position}"
            events.append(
                {
                    "type": "queued",
                    "test": test.test,
                    "agent": f"swarm-{self.sweep}-{slug}",
                    "branch": f"swarm/{self.sweep}/{slug}",
                    "file": test.file,
                    "line": test.line,
                    "block": test.block,
                }
            )
        return events

    @property
    def is_over(self) -> bool:
        return not self._steps and not self._queue

    @property
    def done(self) -> int:
        return len(self.tests) - len(self._queue) - len(self._steps)

    def next_event(self) -> TimedEvent | None:
        """Return the next event; None when there is none now: the sweep is over, or its queue is held."""
        if self._owed:
            return TimedEvent(self.now, self._owed.pop(0))
        self._fill_slots()
        while self._due:
            if self.hosts is not None and (event := self.hosts.next_event(self._due[0][0])) is not None:
                return self._host_event(event)
            at, position, round_number = heapq.heappop(self._due)
            test = self._names[position]
            steps = self._steps.get(test)
            if steps is None or self._round[test] != round_number:
                continue
            if self.hosts is not None and (back_at := self.hosts.back_at(self._host_of[test])) is not None:
                # What it does meanwhile is heard of when its host is back.
                heapq.heappush(self._due, (max(at, back_at) + 0.1, position, round_number))
                continue
            self.now = max(self.now, at)
            step = steps.pop(0)
            self._note_waiting(test, step)
            if steps:
                heapq.heappush(self._due, (self.now + steps[0].wait, position, round_number))
            else:
                self._end(test)
            fields = {"type": step.type, "test": test, **step.fields}
            if self.hosts is not None and step.type in ("launching", "launched"):
                fields["host"] = self._host_of[test]
            self._owed = self._money.follow(fields)
            return TimedEvent(self.now, fields)
        return None

    def _host_event(self, event: HostEvent) -> TimedEvent:
        assert self.hosts is not None
        self.now = max(self.now, event.at)
        if event.kind == "host_gone":
            tests = [test for test in self._steps if self._host_of[test] == event.host]
            reason = f"{event.host} is given up"
            self._owed += [{"type": "queued", "test": test, "reason": reason} for test in tests]
            for test in tests:
                self._end(test)
                self._waiting.discard(test)
                self._queue.insert(0, test)
        return TimedEvent(self.now, self.hosts.fields_of(event))

    def _end(self, test: str) -> None:
        if self._steps.pop(test, None) is not None and self.hosts is not None:
            self.hosts.free_slot(self._host_of.pop(test))

    def rule_answers(self) -> list[Fields]:
        """Return the events by which rules answer what has been asked."""
        return self._asks.rule_answers(self._go_on)

    def _note_waiting(self, test: str, step: ScriptedEvent) -> None:
        self._asks.note(test, step)
        self._waiting.discard(test)
        if step.type == "seen" and step.fields["state"] == "waiting":
            self._waiting.add(test)

    def _fill_slots(self) -> None:
        while not self.is_held and not self._money.is_used_up and len(self._steps) - len(self._waiting) < self.slots:
            test = next((test for test in self._queue if test not in self._held), None)
            if test is None:
                return
            if self.hosts is not None:
                host = self.hosts.take_slot()
                if host is None:
                    return
                self._host_of[test] = host
            self._queue.remove(test)
            self._round[test] += 1
            self._steps[test] = write_script(self.tests[test], self._round[test], self._generator)
            wait = self._steps[test][0].wait + self._generator.random() * 0.5
            heapq.heappush(self._due, (self.now + wait, self._positions[test], self._round[test]))

    def answer_request(self, request: dict[str, Any]) -> list[Fields]:
        """Carry out a request and return the events that it makes."""
        named = [test for test in request.get("tests") or () if test in self.tests]
        events: list[Fields] = []
        match request.get("kind"):
            case "slots" if isinstance(request.get("slots"), int):
                self.slots = max(0, request["slots"])
                events = [{"type": "slots_changed", "slots": self.slots}]
            case "hold":
                self._held.update(named)
                self.is_held = self.is_held or not named
                events = [{"type": "queue_held", "tests": named, "reason": "a person asked"}]
            case "release":
                self._held.difference_update(named)
                self.is_held = self.is_held and bool(named)
                events = [{"type": "queue_released", "tests": named}]
            case "budget" if isinstance(request.get("dollars"), int | float):
                events = [{"type": "budget_changed", "total": request["dollars"], "by": str(request.get("by") or "")}]
                events += self._money.follow(events[0])
            case "stop":
                events = [self._stop(test) for test in named if test in self._steps or test in self._queue]
            case "retry":
                events = [self._retry(test) for test in named if test not in self._steps and test not in self._queue]
            case "answer":
                return self._asks.answer(request, self._go_on)
            case "make_rule" if isinstance(request.get("rule"), dict):
                events = [self._asks.make_rule(request)]
            case "end_rule":
                events = [self._asks.end_rule(request)]
            case "message":
                events = [event for test in named for event in self._send_message(test, str(request.get("text") or ""))]
            case kind:
                detail = f"the simulated engine cannot do {str(kind)[:40]}"
                return [{"type": "request_answered", "request": request["id"], "is_done": False, "detail": detail}]
        for event in events:
            if event["type"] == "queued":
                self._money.follow(event)
        return [*events, {"type": "request_answered", "request": request["id"], "is_done": True}]

    def _stop(self, test: str) -> Fields:
        self._asks.forget(test)
        self._end(test)
        self._waiting.discard(test)
        if test in self._queue:
            self._queue.remove(test)
        return {"type": "stopped", "test": test, "reason": "a person asked"}

    def _retry(self, test: str) -> Fields:
        self._queue.insert(0, test)
        return {"type": "queued", "test": test, "reason": "a person asked for another round"}

    def _send_message(self, test: str, text: str) -> list[Fields]:
        self._go_on(test)
        return [{"type": "message_sent", "test": test, "text": text, "by": "a person"}]

    def _go_on(self, test: str) -> None:
        """Have an agent that waits go on at once."""
        if test in self._waiting and self._steps.get(test):
            self._waiting.discard(test)
            if self._steps[test][0].type == "ask_closed":
                # It would have been answered on its screen.
                del self._steps[test][0]
            self._steps[test][0] = self._steps[test][0]._replace(wait=1.0)
            heapq.heappush(self._due, (self.now + 1.0, self._positions[test], self._round[test]))

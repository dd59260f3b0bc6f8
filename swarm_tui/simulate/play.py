"""Play scripts within slots."""

from __future__ import annotations

import heapq
import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from swarm_tui.journal.decode import parse_event
from swarm_tui.journal.events import EngineStarted
from swarm_tui.journal.state import SweepState
from swarm_tui.model.questions import AnswerRule, Question, fits, item_id
from swarm_tui.money.budget import due_events
from swarm_tui.questions.groups import GONE
from swarm_tui.simulate.script import Fields, ScriptedEvent, SimulatedTest, write_script

Continue = Callable[[str], None]
"""A function that lets the agent of a test continue."""


class SimulatedQuestions:
    """The open questions of one simulated sweep, and its rules."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, Question]] = {}
        """The test and the question, by item id."""
        self._rules: dict[str, AnswerRule] = {}
        self._rule_count = 0

    def note(self, test: str, step: ScriptedEvent) -> None:
        """Update the open questions after a step of an agent."""
        if step.type == "question_asked":
            question = msgspec.convert(step.fields["question"], Question)
            self._open[item_id(test, question)] = test, question
        elif step.type != "agent_state_changed":
            self.forget(test)

    def forget(self, test: str) -> None:
        """Remove the questions of an agent that continues or has finished."""
        self._open = {item: entry for item, entry in self._open.items() if entry[0] != test}

    def answer(self, request: dict[str, Any], continue_agent: Continue) -> list[Fields]:
        """Return the events for an answer of the user."""
        items = [str(item) for item in request.get("items") or ()]
        text = str(request.get("text") or "")
        gone = [item for item in items if item not in self._open]
        answered = [item for item in dict.fromkeys(items) if item in self._open]
        events = [event for item in answered for event in self._give(item, text, "user", "", continue_agent)]
        done = {"type": "request_answered", "request": request["id"], "is_done": not gone}
        detail = f"{len(items) - len(gone)} of {len(items)} answered; {GONE}" if len(items) > 1 else GONE
        return [*events, done | ({"detail": detail} if gone else {})]

    def _give(self, item: str, text: str, by: str, rule: str, continue_agent: Continue) -> list[Fields]:
        test, question = self._open.pop(item)
        continue_agent(test)
        return [
            {"type": "question_answered", "test": test, "question": question.id, "text": text, "by": by, "rule": rule},
            {"type": "question_closed", "test": test, "question": question.id, "why": "answered"},
        ]

    def add_rule(self, request: dict[str, Any]) -> Fields:
        """Return the event for a new rule."""
        self._rule_count += 1
        rule = msgspec.convert({**request["rule"], "id": f"r{self._rule_count}", "by": "user"}, AnswerRule)
        self._rules[rule.id] = rule
        return {"type": "rule_added", "rule": msgspec.to_builtins(rule)}

    def remove_rule(self, request: dict[str, Any]) -> Fields:
        """Return the event for the removal of a rule."""
        self._rules.pop(str(request.get("text")), None)
        return {"type": "rule_removed", "rule": str(request.get("text")), "by": "user"}

    def rule_answers(self, continue_agent: Continue) -> list[Fields]:
        """Return the events for open questions that rules answer."""
        events: list[Fields] = []
        for item, (_, question) in list(self._open.items()):
            rule = next((rule for rule in self._rules.values() if fits(rule, question, question.subject)), None)
            if rule is not None:
                events += self._give(item, rule.answer, rule.by, rule.id, continue_agent)
        return events


_FOLLOWED: Final = frozenset({"queued", "usage_reported", "budget_changed"})


class SimulatedBudget:
    """The spending of simulated agents, and their budget."""

    def __init__(self, total: float = 0.0) -> None:
        self._state = SweepState().apply_all([EngineStarted(pid=0, budget=total)])

    @property
    def is_used_up(self) -> bool:
        return self._state.budget.is_used_up

    def follow(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """Apply an event. Return the events about the budget that follow from it."""
        if fields["type"] not in _FOLLOWED:
            return []
        self._state.apply(parse_event(json.dumps(fields).encode()))
        due = list(due_events(self._state, ()))
        self._state.apply_all(due)
        return [{**msgspec.to_builtins(event), "seq": 0} for event in due]


SEEN_EVERY: Final = 30.0
PROCESSORS: Final = 8
TROUBLE_EVERY: Final = 240.0
"""Average seconds between losses of a host."""
GIVEN_UP: Final = 0.2
"""The share of lost hosts that are given up."""


class HostEvent(NamedTuple):
    at: float
    host: str
    kind: str
    reason: str = ""


class SimulatedHosts:
    """Hosts with the same number of slots each."""

    def __init__(self, number: int, slots: int, seed: int) -> None:
        self.names = [f"box{each + 1}" for each in range(number)]
        self.per_host = max(1, -(-slots // max(1, number)))
        self._generator = random.Random(seed)
        self._agents: Counter[str] = Counter()
        self._back_at: dict[str, float] = {}
        self._due = [HostEvent(self._generator.uniform(0, SEEN_EVERY), name, "host_polled") for name in self.names]
        if number > 1:
            self._due.append(HostEvent(self._generator.uniform(20, TROUBLE_EVERY), "", "host_lost"))
        heapq.heapify(self._due)

    def access(self) -> list[Fields]:
        """Return the connections to the hosts for sweep.json."""
        return [
            {"name": name, "provider": name, "address": f"10.0.{index // 250}.{index % 250 + 1}", "host_dir": "/mngr"}
            for index, name in enumerate(self.names)
        ]

    def take_slot(self) -> str | None:
        """Use a slot of the host with the most free slots and return the host; None if no host has a free slot."""
        free = [name for name in self.names if name not in self._back_at and self._agents[name] < self.per_host]
        if not free:
            return None
        name = min(free, key=lambda name: self._agents[name])
        self._agents[name] += 1
        return name

    def free_slot(self, host: str) -> None:
        self._agents[host] -= 1

    def back_at(self, host: str) -> float | None:
        """Return when a lost host will answer again; None if it is not lost."""
        return self._back_at.get(host)

    def next_event(self, before: float) -> HostEvent | None:
        """Return the next event of a host that is due before a time, or None."""
        while self._due and self._due[0].at <= before:
            event = heapq.heappop(self._due)
            match event.kind:
                case "host_polled":
                    heapq.heappush(self._due, event._replace(at=event.at + SEEN_EVERY))
                    if event.host in self._back_at:
                        continue
                case "host_lost":
                    event = self._lose_one(event)
                    if not event.host:
                        continue
                case "host_recovered":
                    del self._back_at[event.host]
            return event
        return None

    def _lose_one(self, event: HostEvent) -> HostEvent:
        again = event.at + self._generator.uniform(0.5, 1.5) * TROUBLE_EVERY
        heapq.heappush(self._due, HostEvent(again, "", "host_lost"))
        up = [name for name in self.names if name not in self._back_at]
        if len(up) < 2:
            return event
        host = self._generator.choice(up)
        seconds = self._generator.uniform(20, 120)
        if self._generator.random() < GIVEN_UP:
            heapq.heappush(self._due, HostEvent(event.at + seconds, host, "host_abandoned", "no answer for 15 minutes"))
            seconds = 1200.0
        self._back_at[host] = event.at + seconds
        heapq.heappush(self._due, HostEvent(event.at + seconds, host, "host_recovered"))
        return event._replace(host=host, reason="ssh: no answer within 10 s")

    def fields_of(self, event: HostEvent) -> Fields:
        """Return the fields of an event for the journal."""
        fields: Fields = {"type": event.kind, "host": event.host}
        if event.kind == "host_polled":
            load = self._agents[event.host] * self._generator.uniform(0.5, 1.5)
            fields |= {"load": round(load, 2), "processors": PROCESSORS}
        elif event.reason:
            fields["reason"] = event.reason
        return fields


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
        self._pending: list[Fields] = []
        """Events about the budget that follow from the last event."""
        self._generator = random.Random(seed)
        self._queue = [test.test for test in self._generator.sample(tests, len(tests))]
        self._held: set[str] = set()
        self._steps: dict[str, list[ScriptedEvent]] = {}
        self._round: dict[str, int] = dict.fromkeys(self.tests, 0)
        self._positions = {test.test: position for position, test in enumerate(tests)}
        self._due: list[tuple[float, int, int]] = []
        self._names = [test.test for test in tests]
        self._waiting: set[str] = set()
        self._questions = SimulatedQuestions()
        self.hosts = SimulatedHosts(hosts, slots, seed) if hosts else None
        self._host_of: dict[str, str] = {}

    def opening(self, pid: int, machine: str) -> list[Fields]:
        """Return the first events of the sweep: the engine starts, and every test is queued."""
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
        """Return the next event; None if the sweep is finished or its queue is held."""
        if self._pending:
            return TimedEvent(self.now, self._pending.pop(0))
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
                # Events of a lost host are delayed until it answers again.
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
            self._pending = self._money.follow(fields)
            return TimedEvent(self.now, fields)
        return None

    def _host_event(self, event: HostEvent) -> TimedEvent:
        assert self.hosts is not None
        self.now = max(self.now, event.at)
        if event.kind == "host_abandoned":
            tests = [test for test in self._steps if self._host_of[test] == event.host]
            reason = f"{event.host} was given up"
            self._pending += [{"type": "queued", "test": test, "reason": reason} for test in tests]
            for test in tests:
                self._end(test)
                self._waiting.discard(test)
                self._queue.insert(0, test)
        return TimedEvent(self.now, self.hosts.fields_of(event))

    def _end(self, test: str) -> None:
        if self._steps.pop(test, None) is not None and self.hosts is not None:
            self.hosts.free_slot(self._host_of.pop(test))

    def rule_answers(self) -> list[Fields]:
        """Return the events for open questions that rules answer."""
        return self._questions.rule_answers(self._continue_agent)

    def _note_waiting(self, test: str, step: ScriptedEvent) -> None:
        self._questions.note(test, step)
        self._waiting.discard(test)
        if step.type == "agent_state_changed" and step.fields["state"] == "waiting":
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
        """Carry out a request and return its events."""
        named = [test for test in request.get("tests") or () if test in self.tests]
        events: list[Fields] = []
        match request.get("kind"):
            case "slots" if isinstance(request.get("slots"), int):
                self.slots = max(0, request["slots"])
                events = [{"type": "slots_changed", "slots": self.slots}]
            case "hold":
                self._held.update(named)
                self.is_held = self.is_held or not named
                events = [{"type": "queue_held", "tests": named, "reason": "on request"}]
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
                return self._questions.answer(request, self._continue_agent)
            case "add_rule" if isinstance(request.get("rule"), dict):
                events = [self._questions.add_rule(request)]
            case "remove_rule":
                events = [self._questions.remove_rule(request)]
            case "message":
                events = [event for test in named for event in self._send_message(test, str(request.get("text") or ""))]
            case kind:
                detail = f"not supported by the simulated engine: {str(kind)[:40]}"
                return [{"type": "request_answered", "request": request["id"], "is_done": False, "detail": detail}]
        for event in events:
            if event["type"] == "queued":
                self._money.follow(event)
        return [*events, {"type": "request_answered", "request": request["id"], "is_done": True}]

    def _stop(self, test: str) -> Fields:
        self._questions.forget(test)
        self._end(test)
        self._waiting.discard(test)
        if test in self._queue:
            self._queue.remove(test)
        return {"type": "stopped", "test": test, "reason": "on request"}

    def _retry(self, test: str) -> Fields:
        self._queue.insert(0, test)
        return {"type": "queued", "test": test, "reason": "retry requested"}

    def _send_message(self, test: str, text: str) -> list[Fields]:
        self._continue_agent(test)
        return [{"type": "message_sent", "test": test, "text": text, "by": "user"}]

    def _continue_agent(self, test: str) -> None:
        """Let a waiting agent continue at once."""
        if test in self._waiting and self._steps.get(test):
            self._waiting.discard(test)
            if self._steps[test][0].type == "question_closed":
                # Otherwise the script would answer it in the terminal.
                del self._steps[test][0]
            self._steps[test][0] = self._steps[test][0]._replace(wait=1.0)
            heapq.heappush(self._due, (self.now + 1.0, self._positions[test], self._round[test]))

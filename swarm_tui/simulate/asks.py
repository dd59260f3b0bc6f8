"""What simulated agents ask, and how it is answered: by people and by rules, each ask once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from swarm_tui.insight.waits import GONE
from swarm_tui.model.asks import Ask, item_of_ask
from swarm_tui.model.rules import AnswerRule, fits
from swarm_tui.simulate.script import Fields, ScriptedEvent

GoOn = Callable[[str], None]
"""Has an agent go on."""


class SimulatedAsks:
    """The open asks of one simulated sweep, and its rules."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[str, Ask]] = {}
        """The test and the ask, by the item."""
        self._rules: dict[str, AnswerRule] = {}
        self._made = 0

    def note(self, test: str, step: ScriptedEvent) -> None:
        """Take note of a step of an agent."""
        if step.type == "asked":
            ask = Ask.model_validate(step.fields["ask"])
            self._open[item_of_ask(test, ask)] = test, ask
        elif step.type != "seen":
            self.forget(test)

    def forget(self, test: str) -> None:
        """Forget what an agent asked, because it works on or has ended."""
        self._open = {item: asked for item, asked in self._open.items() if asked[0] != test}

    def answer(self, request: dict[str, Any], go_on: GoOn) -> list[Fields]:
        """Return the events by which a person's answer is given and reported."""
        items = [str(item) for item in request.get("items") or ()]
        text = str(request.get("text") or "")
        gone = [item for item in items if item not in self._open]
        given = [item for item in dict.fromkeys(items) if item in self._open]
        events = [event for item in given for event in self._give(item, text, "a person", "", go_on)]
        done = {"type": "request_answered", "request": request["id"], "is_done": not gone}
        told = f"{len(items) - len(gone)} of {len(items)} answered; {GONE}" if len(items) > 1 else GONE
        return [*events, done | ({"detail": told} if gone else {})]

    def _give(self, item: str, text: str, by: str, rule: str, go_on: GoOn) -> list[Fields]:
        test, ask = self._open.pop(item)
        go_on(test)
        return [
            {"type": "ask_answered", "test": test, "ask": ask.id, "text": text, "by": by, "rule": rule},
            {"type": "ask_closed", "test": test, "ask": ask.id, "why": "answered"},
        ]

    def make_rule(self, request: dict[str, Any]) -> Fields:
        """Return the event by which a rule is made."""
        self._made += 1
        rule = AnswerRule.model_validate({**request["rule"], "id": f"r{self._made}", "by": "a person"})
        self._rules[rule.id] = rule
        return {"type": "rule_made", "rule": rule.model_dump()}

    def end_rule(self, request: dict[str, Any]) -> Fields:
        """Return the event by which a rule is taken back."""
        self._rules.pop(str(request.get("text")), None)
        return {"type": "rule_ended", "rule": str(request.get("text")), "by": "a person"}

    def rule_answers(self, go_on: GoOn) -> list[Fields]:
        """Return the events by which rules answer what is open."""
        events: list[Fields] = []
        for item, (_, ask) in list(self._open.items()):
            rule = next((rule for rule in self._rules.values() if fits(rule, ask, ask.subject)), None)
            if rule is not None:
                events += self._give(item, rule.answer, rule.by, rule.id, go_on)
        return events

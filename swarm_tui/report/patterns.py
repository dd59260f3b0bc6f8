"""The patterns of a sweep on its page: what fails alike, what such tests share, and what the alarm said of them."""

from __future__ import annotations

from typing import Any

from swarm_tui.insight.alarm import saved_text, still_held, with_held
from swarm_tui.insight.costs import cost_words
from swarm_tui.insight.insights import Insights
from swarm_tui.insight.patterns import Pattern
from swarm_tui.journal.fold import SweepState
from swarm_tui.model.formatting import counted
from swarm_tui.report.safe_text import safe_line, safe_lines


def patterns_on_page(state: SweepState) -> list[dict[str, Any]]:
    """Return the patterns, those of the most tests first; tests by their places in the list of all."""
    insights = Insights()
    insights.update(state.tests())
    places = {test: place for place, test in enumerate(state.records)}
    return [
        {
            "kind": pattern.kind,
            "title": safe_line(pattern.cause),
            "text": safe_lines("\n".join(_facts(pattern, state))),
            "tests": [places[test] for test in pattern.tests if test in places],
        }
        for pattern in with_held(insights.patterns(), state.alarms, state.records)
    ]


def _facts(pattern: Pattern, state: SweepState) -> list[str]:
    """Return what is known of a pattern, one line of Markdown each."""
    facts = list(pattern.shared)
    alarm = state.alarms.get(pattern.cause)
    if alarm is not None and alarm.tests:
        facts.append(f"alarm: {counted(len(alarm.tests), 'test')} had met it")
    if alarm is not None and still_held(alarm, state.records):
        facts.append(f"held: {saved_text(alarm, state.records)}, since {alarm.why_held}")
    facts.append(cost_words(state.records[test] for test in pattern.tests if test in state.records))
    return [f"- {fact}" for fact in facts if fact]

"""Groups what agents escalate: of hundreds that met the same problem, each has its own words for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from swarm_tui.insight.causes import cause_of_text
from swarm_tui.model.formatting import counted
from swarm_tui.model.outcome import BLOCKING_KINDS, Escalation, EscalationKind, Location
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain

LINES_APART: Final = 3
"""Findings that name lines so close to each other speak of the same place."""
TESTS_NAMED: Final = 50
LOCATIONS_NAMED: Final = 20
_SAME_KIND: Final = {
    EscalationKind.BLOCKER.value: EscalationKind.HARNESS_DEFECT.value,
    EscalationKind.SHARED_PATTERN.value: EscalationKind.SUITE_DUPLICATION.value,
}
"""Older words for the same."""


@dataclass(slots=True)
class Finding:
    """One problem, and all tests whose agents escalated it; the first one's words stand for all."""

    escalation: Escalation
    tests: dict[str, None]
    locations: dict[str, Location]

    @property
    def as_escalation(self) -> Escalation:
        """Return it as one escalation, which names the tests."""
        title = plain(self.escalation.title, 300) or "(no title)"
        tests = [f"* {plain(test, 300)}" for test in self.tests]
        if len(tests) > TESTS_NAMED:
            tests = [*tests[:TESTS_NAMED], f"* … and {len(tests) - TESTS_NAMED} more"]
        text = [self.escalation.detail_markdown.strip(), "\n".join(tests)]
        return Escalation(
            kind=self.escalation.kind,
            title=f"{title} ({counted(len(self.tests), 'test')})" if len(self.tests) > 1 else title,
            detail_markdown="\n\n".join(filter(None, text)),
            locations=tuple(self.locations.values())[:LOCATIONS_NAMED],
        )


def group_findings(records: Iterable[TestRecord]) -> list[Finding]:
    """Return what the agents of these tests escalate: what blocks tests first, then what most of them met.

    Two speak of the same problem when their kind is the same, and their titles but for values, or a place they name.
    """
    found: dict[int, Finding] = {}
    by_title: dict[tuple[str, str], int] = {}
    by_place: dict[tuple[str, str, int], int] = {}
    for record in records:
        for escalation in record.harvest.escalations:
            kind = _SAME_KIND.get(escalation.kind, escalation.kind)
            title = escalation.title or record.reason
            title_key = (kind, cause_of_text(title).casefold())
            places = [(kind, where.path, where.line) for where in escalation.locations if where.line is not None]
            near = (
                by_place[kind, path, line + apart]
                for _, path, line in places
                for apart in range(-LINES_APART, LINES_APART + 1)
                if (kind, path, line + apart) in by_place
            )
            number = by_title.get(title_key)
            number = next(near, len(found)) if number is None else number
            shown = escalation if escalation.title else escalation.model_copy(update={"title": record.reason})
            finding = found.setdefault(number, Finding(shown, {}, {}))
            finding.tests[record.test] = None
            finding.locations |= {
                str(where): where for where in escalation.locations if str(where) not in finding.locations
            }
            by_title.setdefault(title_key, number)
            for place in places:
                by_place.setdefault(place, number)
    return sorted(
        found.values(),
        key=lambda each: (each.escalation.kind not in BLOCKING_KINDS, -len(each.tests), each.escalation.title),
    )

"""Collects blockers, which agents cannot remove: escalations, blocked outcomes and questions, grouped by title."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from swarm_tui.insight.causes import cause_of_text
from swarm_tui.model.outcome import EscalationKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import Result, State
from swarm_tui.model.text import plain, plain_lines

KINDS: Final = {
    EscalationKind.BLOCKER: "blocker",
    EscalationKind.SHARED_PATTERN: "pattern",
    EscalationKind.HARD_TO_USE: "hard to use",
}
QUESTION: Final = "question"
ORDER: Final = (KINDS[EscalationKind.BLOCKER], QUESTION, *KINDS.values())


class Blocker(NamedTuple):
    """One thing that somebody other than the agents must do."""

    kind: str
    title: str
    detail: str
    tests: tuple[str, ...]


def find_blockers(records: Iterable[TestRecord]) -> list[Blocker]:
    """Return all blockers, sorted by kind (those that stop work first), then by the number of their tests."""
    found: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for record in sorted(records, key=lambda record: record.test):
        for kind, title, detail in _entries_of(record):
            found.setdefault((kind, cause_of_text(title).casefold()), []).append((title, detail, record.test))
    blockers = [
        Blocker(
            kind=kind,
            title=plain(entries[0][0], 300),
            detail=plain_lines(max((detail for _, detail, _ in entries), key=len)[:4000]),
            tests=tuple(dict.fromkeys(test for _, _, test in entries)),
        )
        for (kind, _), entries in found.items()
    ]
    return sorted(blockers, key=lambda blocker: (ORDER.index(blocker.kind), -len(blocker.tests), blocker.title))


def _entries_of(record: TestRecord) -> Iterable[tuple[str, str, str]]:
    for escalation in record.harvest.escalations:
        yield KINDS[escalation.kind], escalation.title or record.reason or "(no title)", escalation.detail_markdown
    is_blocked = record.state is State.DONE and record.result is Result.BLOCKED
    if is_blocked and not record.harvest.escalations:
        summary = record.harvest.summary
        yield KINDS[EscalationKind.BLOCKER], record.reason or summary or "(no reason given)", summary
    elif record.state is State.WAITING:
        yield QUESTION, record.question or "(no question seen)", ""


def blockers_as_markdown(blockers: Iterable[Blocker], sweep: str) -> str:
    """Return the blockers as a Markdown document."""
    lines = [f"# What the sweep {plain(sweep, 100)} needs", ""]
    for blocker in blockers:
        lines.append(f"## {blocker.title} ({blocker.kind}, {len(blocker.tests)})")
        if blocker.detail:
            lines += ["", blocker.detail]
        lines += ["", *(f"- `{plain(test, 500)}`" for test in blocker.tests), ""]
    return "\n".join(lines)

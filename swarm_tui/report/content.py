"""Gathers what the page says of a sweep: its numbers, its timeline, a row for each test, and what needs a person."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from swarm_tui import __version__
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.model.formatting import money
from swarm_tui.model.outcome import Escalation
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import MARKS, Result, State
from swarm_tui.report.details import Details, gather_details
from swarm_tui.report.diffs import CommitDiffs
from swarm_tui.report.integrated import gather_integration
from swarm_tui.report.lanes import AgentSpan, place_in_lanes
from swarm_tui.report.safe_text import line, lines

LOG_LINES: Final = 500
_COUNTED: Final = re.compile(r" \(\d+ tests?\)$")
_MARKS_OF_NEED: Final = (State.WAITING.value, Result.BLOCKED.value, Result.FAILED.value, Result.UNRESOLVED.value)


class RowDetails(NamedTuple):
    """What the row of a test says of the details that lie beside the page."""

    casts: int
    has_material: bool


def gather_page(sweep: OpenedSweep, made_at: float, put_beside: Callable[[str, object], None]) -> dict[str, Any]:
    """Read a whole sweep and return what is in the page itself; what is only looked at when opened goes beside it.

    What cannot be read is told on the page, and nothing in the sweep's folder is changed.
    """
    records = list(sweep.state.tests())
    with CommitDiffs(Path(sweep.spec.repository)) as diffs:
        integration, escalated = gather_integration(sweep, diffs, put_beside)
        gathered = [
            _put_details(index, gather_details(sweep.folder, record, diffs), put_beside)
            for index, record in enumerate(records)
        ]
        problems = _problems(sweep, records, gathered, diffs.problem)
    start, end = _bounds(sweep, records)
    return {
        "sweep": line(sweep.spec.sweep),
        "title": line(sweep.spec.title),
        "version": __version__,
        "made_at": made_at,
        "facts": _facts(sweep, records),
        "start": start,
        "end": end,
        "is_over": sweep.state.is_over,
        "ended": line(": ".join(part for part in (sweep.state.ended_why, sweep.state.ended_reason) if part)),
        "counts": {mark: sweep.state.counts[mark] for mark in MARKS if sweep.state.counts[mark]},
        "tests": [_row(index, record, gathered[index]) for index, record in enumerate(records)],
        "lanes": _lanes(records, start, end),
        "integrating": _integrating(sweep, start, end),
        "turned_green": sum(
            record.harvest.passing_before is False and record.harvest.passing_after is True for record in records
        ),
        "needs": gather_needs(records, escalated),
        "integration": integration,
        "log": [
            {"at": told.at, "level": told.level, "text": line(told.text), "test": line(told.test)}
            for told in list(sweep.state.log)[-LOG_LINES:]
        ],
        "problems": problems,
    }


def _put_details(index: int, details: Details, put_beside: Callable[[str, object], None]) -> RowDetails:
    put_beside(f"test-{index}", details.content)
    for place, cast in enumerate(details.casts):
        put_beside(f"cast-{index}-{place}", cast.text)
    return RowDetails(len(details.casts), details.has_material)


def gather_needs(records: Sequence[TestRecord], escalated: Iterable[Escalation] = ()) -> list[dict[str, Any]]:
    """Return what needs a person, the same cause once with all its tests: the widest first."""
    found: dict[tuple[str, str], dict[str, Any]] = {}

    def add(kind: str, title: str, text: str, test: int | None) -> None:
        # The integrator repeats what it counted: "No network (7 tests)".
        cause = _COUNTED.sub("", title.casefold().strip())
        need = found.setdefault((kind, cause), {"kind": kind, "title": line(title), "text": lines(text), "tests": []})
        if test is not None and test not in need["tests"]:
            need["tests"].append(test)

    for index, record in enumerate(records):
        for told in record.harvest.escalations:
            add(told.kind.value.lower(), told.title or "(no title)", told.detail_markdown, index)
        if record.mark not in _MARKS_OF_NEED or (record.harvest.escalations and record.mark == Result.BLOCKED.value):
            continue
        why = record.question if record.state is State.WAITING else record.reason
        add(record.mark, why or record.harvest.summary.partition("\n")[0] or "(no reason was given)", "", index)
    for told in escalated:
        add(told.kind.value.lower(), told.title or "(no title)", told.detail_markdown, None)
    order = ("blocker", "blocked", "waiting", "failed", "shared_pattern", "unresolved")
    return sorted(found.values(), key=lambda need: (order.index(need["kind"]), -len(need["tests"])))


def _row(index: int, record: TestRecord, gathered: RowDetails) -> dict[str, Any]:
    file, _, name = record.test.partition("::")
    return {
        "index": index,
        "test": line(record.test),
        "file": line(record.file or file, 300),
        "name": line(name or record.test, 300),
        "mark": record.mark,
        "block": line(record.block, 300),
        "seconds": _seconds(record),
        "tries": "".join({True: "v", False: "x", None: "o"}[made.passed] for made in record.tries),
        "changes": [line(change.kind, 40) for change in record.harvest.changes if change.status == "SUCCEEDED"],
        "words": line(record.reason or _first_line(record.harvest.summary) or record.last_line, 300),
        "dollars": record.dollars,
        "casts": gathered.casts,
        "has_details": gathered.has_material or bool(record.tries or record.harvest.changes or record.harvest.summary),
    }


def _first_line(markdown: str) -> str:
    return next((text.strip("# *") for text in markdown.split("\n") if text.strip("#* ")), "")


def _seconds(record: TestRecord) -> float | None:
    if record.launched_at is None or record.ended_at is None:
        return None
    return round(record.ended_at - record.launched_at, 1)


def _facts(sweep: OpenedSweep, records: Sequence[TestRecord]) -> list[list[str]]:
    spec = sweep.spec
    known = [record.dollars for record in records if record.dollars is not None]
    tokens = [record.tokens for record in records if record.tokens is not None]
    facts = [
        ["project", line(Path(spec.repository).name, 100)],
        ["base", line(" ".join(part for part in (spec.base_name, spec.base[:10]) if part), 100)],
        ["agents", line(f"{spec.agent_type} on {spec.provider}, {sweep.state.slots or spec.slots} slots", 100)],
        ["tries", f"{sum(len(record.tries) for record in records):,}"],
        ["cost", money(sum(known)) + (" and more" if len(known) < len(records) else "") if known else "?"],
    ]
    if tokens:
        facts.append(["tokens", f"{sum(tokens):,}"])
    return facts


def _bounds(sweep: OpenedSweep, records: Sequence[TestRecord]) -> tuple[float, float]:
    start = sweep.state.started_at or sweep.spec.created_at
    end = sweep.state.ended_at or sweep.state.last_at
    return start, max([start, end, *(record.ended_at for record in records if record.ended_at is not None)])


def _lanes(records: Sequence[TestRecord], start: float, end: float) -> dict[str, Any]:
    spans = [
        AgentSpan(record.launched_at - start, (record.ended_at or end) - start, index)
        for index, record in enumerate(records)
        if record.launched_at is not None
    ]
    placed = place_in_lanes(spans)
    return {
        "count": max((lane for _, lane in placed), default=-1) + 1,
        "spans": [
            [place.lane, round(place.span.start, 1), round(place.span.end, 1), place.span.test] for place in placed
        ],
    }


def _integrating(sweep: OpenedSweep, start: float, end: float) -> list[float] | None:
    """Return when the integrator was at work, from the start of the sweep; None when that is not known."""
    integration = sweep.state.integration
    if integration.started_at is None:
        return None
    ended_at = end if integration.state == "integrating" else integration.at or end
    return [round(integration.started_at - start, 1), round(ended_at - start, 1)]


def _problems(
    sweep: OpenedSweep, records: Sequence[TestRecord], gathered: Sequence[RowDetails], git_problem: str
) -> list[str]:
    problems = []
    if sweep.bad_lines:
        problems.append(f"{len(sweep.bad_lines)} lines of the journal could not be read and were passed over")
    if sweep.state.unknown_events:
        problems.append(f"{sweep.state.unknown_events} events were written by a newer swarm-tui and mean nothing here")
    missing = sum(
        record.state is State.DONE and record.result is not Result.FAILED and not gathered[index].has_material
        for index, record in enumerate(records)
    )
    if missing:
        problems.append(f"of {missing} finished tests nothing that was pulled is in the sweep's folder")
    if git_problem:
        problems.append(line(git_problem))
    return problems

"""The data of the page: numbers, timeline, table rows, patterns."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

from swarm_tui import __version__
from swarm_tui.failures.alerts import saved_text, still_held, with_held
from swarm_tui.failures.patterns import Pattern, find_patterns, with_overlaps
from swarm_tui.hosts.lines import host_lines, is_on_hosts
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.formatting import counted
from swarm_tui.model.masking import safe_line, safe_lines
from swarm_tui.model.pulled import Escalation
from swarm_tui.model.results import CLAIMS, MARKS, Result, State
from swarm_tui.money.budget import cost_text
from swarm_tui.money.forecast import cost_words
from swarm_tui.report.details import Details, read_details, token_facts
from swarm_tui.report.integrated import CommitDiffs, read_integration


def patterns_on_page(state: SweepState) -> list[dict[str, Any]]:
    """Return the patterns, those with the most tests first; tests are indexes into the list of tests."""
    patterns = with_overlaps(find_patterns(state.tests()), (record for record in state.tests() if record.edits))
    places = {test: place for place, test in enumerate(state.records)}
    return [
        {
            "kind": pattern.kind,
            "title": safe_line(pattern.cause),
            "text": safe_lines("\n".join(_pattern_facts(pattern, state))),
            "tests": [places[test] for test in pattern.tests if test in places],
        }
        for pattern in with_held(patterns, state.alerts, state.records)
    ]


def _pattern_facts(pattern: Pattern, state: SweepState) -> list[str]:
    """Return facts about a pattern as lines of Markdown."""
    facts = list(pattern.shared)
    alert = state.alerts.get(pattern.cause)
    if alert is not None and alert.tests:
        facts.append(f"alert: {counted(len(alert.tests), 'test')} failed with this cause")
    if alert is not None and still_held(alert, state.records):
        facts.append(f"held: {saved_text(alert, state.records)}, since {alert.why_held}")
    facts.append(cost_words(state.records[test] for test in pattern.tests if test in state.records))
    return [f"- {fact}" for fact in facts if fact]


LOG_LINES: Final = 500
_COUNTED: Final = re.compile(r" \(\d+ tests?\)$")
_ORDER_OF_CAUSES: Final = (
    *("blocker", "harness_defect", "blocked", "waiting", "fix_direction_ambiguous", "error", "uncaught_bug"),
    *("shared_pattern", "suite_duplication", "claimed", "unresolved"),
)
_MARKS_NEEDING_PERSON: Final = (
    State.WAITING.value,
    *(each.value for each in (Result.BLOCKED, Result.ERROR, Result.UNRESOLVED, Result.CLAIMED)),
)


class AgentSpan(NamedTuple):
    """The time from the launch of a test's agent to its end."""

    start: float
    end: float
    test: int
    """The index of the test."""


class LaneSpan(NamedTuple):
    """A span with its lane in the timeline."""

    span: AgentSpan
    lane: int


def assign_lanes(spans: Iterable[AgentSpan]) -> list[LaneSpan]:
    """Return each span with the lowest free lane at its start, so that lanes show concurrent agents."""
    placed: list[LaneSpan] = []
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    lanes = 0
    for span in sorted(spans):
        while busy and busy[0][0] <= span.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane = lanes
            lanes += 1
        heapq.heappush(busy, (max(span.end, span.start), lane))
        placed.append(LaneSpan(span, lane))
    return placed


class RowDetails(NamedTuple):
    """The fields in the row of a test; other details are in separate files."""

    casts: int
    has_material: bool


def build_page(sweep: OpenedSweep, made_at: float, write_data: Callable[[str, object], None]) -> dict[str, Any]:
    """Return the content of the page; write the data that it loads on demand with `write_data`.

    Unreadable files are listed on the page. The folder of the sweep does not change.
    """
    records = list(sweep.state.tests())
    with closing(CommitDiffs(Path(sweep.spec.repository))) as diffs:
        integration, escalated = read_integration(sweep, diffs, write_data)
        details = [
            _write_details(index, read_details(sweep.folder, record, diffs), write_data)
            for index, record in enumerate(records)
        ]
        problems = _problems(sweep, records, details, diffs.problem)
    dropped = integration.pop("dropped")
    start, end = _bounds(sweep, records)
    return {
        "sweep": safe_line(sweep.spec.sweep),
        "title": safe_line(sweep.spec.title),
        "version": __version__,
        "made_at": made_at,
        "facts": _facts(sweep, records),
        "start": start,
        "end": end,
        "is_over": sweep.state.is_over,
        "ended": safe_line(": ".join(part for part in (sweep.state.ended_why, sweep.state.ended_reason) if part)),
        "counts": {mark: sweep.state.counts[mark] for mark in MARKS if sweep.state.counts[mark]},
        "tests": [_row(index, record, details[index], dropped.get(index, "")) for index, record in enumerate(records)],
        "lanes": _lanes(records, start, end),
        "integrating": _integrating(sweep, start, end),
        "turned_green": sum(
            record.pulled.passing_before is False and record.pulled.passing_after is True and record.result in CLAIMS
            for index, record in enumerate(records)
            if index not in dropped
        ),
        "needs": causes_needing_person(records, escalated),
        "patterns": patterns_on_page(sweep.state),
        "integration": integration,
        "log": [
            {"at": entry.at, "level": entry.level, "text": safe_line(entry.text), "test": safe_line(entry.test)}
            for entry in list(sweep.state.log)[-LOG_LINES:]
        ],
        "problems": problems,
    }


def _write_details(index: int, details: Details, write_data: Callable[[str, object], None]) -> RowDetails:
    write_data(f"test-{index}", details.content)
    for position, cast in enumerate(details.casts):
        write_data(f"cast-{index}-{position}", cast.text)
    return RowDetails(len(details.casts), details.has_material)


def causes_needing_person(records: Sequence[TestRecord], escalated: Iterable[Escalation] = ()) -> list[dict[str, Any]]:
    """Return the causes that need the user, with their tests, by kind and then by number of tests."""
    causes: dict[tuple[str, str], dict[str, Any]] = {}

    def add(kind: str, title: str, text: str, test: int | None) -> None:
        # The integrator appends a count to titles: "No network (7 tests)".
        key = _COUNTED.sub("", title.casefold().strip())
        entry = causes.setdefault(
            (kind, key), {"kind": kind, "title": safe_line(title), "text": safe_lines(text), "tests": []}
        )
        if test is not None and test not in entry["tests"]:
            entry["tests"].append(test)

    for index, record in enumerate(records):
        for found in record.pulled.escalations:
            add(safe_line(found.kind.lower()), found.title or "(no title)", found.detail_markdown, index)
        if record.mark not in _MARKS_NEEDING_PERSON or (
            record.pulled.escalations and record.mark == Result.BLOCKED.value
        ):
            continue
        why = record.question if record.state is State.WAITING else record.reason
        add(record.mark, why or record.pulled.summary.partition("\n")[0] or "(no reason was given)", "", index)
    for found in escalated:
        add(safe_line(found.kind.lower()), found.title or "(no title)", found.detail_markdown, None)
    rank = {kind: place for place, kind in enumerate(_ORDER_OF_CAUSES)}
    return sorted(causes.values(), key=lambda entry: (rank.get(entry["kind"], len(rank)), -len(entry["tests"])))


def _row(index: int, record: TestRecord, details: RowDetails, dropped: str) -> dict[str, Any]:
    summary = record.reason or _first_line(record.pulled.summary) or record.last_line
    file, _, name = record.test.partition("::")
    return {
        "index": index,
        "test": safe_line(record.test),
        "file": safe_line(record.file or file, 300),
        "name": safe_line(name or record.test, 300),
        "mark": record.mark,
        "block": safe_line(record.block, 300),
        "seconds": _seconds(record),
        "tries": "".join(
            {"passed": "v", "skipped": "s", "failed": "x", "runs": "o"}[made.word] for made in record.tries
        ),
        "changes": [safe_line(change.kind, 40) for change in record.pulled.changes if change.status == "SUCCEEDED"],
        "summary": safe_line(": ".join(filter(None, (dropped, summary))), 300),
        "dollars": record.spending.known_dollars,
        "casts": details.casts,
        "has_details": details.has_material or bool(record.tries or record.pulled.changes or record.pulled.summary),
    }


def _first_line(markdown: str) -> str:
    return next((text.strip("# *") for text in markdown.split("\n") if text.strip("#* ")), "")


def _seconds(record: TestRecord) -> float | None:
    if record.launched_at is None or record.ended_at is None:
        return None
    return round(record.ended_at - record.launched_at, 1)


def _facts(sweep: OpenedSweep, records: Sequence[TestRecord]) -> list[list[str]]:
    spec = sweep.spec
    spent = sweep.state.spending
    facts = [
        ["project", safe_line(Path(spec.repository).name, 100)],
        ["base", safe_line(" ".join(part for part in (spec.base_name, spec.base[:10]) if part), 100)],
        ["agents", safe_line(f"{spec.agent_type}, {sweep.state.slots or spec.slots} slots", 100)],
        ["hosts", safe_line(_hosts(sweep), 400)],
        ["tries", f"{sum(len(record.tries) for record in records):,}"],
        ["cost", cost_text(sweep.state, is_imputed=spec.is_cost_imputed) or "?"],
    ]
    return facts + token_facts(spent)


def _hosts(sweep: OpenedSweep) -> str:
    """Return the hosts with the number of their tests, and whether they were given up."""
    if not is_on_hosts(sweep.spec):
        return "this machine"
    lines = host_lines(sweep.spec, sweep.state.hosts, sweep.state.tests())
    shown = [
        f"{line.name} ({counted(len(line.tests), 'test')}{', given up' if line.is_gone else ''})" for line in lines[:12]
    ]
    return ", ".join(shown) + (f" and {len(lines) - 12:,} more" if len(lines) > 12 else "")


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
    lane_spans = assign_lanes(spans)
    return {
        "count": max((lane for _, lane in lane_spans), default=-1) + 1,
        "spans": [
            [each.lane, round(each.span.start, 1), round(each.span.end, 1), each.span.test] for each in lane_spans
        ],
    }


def _integrating(sweep: OpenedSweep, start: float, end: float) -> list[float] | None:
    """Return the start and the end of the integration, in seconds from the start of the sweep, or None."""
    integration = sweep.state.integration
    if integration.started_at is None:
        return None
    ended_at = end if integration.state == "integrating" else integration.at or end
    return [round(integration.started_at - start, 1), round(ended_at - start, 1)]


def _problems(
    sweep: OpenedSweep, records: Sequence[TestRecord], details: Sequence[RowDetails], git_problem: str
) -> list[str]:
    problems = list(sweep.integrity_warnings)
    if sweep.state.unknown_events:
        problems.append(f"{sweep.state.unknown_events} events of a newer swarm-tui are ignored")
    missing = sum(
        record.state is State.DONE and record.result is not Result.ERROR and not details[index].has_material
        for index, record in enumerate(records)
    )
    if missing:
        problems.append(f"no pulled files of {missing} finished tests in the folder of the sweep")
    if git_problem:
        problems.append(safe_line(git_problem))
    return problems

"""Draws the Agent screen: header, tabs, tries, changes, output and files. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len

from swarm_tui.journal.pulled_files import PulledFile
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import Try
from swarm_tui.model.formatting import duration, file_size
from swarm_tui.model.results import BASELINE_WORDS
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.draw.glyphs import STATUS_ROLES, TRY_SIGNS, glyph_of, role_of, word_of
from swarm_tui.room.draw.spans import Line, Span, cut_line, cut_middle, cut_text, spread, width_of, wrap_text

FAILURE_LINES = 6
FAILURE_LINES_WHOLE = 400


def draw_about(record: TestRecord, now: float, width: int) -> list[Line]:
    """Return a line about the test. If its agent asks a question, add a line with the question."""
    facts = [Span(f"{glyph_of(record)} {word_of(record)}", role_of(record))]
    if record.launched_at is not None:
        facts.append(Span(f" · {duration((record.ended_at or now) - record.launched_at)}", "dim"))
    if record.baseline in BASELINE_WORDS:
        facts.append(Span(f" · {BASELINE_WORDS[record.baseline]}", "waiting"))
    name = cut_middle(plain(record.test, 500), max(20, width * 2 // 3))
    room_left = width - cell_len(name) - width_of(facts) - 6
    if record.reason and room_left > 20:
        facts.append(Span(f" · {cut_text(plain(record.reason, 500), room_left)}", "dim"))
    lines: list[Line] = [spread([Span(f" {name}", "strong")], [*facts, Span(" ")], width)]
    if record.question:
        question = [Span(" question: ", "waiting"), Span(plain(record.question, 500))]
        lines.append(spread(question, [Span("m answer ", "key")], width))
    return lines


def draw_tabs(words: Mapping[str, str], shown: str, *, are_newer: bool = False) -> Line:
    """Return the line of tabs, with a note if the tabs show the present while the header shows an earlier moment."""
    parts = [Span(" ")]
    for name, word in words.items():
        parts += [Span(f" {plain(word, 60)} ", "key underline" if name == shown else "dim", f"tab:{name}"), Span(" ")]
    if are_newer:
        parts.append(Span("  below: the present", "accent"))
    return parts


class Row(NamedTuple):
    """A line, and what Enter opens on it: a file, the failure of a try, or a commit."""

    line: Line
    file: Path | None = None
    number: int | None = None
    commit: str = ""


def draw_tries_and_files(
    record: TestRecord, files: Sequence[PulledFile], unfolded: frozenset[int], width: int
) -> list[Row]:
    rows: list[Row] = [*_tries(record, unfolded, width), *_report(record, width), *_files(files, width)]
    return rows


def _tries(record: TestRecord, unfolded: frozenset[int], width: int) -> Iterator[Row]:
    if not record.tries:
        yield Row(
            [
                Span("no tries recorded", "dim"),
                Span(" — the agent has not run its test yet, or its runs are not visible here", "faint"),
            ]
        )
    for try_ in record.tries:
        yield Row(_try_line(try_), number=try_.number)
        failure = plain_lines(try_.failure[:200_000]).rstrip()
        if not failure:
            continue
        lines = failure.split("\n")
        limit = FAILURE_LINES_WHOLE if try_.number in unfolded else FAILURE_LINES
        for line in lines[:limit]:
            role = "unresolved" if line.startswith("E ") else "dim"
            yield Row(cut_line([Span("    "), Span(line, role)], width), number=try_.number)
        if len(lines) > limit:
            yield Row([Span(f"    … (+{len(lines) - limit} lines)", "faint")], number=try_.number)


def _try_line(try_: Try) -> Line:
    sign, role = TRY_SIGNS[try_.word]
    clock = time.strftime("%H:%M:%S", time.localtime(try_.at))
    spent = f" in {try_.seconds:.1f} s" if try_.passed is not None else ""
    return [
        Span(f"{sign} ", role),
        Span(f"try {try_.number} "),
        Span(f"{try_.word}{spent}", role),
        Span(f"  {clock}", "faint"),
    ]


def _report(record: TestRecord, width: int) -> Iterator[Row]:
    if record.pulled.summary:
        yield Row(())
        yield Row([Span("Agent output", "heading")])
        for text in wrap_text(plain_lines(record.pulled.summary[:20_000]).strip(), width - 2, 200):
            yield Row([Span(f"  {text}")])
    if record.pulled.changes:
        yield Row(())
        yield Row([Span("Changes", "heading")])
    for change in record.pulled.changes:
        role = STATUS_ROLES.get(change.status, "")
        head = f"  {plain(change.kind, 40)} {plain(change.status, 40).lower()} {plain(change.commit, 60)[:10]}"
        yield Row(cut_line([Span(head.rstrip(), role)], width), commit=change.commit)
        for text in wrap_text(plain_lines(change.summary[:20_000]).strip(), width - 4, 100):
            yield Row([Span(f"    {text}", "dim")], commit=change.commit)
    for escalation in record.pulled.escalations:
        head = f"  {plain(escalation.kind_in_words, 60)}: {plain(escalation.title)}"
        yield Row(cut_line([Span(head, "blocked")], width))
        for location in escalation.locations:
            yield Row(cut_line([Span(f"    {plain(str(location))}", "accent")], width))
        for text in wrap_text(plain_lines(escalation.detail_markdown[:20_000]).strip(), width - 4, 100):
            yield Row([Span(f"    {text}", "dim")])


def _files(files: Sequence[PulledFile], width: int) -> Iterator[Row]:
    yield Row(())
    if not files:
        yield Row([Span("no files were pulled from this agent yet", "dim")])
        return
    yield Row([Span(f"Files {len(files)}", "heading")])
    for file in files:
        name = plain(file.name, 300)
        kind = "  recording" if name.endswith(".cast") else ""
        yield Row(
            cut_line([Span(f"  {name}"), Span(f"  {file_size(file.size)}", "faint"), Span(kind, "accent")], width),
            file.path,
        )

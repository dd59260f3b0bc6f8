"""Draws the agent screen: its head and tabs, the tries, what the agent changed and said, and the files. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len

from swarm_tui.journal.pulled_files import PulledFile
from swarm_tui.model.baseline import BASELINE_WORDS
from swarm_tui.model.formatting import duration, file_size
from swarm_tui.model.state import TestRecord, Try
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.draw.glyphs import STATUS_ROLES, TRY_SIGNS, glyph_of, role_of, word_of
from swarm_tui.room.draw.parts import Line, Part, cut_line, cut_middle, cut_text, spread, width_of, wrap_text

FAILURE_LINES = 6
FAILURE_LINES_WHOLE = 400


def draw_about(record: TestRecord, now: float, width: int) -> list[Line]:
    """Return one line about the test, and one with the question when its agent asks something."""
    facts = [Part(f"{glyph_of(record)} {word_of(record)}", role_of(record))]
    if record.launched_at is not None:
        facts.append(Part(f" · {duration((record.ended_at or now) - record.launched_at)}", "dim"))
    if record.baseline in BASELINE_WORDS:
        facts.append(Part(f" · {BASELINE_WORDS[record.baseline]}", "waiting"))
    name = cut_middle(plain(record.test, 500), max(20, width * 2 // 3))
    room_left = width - cell_len(name) - width_of(facts) - 6
    if record.reason and room_left > 20:
        facts.append(Part(f" · {cut_text(plain(record.reason, 500), room_left)}", "dim"))
    lines: list[Line] = [spread([Part(f" {name}", "strong")], [*facts, Part(" ")], width)]
    if record.question:
        question = [Part(" asks: ", "waiting"), Part(plain(record.question, 500))]
        lines.append(spread(question, [Part("m answers ", "key")], width))
    return lines


def draw_tabs(words: Mapping[str, str], shown: str, *, are_newer: bool = False) -> Line:
    """Return the line of tabs; it says so where they show more than the moment that the rest is of."""
    parts = [Part(" ")]
    for name, word in words.items():
        parts += [Part(f" {plain(word, 60)} ", "key underline" if name == shown else "dim", f"tab:{name}"), Part(" ")]
    if are_newer:
        parts.append(Part("  below: as it is now", "accent"))
    return parts


class Row(NamedTuple):
    """A line and what Enter on it opens: a file, the failure of the try of that number, or a commit."""

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
                Part("no live tries", "dim"),
                Part(" — the agent has not run its test yet, or not where we see it", "faint"),
            ]
        )
    for made in record.tries:
        yield Row(_try_line(made), number=made.number)
        failure = plain_lines(made.failure[:200_000]).rstrip()
        if not failure:
            continue
        lines = failure.split("\n")
        limit = FAILURE_LINES_WHOLE if made.number in unfolded else FAILURE_LINES
        for line in lines[:limit]:
            role = "unresolved" if line.startswith("E ") else "dim"
            yield Row(cut_line([Part("    "), Part(line, role)], width), number=made.number)
        if len(lines) > limit:
            yield Row([Part(f"    … (+{len(lines) - limit} lines)", "faint")], number=made.number)


def _try_line(made: Try) -> Line:
    sign, role = TRY_SIGNS[made.word]
    clock = time.strftime("%H:%M:%S", time.localtime(made.at))
    spent = f" in {made.seconds:.1f} s" if made.passed is not None else ""
    return [
        Part(f"{sign} ", role),
        Part(f"try {made.number} "),
        Part(f"{made.word}{spent}", role),
        Part(f"  {clock}", "faint"),
    ]


def _report(record: TestRecord, width: int) -> Iterator[Row]:
    if record.harvest.summary:
        yield Row(())
        yield Row([Part("What the agent says", "heading")])
        for text in wrap_text(plain_lines(record.harvest.summary[:20_000]).strip(), width - 2, 200):
            yield Row([Part(f"  {text}")])
    if record.harvest.changes:
        yield Row(())
        yield Row([Part("Changes", "heading")])
    for change in record.harvest.changes:
        role = STATUS_ROLES.get(change.status, "")
        head = f"  {plain(change.kind, 40)} {plain(change.status, 40).lower()} {plain(change.commit, 60)[:10]}"
        yield Row(cut_line([Part(head.rstrip(), role)], width), commit=change.commit)
        for text in wrap_text(plain_lines(change.summary[:20_000]).strip(), width - 4, 100):
            yield Row([Part(f"    {text}", "dim")], commit=change.commit)
    for escalation in record.harvest.escalations:
        head = f"  {plain(escalation.kind_in_words, 60)}: {plain(escalation.title)}"
        yield Row(cut_line([Part(head, "blocked")], width))
        for location in escalation.locations:
            yield Row(cut_line([Part(f"    {plain(str(location))}", "accent")], width))
        for text in wrap_text(plain_lines(escalation.detail_markdown[:20_000]).strip(), width - 4, 100):
            yield Row([Part(f"    {text}", "dim")])


def _files(files: Sequence[PulledFile], width: int) -> Iterator[Row]:
    yield Row(())
    if not files:
        yield Row([Part("no files were pulled from this agent yet", "dim")])
        return
    yield Row([Part(f"Files {len(files)}", "heading")])
    for file in files:
        name = plain(file.name, 300)
        kind = "  recording" if name.endswith(".cast") else ""
        yield Row(
            cut_line([Part(f"  {name}"), Part(f"  {file_size(file.size)}", "faint"), Part(kind, "accent")], width),
            file.path,
        )

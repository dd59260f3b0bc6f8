"""Draws the panel about one test: its state, the reason and source of the state, and since when it has it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable

from swarm_tui.model.baseline import BASELINE_SENTENCES, BASELINE_WORDS
from swarm_tui.model.formatting import age, duration
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.node_ids import name_of_test, split_node_id
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.draw.glyphs import STATUS_ROLES, TRY_SIGNS, glyph_of, role_of, word_of
from swarm_tui.room.draw.parts import Line, Part, cut_line, wrap_text
from swarm_tui.room.draw.table import draw_tries

TRIES_SHOWN = 6
KNOWN = ("type", "project", "label")
"""The first words of what mngr knows of any agent."""
SOURCES = {
    "queue": "the queue", "engine": "the engine", "process": "its process", "live tries": "its live tries",
    "archive": "its archive", "outcome": "its outcome", "person": "a person", "mngr list": "mngr list",
    "its report": "its report", "screen": "its screen", "hook": "its hook", "session file": "its session file",
}  # fmt: skip


def draw_side(
    record: TestRecord,
    width: int,
    now: float,
    asked: RequestKind | None = None,
    *,
    has_end: bool = False,
    repository: str = "",
) -> list[Line]:
    """Return what is known of a test; without the agent's last line where the end of its transcript follows.

    With the repository its file is a link.
    """
    lines: list[Line] = [cut_line(_first_line(record, now), width)]
    if asked is not None:
        lines.append(cut_line([Part(f"{asked.value}: asked, not done yet", "pending")], width))
    lines += _node_id(record, width, repository)
    if record.question:
        # Before all else that is known: on a small terminal the rest is below the panel's end.
        asked_for = _paragraph("asks: ", plain_lines(record.question[:2000]), width, "waiting")
        options = _paragraph("answers: ", " · ".join(plain(option, 100) for option in record.options), width)
        lines += [(), *asked_for, *(options if record.options else []), *([()] if record.block else [])]
    if record.stuck:
        told = ", and was told so" if record.is_nudged else ""
        lines += _paragraph("stuck: ", f"{plain(record.stuck, 300)}{told}", width, "warning")
    if record.condition:
        lines += _paragraph("", plain(record.condition, 300), width, "hindered")
        if record.trouble is not None and record.trouble.has_given_up:
            lines += _paragraph("", "it is told to go on when its model answers again", width, "dim")
    if record.block:
        lines += _paragraph("tutorial: ", plain(record.block, 300), width)
    if record.baseline:
        role = "waiting" if record.baseline in BASELINE_WORDS else "dim"
        lines += _paragraph("baseline: ", BASELINE_SENTENCES[record.baseline], width, role)
    lines += _why(record, width, now)
    lines += _changes(record, width)
    lines += _tries(record, width)
    lines += _agent(record, width)
    if record.last_line and not record.is_finished and not has_end:
        lines.append(())
        lines += _paragraph("", plain(record.last_line), width, "dim")
    return lines


def side_title(record: TestRecord) -> str:
    return plain(name_of_test(record.test), 300)


def _first_line(record: TestRecord, now: float) -> list[Part]:
    role = role_of(record)
    line = [Part(f"{glyph_of(record)} {word_of(record)}", role)]
    if record.launched_at is not None:
        line.append(Part(f" · {duration((record.ended_at or now) - record.launched_at)}", "dim"))
    if record.tries:
        plural = "try" if len(record.tries) == 1 else "tries"
        line.append(Part(f" · {len(record.tries)} {plural} {draw_tries(record, 12)}", "dim"))
    if record.spending.is_known:
        line.append(Part(f" · {record.spending.text}", "dim"))
    if record.is_held:
        alike = f": pattern {plain(record.held_for, 300)}" if record.held_for else ""
        line.append(Part(f" · held{alike}", "warning"))
    return line


def _node_id(record: TestRecord, width: int, repository: str) -> Iterable[Line]:
    file, name = split_node_id(plain(record.test, 2000))
    where = f"{file}:{record.line}" if record.line and file else file
    is_link = repository and record.file
    spot = f"file:{record.line}:{posixpath.join(repository, record.file)}" if is_link else ""
    for text in wrap_text(where, width, 4) if file else ():
        yield [Part(text, "dim", spot)]
    for text in wrap_text(name, width, 12):
        yield [Part(text, "strong")]


def _why(record: TestRecord, width: int, now: float) -> Iterable[Line]:
    yield ()
    if record.harvest.summary and record.harvest.summary != record.reason:
        yield from _paragraph("", plain_lines(record.harvest.summary[:4000]), width)
    known_from = SOURCES.get(record.source, plain(record.source, 40))
    since = f"{known_from}, {age(now - record.since)}" if record.since else known_from
    why = f"{plain(record.reason)} ({since})" if record.reason else since
    yield from _paragraph("known from: " if not record.reason else "why: ", why, width)
    if record.stale_since is not None:
        is_far = record.host not in ("", LOCAL_HOST)
        what = f"{plain(record.host, 40)} was last heard of" if is_far else "the probe failed"
        yield from _paragraph("", f"stale: {what} {age(now - record.stale_since)}", width, "warning")
    if record.foreign_imports:
        modules = ", ".join(plain(module, 60) for module in record.foreign_imports[:5])
        yield from _paragraph("", f"ran against your checkout, not its copy: {modules}", width, "warning")
    reported = (record.harvest.passing_before, record.harvest.passing_after)
    if None not in reported:
        before, after = ("passing" if is_passing else "failing" for is_passing in reported)
        yield cut_line([Part("reported: ", "dim"), Part(f"{before} before, {after} after")], width)


def _changes(record: TestRecord, width: int) -> Iterable[Line]:
    if record.harvest.changes or record.harvest.escalations:
        yield ()
    for change in record.harvest.changes:
        role = STATUS_ROLES.get(change.status, "")
        head = f"{plain(change.kind, 40)} {plain(change.commit, 60)[:7]}".rstrip()
        if change.status != "SUCCEEDED":
            head += f" {plain(change.status, 40).lower()}"
        yield cut_line([Part(head, role)], width)
        yield from _paragraph("  ", plain(change.summary), width)
    for escalation in record.harvest.escalations:
        yield cut_line([Part(plain(escalation.kind_in_words, 60), "blocked")], width)
        yield from _paragraph("  ", plain(f"{escalation.title}. {escalation.detail_markdown}"), width)
        for location in escalation.locations:
            yield cut_line([Part(f"  {plain(str(location))}", "accent")], width)
    if record.harvest.has_uncommitted:
        yield from _paragraph("", "left changes that it did not commit", width, "warning")


def _tries(record: TestRecord, width: int) -> Iterable[Line]:
    if not record.tries:
        return
    yield ()
    hidden = len(record.tries) - TRIES_SHOWN
    if hidden > 0:
        yield [Part(f"… {hidden} earlier tries", "faint")]
    for made in record.tries[-TRIES_SHOWN:]:
        sign, role = TRY_SIGNS[made.word]
        spent = f"{made.seconds:.1f} s" if made.passed is not None else "runs"
        line = [
            Part(f"try {made.number} ", "dim"),
            Part(sign, role),
            Part(f" {spent} ", "dim"),
            Part(plain(made.failure)),
        ]
        yield cut_line(line, width)


def _agent(record: TestRecord, width: int) -> Iterable[Line]:
    if not record.agent:
        return
    yield ()
    yield cut_line([Part("agent ", "dim"), Part(plain(record.agent, 300))], width)
    where = [plain(record.host, 80)] if record.host else []
    if record.attempt > 1:
        where.append(f"launch {record.attempt}")
    if where:
        yield cut_line([Part("host ", "dim"), Part(", ".join(where))], width)
    yield from _known_to_mngr(record, width)
    for tokens in record.spending.models:
        yield from _paragraph("tokens ", plain(tokens.text, 300), width)


def _known_to_mngr(record: TestRecord, width: int) -> Iterable[Line]:
    """Yield what mngr knows of an agent that no sweep made."""
    known = [(name, rest) for name, _, rest in (trait.partition(" ") for trait in record.traits) if name in KNOWN]
    for name, rest in [("branch", record.branch), *known] if known and record.branch else known:
        yield cut_line([Part(f"{name} ", "dim"), Part(plain(rest, 300))], width)


def _paragraph(lead: str, text: str, width: int, role: str = "") -> Iterable[Line]:
    for number, line in enumerate(wrap_text(text, max(8, width - len(lead)), 30)):
        yield [Part(lead if number == 0 else " " * len(lead), "dim"), Part(line, role)]

"""Panel about the test under the cursor."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from swarm_tui.errors import SwarmError
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.formatting import age, duration
from swarm_tui.model.results import BASELINE_SENTENCES, BASELINE_WORDS, State
from swarm_tui.model.spec import LOCAL_HOST, name_of_test, split_node_id
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.draw.glyphs import STATUS_ROLES, TRY_SIGNS, glyph_of, role_of, word_of
from swarm_tui.room.draw.spans import Line, Span, cut_line, cut_text, wrap_text
from swarm_tui.room.followed_files import FollowedFiles, TranscriptEnd
from swarm_tui.room.grid.draw import draw_tries
from swarm_tui.room.widgets.lines import TextLines

if TYPE_CHECKING:
    from swarm_tui.room.screen import RoomScreen

TRIES_SHOWN = 6
KNOWN = ("type", "project", "label")
"""Names of the facts that mngr has about any agent."""
SOURCES = {
    "queue": "the queue", "engine": "the engine", "process": "its process", "live tries": "its live tries",
    "archive": "its archive", "outcome": "its outcome", "person": "the user", "mngr list": "mngr list",
    "own run": "a run of swarm-tui",
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
    """Return the details of a test. The agent's last line is left out if the end of its transcript follows.

    If a repository is given, the test's file is a link.
    """
    lines: list[Line] = [cut_line(_first_line(record, now), width)]
    if asked is not None:
        lines.append(cut_line([Span(f"{asked.value} requested", "pending")], width))
    lines += _node_id(record, width, repository)
    if record.question:
        # The question comes first: on a small terminal the rest is below the end of the panel.
        asked_for = _paragraph("question: ", plain_lines(record.question[:2000]), width, "waiting")
        options = _paragraph("options: ", " · ".join(plain(option, 100) for option in record.options), width)
        lines += [(), *asked_for, *(options if record.options else []), *([()] if record.block else [])]
    if record.stuck:
        notified = ", and was notified" if record.is_nudged else ""
        lines += _paragraph("stuck: ", f"{plain(record.stuck, 300)}{notified}", width, "warning")
    if record.status_detail:
        lines += _paragraph("", plain(record.status_detail, 300), width, "api_error")
        if record.api_error is not None and record.api_error.has_given_up:
            lines += _paragraph("", "it will be told to continue when its model answers", width, "dim")
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


def _first_line(record: TestRecord, now: float) -> list[Span]:
    role = role_of(record)
    line = [Span(f"{glyph_of(record)} {word_of(record)}", role)]
    if record.launched_at is not None:
        line.append(Span(f" · {duration((record.ended_at or now) - record.launched_at)}", "dim"))
    if record.tries:
        plural = "try" if len(record.tries) == 1 else "tries"
        line.append(Span(f" · {len(record.tries)} {plural} {draw_tries(record, 12)}", "dim"))
    if record.spending.is_known:
        line.append(Span(f" · {record.spending.text}", "dim"))
    if record.is_held:
        pattern = f": pattern {plain(record.held_for, 300)}" if record.held_for else ""
        line.append(Span(f" · held{pattern}", "warning"))
    return line


def _node_id(record: TestRecord, width: int, repository: str) -> Iterable[Line]:
    file, name = split_node_id(plain(record.test, 2000))
    where = f"{file}:{record.line}" if record.line and file else file
    is_link = repository and record.file
    spot = f"file:{record.line}:{posixpath.join(repository, record.file)}" if is_link else ""
    for text in wrap_text(where, width, 4) if file else ():
        yield [Span(text, "dim", spot)]
    for text in wrap_text(name, width, 12):
        yield [Span(text, "strong")]


def _why(record: TestRecord, width: int, now: float) -> Iterable[Line]:
    yield ()
    if record.pulled.summary and record.pulled.summary != record.reason:
        yield from _paragraph("", plain_lines(record.pulled.summary[:4000]), width)
    known_from = SOURCES.get(record.source, plain(record.source, 40))
    since = f"{known_from}, {age(now - record.since)}" if record.since else known_from
    why = f"{plain(record.reason)} ({since})" if record.reason else since
    yield from _paragraph("source: " if not record.reason else "why: ", why, width)
    if record.stale_since is not None:
        is_far = record.host not in ("", LOCAL_HOST)
        what = f"last report from {plain(record.host, 40)}" if is_far else "the poll failed"
        yield from _paragraph("", f"stale: {what} {age(now - record.stale_since)}", width, "warning")
    if record.foreign_imports:
        modules = ", ".join(plain(module, 60) for module in record.foreign_imports[:5])
        yield from _paragraph("", f"ran against your checkout, not the agent's copy: {modules}", width, "warning")
    reported = (record.pulled.passing_before, record.pulled.passing_after)
    if None not in reported:
        before, after = ("passing" if is_passing else "failing" for is_passing in reported)
        yield cut_line([Span("reported: ", "dim"), Span(f"{before} before, {after} after")], width)
    if record.pulled.check is not None:
        yield cut_line([Span("checked: ", "dim"), Span(plain(record.pulled.check.words, 200))], width)


def _changes(record: TestRecord, width: int) -> Iterable[Line]:
    if record.pulled.changes or record.pulled.escalations:
        yield ()
    for change in record.pulled.changes:
        role = STATUS_ROLES.get(change.status, "")
        head = f"{plain(change.kind, 40)} {plain(change.commit, 60)[:7]}".rstrip()
        if change.status != "SUCCEEDED":
            head += f" {plain(change.status, 40).lower()}"
        yield cut_line([Span(head, role)], width)
        yield from _paragraph("  ", plain(change.summary), width)
    for escalation in record.pulled.escalations:
        yield cut_line([Span(plain(escalation.kind_in_words, 60), "blocked")], width)
        yield from _paragraph("  ", plain(f"{escalation.title}. {escalation.detail_markdown}"), width)
        for location in escalation.locations:
            yield cut_line([Span(f"  {plain(str(location))}", "accent")], width)
    if record.pulled.has_uncommitted:
        yield from _paragraph("", "has uncommitted changes", width, "warning")


def _tries(record: TestRecord, width: int) -> Iterable[Line]:
    if not record.tries:
        return
    yield ()
    hidden = len(record.tries) - TRIES_SHOWN
    if hidden > 0:
        yield [Span(f"… {hidden} earlier tries", "faint")]
    for try_ in record.tries[-TRIES_SHOWN:]:
        glyph, role = TRY_SIGNS[try_.word]
        spent = f"{try_.seconds:.1f} s" if try_.passed is not None else "runs"
        line = [
            Span(f"try {try_.number} ", "dim"),
            Span(glyph, role),
            Span(f" {spent} ", "dim"),
            Span(plain(try_.failure)),
        ]
        yield cut_line(line, width)


def _agent(record: TestRecord, width: int) -> Iterable[Line]:
    if not record.agent:
        return
    yield ()
    yield cut_line([Span("agent ", "dim"), Span(plain(record.agent, 300))], width)
    where = [plain(record.host, 80)] if record.host else []
    if record.launch > 1:
        where.append(f"launch {record.launch}")
    if where:
        yield cut_line([Span("host ", "dim"), Span(", ".join(where))], width)
    yield from _known_to_mngr(record, width)
    for tokens in record.spending.models:
        yield from _paragraph("tokens ", plain(tokens.text, 300), width)


def _known_to_mngr(record: TestRecord, width: int) -> Iterable[Line]:
    """Yield the facts that mngr has about an agent outside a sweep."""
    facts = [(name, rest) for name, _, rest in (trait.partition(" ") for trait in record.traits) if name in KNOWN]
    for name, rest in [("branch", record.branch), *facts] if facts and record.branch else facts:
        yield cut_line([Span(f"{name} ", "dim"), Span(plain(rest, 300))], width)


def _paragraph(lead: str, text: str, width: int, role: str = "") -> Iterable[Line]:
    for number, line in enumerate(wrap_text(text, max(8, width - len(lead)), 30)):
        yield [Span(lead if number == 0 else " " * len(lead), "dim"), Span(line, role)]


REST_AFTER_TROUBLE: Final = 30.0
"""Seconds to wait after a capture failed, for example without a tmux server. The Agent screen shows the error."""
LINES_WORTH_IT: Final = 3
LOOK_SECONDS: Final = 0.2
NEWS_PAUSE: Final = 0.03
ROWS_FOR_END: Final = 16
"""A lower panel has space only for the details of the test."""


class ScreenTail:
    """Captures the screen of an agent and calls back when it has changed."""

    def __init__(self, screen: RoomScreen, on_change: Callable[[], None]) -> None:
        self._screen = screen
        self._on_change = on_change
        self._test = ""
        self._lines: list[str] = []
        self._is_capturing = False
        self._rests_until = 0.0

    def capture(self, record: TestRecord) -> None:
        """Capture the screen of a test's agent, unless there is none now."""
        if record.state not in (State.RUNNING, State.WAITING) or self._is_capturing:
            return
        room = self._screen.room
        if time.monotonic() < self._rests_until:
            return
        self._is_capturing = True
        room.run_worker(self._capture(record), group="screen tail", name="capture a screen")

    async def _capture(self, record: TestRecord) -> None:
        try:
            screen = (await self._screen.room.agents.capture([record])).get(record.test)
        except SwarmError:
            self._rests_until = time.monotonic() + REST_AFTER_TROUBLE
            screen = None
        finally:
            self._is_capturing = False
        lines = plain_lines(screen or "").rstrip().split("\n")
        if (record.test, lines) != (self._test, self._lines):
            self._test, self._lines = record.test, lines
            self._on_change()

    def draw(self, record: TestRecord, width: int, height: int) -> list[Line]:
        """Return the last lines of the screen that fit."""
        if record.test != self._test or record.is_finished or height < LINES_WORTH_IT + 2:
            return []
        lines = [line for line in self._lines if line.strip()][-(height - 2) :]
        if not lines:
            return []
        return [(), [Span("its screen", "heading")], *([Span(cut_text(line, width), "dim")] for line in lines)]


def draw_end(lines_at_end: list[str], width: int, height: int) -> list[Line]:
    """Return the last lines of a transcript that fit, in full length."""
    if not lines_at_end or height < LINES_WORTH_IT + 2:
        return []
    rows = [row for line in lines_at_end[-height:] for row in wrap_text(line, width, 6)]
    return [(), [Span("its transcript", "heading")], *([Span(row, "dim")] for row in rows[-(height - 2) :])]


class SidePanel:
    """Shows one test. The user can hide it."""

    def __init__(self, screen: RoomScreen) -> None:
        self._screen = screen
        self._record: TestRecord | None = None
        self.lines = TextLines(id="side")
        self._tail = ScreenTail(screen, self._draw)
        self._end: TranscriptEnd | None = None
        self._followed = FollowedFiles(self.lines, self.follow_transcript, pause=NEWS_PAUSE, look_seconds=LOOK_SECONDS)
        self._said: list[str] = []
        self._is_following = False

    @property
    def is_wanted(self) -> bool:
        return self._screen.room.settings.remembered.has_side

    def show(self, record: TestRecord | None) -> None:
        self._record = record
        self._draw()

    def _draw(self) -> None:
        record = self._record
        if record is None:
            self.lines.title("", "")
            self.lines.show([])
        elif self.is_wanted:
            self.lines.title(side_title(record))
            width = max(10, self.lines.text_width)
            store = self._screen.store
            lines = draw_side(
                record,
                width,
                store.clock(),
                store.pending_for(record.test),
                has_end=bool(self._said) and store.past is None,
                repository=store.opened.spec.repository,
            )
            left = self.lines.visible_rows - len(lines)
            end = draw_end(self._said, width, left) or self._tail.draw(record, width, left)
            self.lines.show([*lines, *(end if store.past is None else [])])

    def begin_to_follow(self) -> None:
        """Start to show transcripts. Their modules are imported after the first frame."""
        self._is_following = True
        self.follow_transcript()

    def follow_transcript(self) -> None:
        """Read new lines of the transcript. The panel shows its end if there is space."""
        if not self._is_following:
            return
        is_shown = self.is_wanted and self.lines.display and self.lines.visible_rows >= ROWS_FOR_END
        if not is_shown or not self.lines.is_seen:
            self._followed.show(())
            return
        if self._screen.store.past is not None:
            # The transcript has been written up to now.
            self._said = []
            return
        if self._end is None:
            self._end = TranscriptEnd(self._screen.room)
        lines_at_end = self._end.lines_of(self._record)
        self._followed.show([self._end.path] if self._end.path is not None else ())
        if lines_at_end != self._said:
            self._said = lines_at_end
            self._draw()

    def close(self) -> None:
        self._followed.close()
        if self._end is not None:
            self._end.close()

    def capture_screen(self) -> None:
        if self._screen.store.past is None and self.is_wanted and self.lines.display and self._record is not None:
            self._tail.capture(self._record)

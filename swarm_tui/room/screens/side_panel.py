"""The panel about the test under the cursor, with the last lines of its agent's screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from swarm_tui.errors import SwarmError
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.model.text import plain_lines
from swarm_tui.room.draw.parts import Line, Part, cut_text, wrap_text
from swarm_tui.room.draw.side import draw_side, side_title
from swarm_tui.room.followed_files import FollowedFiles
from swarm_tui.room.screens.services import ScreenServices
from swarm_tui.room.transcript_end import TranscriptEnd
from swarm_tui.room.widgets.lines import TextLines

REST_AFTER_TROUBLE: Final = 30.0
"""Without a tmux server there is nothing to see for a while; the agent's own screen shows the reason."""
LINES_WORTH_IT: Final = 3
LOOK_SECONDS: Final = 0.2
NEWS_PAUSE: Final = 0.03
ROWS_FOR_END: Final = 16
"""In a lower panel there is no room for more than what is known of the test."""


class ScreenTail:
    """Captures the screen of an agent, and calls back when it has changed."""

    def __init__(self, screen: ScreenServices, on_change: Callable[[], None]) -> None:
        self._screen = screen
        self._on_change = on_change
        self._test = ""
        self._lines: list[str] = []
        self._is_capturing = False
        self._rests_until = 0.0

    def capture(self, record: TestRecord) -> None:
        """Capture the screen of a test's agent, unless there is none to see now."""
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
        """Return the last lines of the screen, as many as there is room for."""
        if record.test != self._test or record.is_finished or height < LINES_WORTH_IT + 2:
            return []
        lines = [line for line in self._lines if line.strip()][-(height - 2) :]
        if not lines:
            return []
        return [(), [Part("its screen", "heading")], *([Part(cut_text(line, width), "dim")] for line in lines)]


def draw_end(said: list[str], width: int, height: int) -> list[Line]:
    """Return the last lines of a transcript, each as long as it is, as many as there is room for."""
    if not said or height < LINES_WORTH_IT + 2:
        return []
    rows = [row for line in said[-height:] for row in wrap_text(line, width, 6)]
    return [(), [Part("its transcript", "heading")], *([Part(row, "dim")] for row in rows[-(height - 2) :])]


class SidePanel:
    """Shows one test; a person can hide the panel."""

    def __init__(self, screen: ScreenServices) -> None:
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
        """Show transcripts from now on: the first frame does not wait for what reads them."""
        self._is_following = True
        self.follow_transcript()

    def follow_transcript(self) -> None:
        """Read what the agent has written; the panel shows the end of it where there is room."""
        if not self._is_following:
            return
        is_shown = self.is_wanted and self.lines.display and self.lines.visible_rows >= ROWS_FOR_END
        if not is_shown or not self.lines.is_seen:
            self._followed.show(())
            return
        if self._screen.store.past is not None:
            # What is in the transcript was written up to now.
            self._said = []
            return
        if self._end is None:
            self._end = TranscriptEnd(self._screen.room)
        said = self._end.lines_of(self._record)
        self._followed.show([self._end.path] if self._end.path is not None else ())
        if said != self._said:
            self._said = said
            self._draw()

    def close(self) -> None:
        self._followed.close()
        if self._end is not None:
            self._end.close()

    def capture_screen(self) -> None:
        if self._screen.store.past is None and self.is_wanted and self.lines.display and self._record is not None:
            self._tail.capture(self._record)

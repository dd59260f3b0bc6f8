"""Files that panels show."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from textual.widget import Widget

from swarm_tui.adapters.file_notices import NoticedFile
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.transcripts.merged import MergedTail
from swarm_tui.transcripts.window import FileSource

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp


REST_SECONDS: Final = 1.0
"""Seconds between polls if notifications work. Polling finds files that did not exist before."""


class FollowedFiles:
    """Calls back when one of the files changes, until `close`."""

    def __init__(self, widget: Widget, read: Callable[[], object], *, pause: float, look_seconds: float) -> None:
        """`read` is called after a change, at most once in `pause` seconds. It is also called every `look_seconds`."""
        self._widget, self._read = widget, read
        self._pause, self._look_seconds = pause, look_seconds
        self._files: dict[Path, NoticedFile] = {}
        self._timer: asyncio.TimerHandle | None = None

    def show(self, paths: Iterable[Path]) -> None:
        """Follow exactly these files."""
        if not self._widget.is_attached:
            return
        wanted = set(paths)
        for path in self._files.keys() - wanted:
            self._files.pop(path).close()
        notices = cast("RoomApp", self._widget.app).file_notices
        for path in wanted - self._files.keys():
            self._files[path] = notices.follow(path, self._called, pause=self._pause)
        self._wait()

    def close(self) -> None:
        """Stop following all files."""
        if self._timer is not None:
            self._timer.cancel()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _wait(self) -> None:
        # Uses the event loop's clock. A Textual timer would cost more than the poll itself.
        if self._timer is not None:
            self._timer.cancel()
        is_told = all(file.is_noticed for file in self._files.values())
        seconds = REST_SECONDS if is_told else self._look_seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        self._called()
        self._wait()

    def _called(self) -> None:
        if self._widget.is_mounted:
            self._read()


LINES_KEPT: Final = 40


class TranscriptEnd:
    """Follows the transcript of one test's agent at a time."""

    def __init__(self, room: RoomApp) -> None:
        self._room = room
        self._record: TestRecord | None = None
        self._tail: MergedTail | None = None
        self._path: Path | None = None

    @property
    def path(self) -> Path | None:
        return self._path if self._tail is not None else None

    def lines_of(self, record: TestRecord | None) -> list[str]:
        """Return the last lines of an agent's transcript; empty if it has no transcript on this machine."""
        if record is None:
            self.close()
            return []
        is_same = self._record is not None and self._record.agent_id == record.agent_id
        if self._tail is None or not is_same:
            self._open(record)
        if self._tail is None:
            return []
        self._tail.poll(time.monotonic())
        entries = [entry.entry for entry in self._tail.entries[-LINES_KEPT:]]
        words = [(entry.tool, line) for entry in entries for line in entry.text.split("\n") if line.strip()]
        return [plain(f"{tool}  {line}" if tool else line, 600) for tool, line in words[-LINES_KEPT:]]

    def _open(self, record: TestRecord) -> None:
        self.close()
        self._record = record
        self._path = self._room.agents.transcript_of(record)
        if self._path is not None:
            self._tail = MergedTail({record.test: FileSource(self._path)}, time.monotonic())

    def close(self) -> None:
        if self._tail is not None:
            self._tail.close()
        self._record = self._tail = None

"""The files that a panel shows: it reads them when the system says that they change, else again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol, cast

from textual.widget import Widget

from swarm_tui.adapters.file_notices import FileNotices, NoticedFile

REST_SECONDS: Final = 1.0
"""How often one looks where every change is told: a file may come that has not been there."""


class HasFileNotices(Protocol):
    """An app that is told by the system when files change."""

    file_notices: FileNotices


class FollowedFiles:
    """Calls back for the files that a panel shows, and stops with `close`."""

    def __init__(self, widget: Widget, read: Callable[[], object], *, pause: float, look_seconds: float) -> None:
        """`read` is called when a file changes, once in `pause` seconds at most; every `look_seconds` untold."""
        self._widget, self._read = widget, read
        self._pause, self._look_seconds = pause, look_seconds
        self._files: dict[Path, NoticedFile] = {}
        self._timer: asyncio.TimerHandle | None = None

    def show(self, paths: Iterable[Path]) -> None:
        """Follow these files and no others."""
        if not self._widget.is_attached:
            return
        wanted = set(paths)
        for path in self._files.keys() - wanted:
            self._files.pop(path).close()
        notices = cast(HasFileNotices, self._widget.app).file_notices
        for path in wanted - self._files.keys():
            self._files[path] = notices.follow(path, self._called, pause=self._pause)
        self._wait()

    def close(self) -> None:
        """Follow nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        for file in self._files.values():
            file.close()
        self._files.clear()

    def _wait(self) -> None:
        # By the loop's own clock: a timer of Textual's would cost more than the look.
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

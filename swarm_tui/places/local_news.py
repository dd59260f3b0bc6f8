"""Says which agents of this machine have written to the files that are read again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from swarm_tui.adapters.file_notices import FileNotices, NoticedFile

# As in a mirror of a host: what nobody has asked for during this time is not followed any more.
FORGOTTEN_AFTER: Final = 30.0
PAUSE: Final = 0.01
"""A file is told of once in so many seconds, however often it is written to."""


class LocalNews:
    """Follows files of agents by the notices of the system, from when somebody wants to be told."""

    def __init__(self) -> None:
        self.tell: Callable[[str], object] | None = None
        self._notices: FileNotices | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._files: dict[str, tuple[NoticedFile, float]] = {}
        """By path, each with the time when it was asked for last."""
        self._swept_at = 0.0
        self.is_complete = True
        """Whether every change is told."""

    def follow(self, files: Iterable[tuple[str, str]]) -> None:
        """Follow files, given with the ids of their agents; a path that ends in `/*` is all of a folder."""
        if self.tell is None:
            return
        loop = asyncio.get_running_loop()
        if self._notices is None or self._loop is not loop:
            self.close()
            self._notices, self._loop = FileNotices(), loop
        now = time.monotonic()
        for agent, path in files:
            known = self._files.get(path)
            file = known[0] if known is not None else self._notices.follow(path, partial(self.tell, agent), pause=PAUSE)
            self.is_complete = self.is_complete and file.is_noticed
            self._files[path] = file, now
        if now >= self._swept_at + FORGOTTEN_AFTER:
            self._swept_at = now
            for path in [path for path, (_, asked_at) in self._files.items() if asked_at < now - FORGOTTEN_AFTER]:
                self._files.pop(path)[0].close()
            self.is_complete = all(file.is_noticed for file, _ in self._files.values())

    def close(self) -> None:
        if self._notices is not None and self._loop is not None and not self._loop.is_closed():
            self._notices.close()
        self._notices = None
        self._files.clear()

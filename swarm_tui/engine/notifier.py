"""Sends messages to a person who is away: grouped, at most one a minute, and nothing that was seen.

It follows the journal, as a room does, and never keeps the engine waiting: messages are sent by processes with a time
limit, one message at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from swarm_tui.adapters.process import run_process
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.notify_settings import NotifySettings, read_notify_settings
from swarm_tui.errors import SwarmError
from swarm_tui.insight.notices import Notice, describe_notices, is_still_news, message_of, notice_of
from swarm_tui.insight.since import Moment, changes_between, moment_of
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.personal_files import read_seen, state_folder
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain

POLL: Final = 1.0
GATHERED_FOR: Final = 5.0
"""What happens within so many seconds is told at once, and a room has the time to show it."""
APART: Final = 60.0
FURTHEST_APART: Final = 480.0
"""While nobody comes, each pause between messages is twice the one before, up to this; the end does not wait for it."""
SEND_LIMIT: Final = 10.0


def notifier_of(context: EngineContext) -> Notifier:
    """Return the notifier of a sweep that runs; it sends nothing where the config cannot be understood."""
    try:
        settings = read_notify_settings()
    except SwarmError as error:
        settings = NotifySettings()
        context.note(f"no notices are sent: {error}", level="warning")
    note = partial(context.note, level="warning")
    return Notifier(context.folder, context.spec, context.state, settings, state_folder(), note)


class Notifier:
    """Sends messages about one sweep."""

    def __init__(
        self,
        folder: SweepFolder,
        spec: SweepSpec,
        state: SweepState,
        settings: NotifySettings,
        personal: Path,
        note: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        send_limit: float = SEND_LIMIT,
    ) -> None:
        self._folder, self._spec, self._state = folder, spec, state
        self._settings, self._personal, self._note, self._clock = settings, personal, note, clock
        self._send_limit = send_limit
        self._follower = EventFollower(folder.events, folder.events.stat().st_size)
        self._before: Moment = moment_of(state)
        """What was told, or seen, last."""
        self._pending: list[Notice] = []
        self._pending_since = 0.0
        self._sent_at = float("-inf")
        self._pause = APART
        self._failed: set[str] = set()
        """The ways whose failure was noted."""

    async def run(self) -> None:
        """Send what is due, until cancelled."""
        while not self._settings.is_empty:
            await asyncio.sleep(POLL)
            with contextlib.suppress(SwarmError, OSError):
                await self.work()

    async def work(self) -> None:
        """Read what is new, and send what is due."""
        self._read()
        if self._pending and self._clock() >= self._due_at:
            await self._send()

    async def send_last(self) -> None:
        """Send what has not been sent when the sweep has ended, also then not within a minute of the message before."""
        with contextlib.suppress(SwarmError, OSError):
            while not self._settings.is_empty:
                await self.work()
                if not self._pending:
                    return
                await asyncio.sleep(POLL)

    @property
    def _due_at(self) -> float:
        pause = APART if self._state.is_over else self._pause
        return max(self._pending_since + GATHERED_FOR, self._sent_at + pause)

    def _read(self) -> None:
        notices = [notice for event in self._follower.read().events if (notice := notice_of(event)) is not None]
        if notices and not self._pending:
            self._pending_since = self._clock()
        seen = read_seen(self._personal, self._folder)
        seen_seq = seen.seq if seen is not None else 0
        self._pending = [notice for notice in (*self._pending, *notices) if notice.seq > seen_seq]
        if seen_seq >= self._state.last_seq > self._before.seq:
            self._before = moment_of(self._state)
            self._pause = APART

    async def _send(self) -> None:
        notices = [notice for notice in self._pending if is_still_news(notice, self._state)]
        self._pending = []
        if not notices:
            return
        before, now = self._before, moment_of(self._state)
        changes = await asyncio.to_thread(changes_between, before, now)
        text = message_of(notices, changes)
        content = json.dumps(describe_notices(self._spec, self._state, notices, text)).encode()
        if self._sent_at > float("-inf"):
            self._pause = min(2 * self._pause, FURTHEST_APART)
        self._before, self._sent_at = now, self._clock()
        try:
            await asyncio.gather(*(self._deliver(*way) for way in self._ways(text, content)))
        except asyncio.CancelledError:
            # The engine ends: what was on its way goes with the last message.
            self._before, self._pending = before, notices + self._pending
            raise

    def _ways(self, text: str, content: bytes) -> Iterator[tuple[str, Sequence[str], bytes]]:
        settings = self._settings
        if settings.command:
            yield "notify.command", settings.command, content + b"\n"
        if settings.webhook:
            words = (sys.executable, "-m", "swarm_tui.adapters.webhook")
            yield "notify.webhook", words, settings.webhook.encode() + b"\n" + content
        if settings.has_desktop:
            title = f"swarm-tui {self._spec.sweep}" + (f" · {plain(self._spec.title, 60)}" if self._spec.title else "")
            yield "notify.desktop", ("notify-send", "--app-name=swarm-tui", "--", title, text), b""

    async def _deliver(self, name: str, words: Sequence[str], content: bytes) -> None:
        problem = ""
        try:
            done = await run_process(
                words, cwd=Path(self._spec.repository), stdin=content, timeout=self._send_limit, output_limit=1 << 14
            )
            if done.code:
                problem = done.error_text.strip().rpartition("\n")[2] or f"it ended with code {done.code}"
        except SwarmError as error:
            problem = error.message
        except OSError as error:
            problem = error.strerror or str(error)
        if problem and name not in self._failed:
            self._failed.add(name)
            # The sweep may be over, and its journal closed.
            with contextlib.suppress(SwarmError, OSError, ValueError):
                self._note(f"{name} does not work: {plain(problem, 200)}")

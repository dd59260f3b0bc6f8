"""Notify a user who is away of events, by terminal, command or webhook."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from swarm_tui.adapters.processes.run import run_process
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.failures.events import AlertRaised
from swarm_tui.hosts.events import HostLost
from swarm_tui.integrator.events import Integrated, IntegrationFailed
from swarm_tui.journal.events import AgentStateChanged, EngineEnded, Pulled
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.since import Changes, JournalPosition, change_words, changes_between, moment_of
from swarm_tui.journal.state import SweepState
from swarm_tui.journal.user_files import config_file, config_table, read_config, read_seen, state_folder
from swarm_tui.limits.events import AgentStuck, LoginLost
from swarm_tui.model.event import Event, TestEvent
from swarm_tui.model.masking import mask_secrets
from swarm_tui.model.results import Result, State
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.money.events import AgentOverBudget, BudgetReached, BudgetUnknownPrice
from swarm_tui.sweep.context import SweepContext

if TYPE_CHECKING:
    from swarm_tui.model.shapes import NotificationJson


@dataclass(frozen=True, slots=True)
class NotificationSettings:
    """The ways to notify the user."""

    command: tuple[str, ...] = ()
    webhook: str = ""
    has_desktop: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.command or self.webhook or self.has_desktop)


def read_notify_settings(environment: Mapping[str, str] = os.environ) -> NotificationSettings:
    """Read the ways from the config file. Raise UsageError for invalid ones."""
    path = config_file(environment)
    table = config_table(read_config(environment), "notify", path)
    unknown = [name for name in table if name not in ("command", "webhook", "desktop")]
    if unknown:
        raise UsageError(f"{path}: [notify] knows no {unknown[0]!r}", "it has command, webhook and desktop")
    command, webhook, has_desktop = table.get("command", []), table.get("webhook", ""), table.get("desktop", False)
    if not isinstance(command, list) or not all(isinstance(word, str) and "\0" not in word for word in command):
        raise UsageError(f"{path}: notify.command is {command!r}", 'write its words: ["ntfy", "publish", "sweeps"]')
    if command and not command[0]:
        raise UsageError(f"{path}: notify.command names no program", "its first word is the program")
    if not isinstance(webhook, str) or (webhook and not _is_address(webhook)):
        # The address may contain a secret, so the message does not repeat it.
        raise UsageError(f"{path}: invalid notify.webhook", "use an address that begins with https:// or http://")
    if not isinstance(has_desktop, bool):
        raise UsageError(f"{path}: notify.desktop is {has_desktop!r}", "it is true or false")
    return NotificationSettings(tuple(command), webhook, has_desktop)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:
        return False


NAMED: Final = 20
"""The maximum number of events that a notification lists."""


class Notification(NamedTuple):
    """One event of a notification."""

    kind: str
    """A condition of `swarm-tui wait`, such as `question` or `error`."""
    seq: int
    at: float
    test: str
    text: str


def notification_for(event: Event) -> Notification | None:
    """Return the notification for an event; None if the event does not trigger one."""
    kind = _kind_of(event)
    if kind is None:
        return None
    line = event.log_line()
    test = plain(event.test, 300) if isinstance(event, TestEvent) else ""
    # Mask secrets, because a notification may be sent to another machine.
    return Notification(
        kind, event.seq, event.at, test, mask_secrets(plain(line.text, 300)) if line is not None else ""
    )


def _kind_of(event: Event) -> str | None:
    match event:
        case AgentStateChanged(state=State.WAITING):
            return "question"
        case Pulled(result=Result.ERROR) | IntegrationFailed():
            return "error"
        case Pulled(result=Result.BLOCKED):
            return "blocked"
        case AlertRaised():
            return "alert"
        case AgentStuck() if event.reason:
            return "stuck"
        case LoginLost():
            return "login-lost"
        case HostLost():
            return "host-lost"
        case BudgetReached() | BudgetUnknownPrice() | AgentOverBudget():
            return "over-budget"
        case Integrated() if event.fixes:
            return "fixes"
        case EngineEnded(why="finished"):
            return "done"
        case EngineEnded():
            return "ended"
    return None


def is_still_news(notice: Notification, state: SweepState) -> bool:
    """Return whether a notification is still relevant. A question may have been answered since."""
    if notice.kind not in ("question", "stuck"):
        return True
    record = state.records.get(notice.test) or state.integrator
    if record is None:
        return False
    return record.state is State.WAITING if notice.kind == "question" else bool(record.stuck)


def message_of(notices: Sequence[Notification], changes: Changes) -> str:
    """Return the text of a notification in one line: texts of events first, then counts of changes."""
    words = change_words(changes)
    kinds = Counter(notice.kind for notice in notices)
    # The changes contain counts of most kinds. The others are included with their text.
    texts = list(dict.fromkeys(notice.text for notice in notices if notice.kind in _WITH_TEXT))[:3]
    return plain(", ".join([*texts, *words]) or ", ".join(f"{number} {kind}" for kind, number in kinds.items()), 500)


_WITH_TEXT: Final = frozenset({"alert", "stuck", "login-lost", "host-lost"})


def describe_notifications(
    spec: SweepSpec, state: SweepState, notices: Iterable[Notification], text: str
) -> NotificationJson:
    """Return a notification as data for a command or a webhook."""
    events = list(notices)
    return {
        "sweep": spec.sweep,
        "title": plain(spec.title, 200),
        "repository": spec.repository,
        "text": text,
        "kinds": dict(Counter(notice.kind for notice in events)),
        "events": [{"kind": each.kind, "at": each.at, "test": each.test, "text": each.text} for each in events[:NAMED]],
        "counts": {mark: count for mark, count in state.counts.items() if count},
        "dollars": state.spending.known_dollars,
        "ended": state.ended_why,
    }


POLL: Final = 1.0
GATHERED_FOR: Final = 5.0
"""Seconds in which events are collected for one message. A room may show them in this time."""
APART: Final = 60.0
FURTHEST_APART: Final = 480.0
"""While the user is away, the pause between messages doubles up to this value. The last message does not wait."""
SEND_LIMIT: Final = 10.0


def notifier_of(context: SweepContext) -> Notifier:
    """Return the notifier of a running sweep. With an invalid config it sends nothing."""
    try:
        settings = read_notify_settings()
    except SwarmError as error:
        settings = NotificationSettings()
        context.note(f"no notifications are sent: {error}", level="warning")
    note = partial(context.note, level="warning")
    return Notifier(context.folder, context.spec, context.state, settings, state_folder(), note)


@dataclass(slots=True)
class Notifier:
    """Sends messages about one sweep."""

    folder: SweepFolder
    spec: SweepSpec
    state: SweepState
    settings: NotificationSettings
    personal: Path
    """The folder with the last visits of the user."""
    note: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    send_limit: float = SEND_LIMIT
    _follower: EventFollower = field(init=False)
    _before: JournalPosition = field(init=False)
    """The last event that was sent or shown in a room."""
    _pending: list[Notification] = field(default_factory=list)
    _pending_since: float = 0.0
    _sent_at: float = float("-inf")
    _pause: float = APART
    _failed: set[str] = field(default_factory=set)
    """The ways whose failure was noted."""

    def __post_init__(self) -> None:
        self._follower = EventFollower(self.folder.events, self.folder.events.stat().st_size)
        self._before = moment_of(self.state)

    async def run(self) -> None:
        """Send what is due, until cancelled."""
        while not self.settings.is_empty:
            await asyncio.sleep(POLL)
            with contextlib.suppress(SwarmError, OSError):
                await self.work()

    async def work(self) -> None:
        """Read new events, and send what is due."""
        self._read()
        if self._pending and self.clock() >= self._due_at:
            await self._send()

    async def send_last(self) -> None:
        """Send the remaining events after the end of the sweep, without the usual pause."""
        with contextlib.suppress(SwarmError, OSError):
            while not self.settings.is_empty:
                await self.work()
                if not self._pending:
                    return
                await asyncio.sleep(POLL)

    @property
    def _due_at(self) -> float:
        pause = APART if self.state.is_over else self._pause
        return max(self._pending_since + GATHERED_FOR, self._sent_at + pause)

    def _read(self) -> None:
        notices = [notice for event in self._follower.read().events if (notice := notification_for(event)) is not None]
        if notices and not self._pending:
            self._pending_since = self.clock()
        seen = read_seen(self.personal, self.folder)
        seen_seq = seen.seq if seen is not None else 0
        self._pending = [notice for notice in (*self._pending, *notices) if notice.seq > seen_seq]
        if seen_seq >= self.state.last_seq > self._before.seq:
            self._before = moment_of(self.state)
            self._pause = APART

    async def _send(self) -> None:
        notices = [notice for notice in self._pending if is_still_news(notice, self.state)]
        self._pending = []
        if not notices:
            return
        before, now = self._before, moment_of(self.state)
        changes = await asyncio.to_thread(changes_between, before, now)
        text = message_of(notices, changes)
        content = json.dumps(describe_notifications(self.spec, self.state, notices, text)).encode()
        if self._sent_at > float("-inf"):
            self._pause = min(2 * self._pause, FURTHEST_APART)
        self._before, self._sent_at = now, self.clock()
        try:
            await asyncio.gather(*(self._deliver(*way) for way in self._ways(text, content)))
        except asyncio.CancelledError:
            # The engine exits: unsent events are part of the last message.
            self._before, self._pending = before, notices + self._pending
            raise

    def _ways(self, text: str, content: bytes) -> Iterator[tuple[str, Sequence[str], bytes]]:
        settings = self.settings
        if settings.command:
            yield "notify.command", settings.command, content + b"\n"
        if settings.webhook:
            words = (sys.executable, "-m", "swarm_tui.adapters.web")
            yield "notify.webhook", words, settings.webhook.encode() + b"\n" + content
        if settings.has_desktop:
            title = f"swarm-tui {self.spec.sweep}" + (f" · {plain(self.spec.title, 60)}" if self.spec.title else "")
            yield "notify.desktop", ("notify-send", "--app-name=swarm-tui", "--", title, text), b""

    async def _deliver(self, name: str, words: Sequence[str], content: bytes) -> None:
        problem = ""
        try:
            done = await run_process(
                words, cwd=Path(self.spec.repository), stdin=content, timeout=self.send_limit, output_limit=1 << 14
            )
            if done.code:
                problem = done.error_text.strip().rpartition("\n")[2] or f"it exited with code {done.code}"
        except SwarmError as error:
            problem = error.message
        except OSError as error:
            problem = error.strerror or str(error)
        if problem and name not in self._failed:
            self._failed.add(name)
            # The sweep may be finished, and its journal closed.
            with contextlib.suppress(SwarmError, OSError, ValueError):
                self.note(f"{name} does not work: {plain(problem, 200)}")

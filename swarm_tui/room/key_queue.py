"""Delivers keys one after the other, each to the screen that the key before it has opened, once that is ready for it.

Textual gives a key to the widget that has the focus when the key is read. When several are read at once, the first
may open another screen, and the others would still go to the old one: of `3` and `y` the verdict would get lost.
It would get lost as well while the fixes are still being read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from textual import events
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen
from textual.timer import Timer

TIMEOUT_SECONDS: Final = 0.5
"""Seconds after which the next key is delivered even if the last one has not been handled."""


def always_ready(event: events.Key) -> bool:
    return True


class KeyQueue:
    """The keys that wait for the one before them, or for what they are meant for."""

    def __init__(
        self,
        app: App[Any],
        deliver: Callable[[events.Key], Awaitable[None]],
        is_ready: Callable[[events.Key], bool] = always_ready,
    ) -> None:
        self._app = app
        self._deliver = deliver
        self._is_ready = is_ready
        self._waiting: deque[events.Key] = deque()
        self._is_busy = False
        self._number = 0
        self._timeout: Timer | None = None

    @property
    def is_idle(self) -> bool:
        return not self._is_busy and not self._waiting

    @property
    def held(self) -> int:
        """How many keys wait until what they are meant for is loaded."""
        return 0 if self._is_busy else len(self._waiting)

    async def put(self, event: events.Key) -> None:
        """Deliver a key, now or when the ones before it have been handled."""
        self._waiting.append(event)
        if self._is_busy:
            self._time_out_later()
        else:
            await self.go_on()

    async def go_on(self) -> None:
        """Deliver the next key if it is not held any more."""
        if not self._is_busy and self._waiting and self._is_ready(self._waiting[0]):
            await self._begin(self._waiting.popleft())

    def drop(self) -> None:
        """Forget the keys that wait."""
        self._waiting.clear()

    def _time_out_later(self) -> None:
        if self._is_busy and self._waiting and self._timeout is None:
            self._timeout = self._app.set_timer(TIMEOUT_SECONDS, partial(self._end, self._number))

    async def _begin(self, event: events.Key) -> None:
        self._is_busy = True
        self._number += 1
        screen = self._app.screen
        receiver = screen.focused or screen
        await self._deliver(event)
        self._follow(receiver, screen, self._number)

    def _follow(self, node: MessagePump, screen: Screen[Any], number: int) -> None:
        """Wait for a widget and its parents to handle the key."""

        def answered() -> None:
            around = node._parent
            if node is not screen and around is not None:
                self._follow(around, screen, number)
            else:
                self._settle(screen, number)

        if not node.call_later(answered):
            self._settle(screen, number)

    def _settle(self, screen: Screen[Any], number: int) -> None:
        """End with this key; when the key has opened another screen, as soon as that is there."""
        now = self._app.screen
        if now is screen:
            self._app.call_later(self._end, number)
        else:
            self._follow(now.focused or now, now, number)

    async def _end(self, number: int) -> None:
        if number != self._number or not self._is_busy:
            return
        self._is_busy = False
        if self._timeout is not None:
            self._timeout.stop()
            self._timeout = None
        await self.go_on()
        self._time_out_later()

"""Hands on one key after the other: each goes to where the one before has led, however fast somebody types.

Textual gives a key to the widget that has the focus when the key is read. When several are read at once, the first
may open another screen, and the others would still go to the old one: of `3` and `y` the verdict would get lost.
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

PATIENCE: Final = 0.5
"""What has not answered a key after so many seconds holds the next ones up no longer."""


class Turns:
    """The keys that wait for the one before them."""

    def __init__(self, app: App[Any], hand_on: Callable[[events.Key], Awaitable[None]]) -> None:
        self._app = app
        self._hand_on = hand_on
        self._waiting: deque[events.Key] = deque()
        self._is_busy = False
        self._turn = 0
        self._patience: Timer | None = None

    async def take(self, event: events.Key) -> None:
        """Hand on a key, now or when the ones before it have done what they do."""
        if not self._is_busy:
            await self._begin(event)
            return
        self._waiting.append(event)
        self._lose_patience_later()

    def _lose_patience_later(self) -> None:
        if self._waiting and self._patience is None:
            self._patience = self._app.set_timer(PATIENCE, partial(self._end, self._turn))

    async def _begin(self, event: events.Key) -> None:
        self._is_busy = True
        self._turn += 1
        screen = self._app.screen
        receiver = screen.focused or screen
        await self._hand_on(event)
        self._follow(receiver, screen, self._turn)

    def _follow(self, node: MessagePump, screen: Screen[Any], turn: int) -> None:
        """Wait for a widget and for those around it: what one does not want, the next one gets."""

        def answered() -> None:
            around = node._parent
            if node is not screen and around is not None:
                self._follow(around, screen, turn)
            else:
                self._settle(screen, turn)

        if not node.call_later(answered):
            self._settle(screen, turn)

    def _settle(self, screen: Screen[Any], turn: int) -> None:
        """End the turn; when the key has opened another screen, as soon as that is there."""
        now = self._app.screen
        if now is screen:
            self._app.call_later(self._end, turn)
        else:
            self._follow(now.focused or now, now, turn)

    async def _end(self, turn: int) -> None:
        if turn != self._turn or not self._is_busy:
            return
        self._is_busy = False
        if self._patience is not None:
            self._patience.stop()
            self._patience = None
        if self._waiting:
            await self._begin(self._waiting.popleft())
            self._lose_patience_later()

"""Deliver keys in order."""

from __future__ import annotations

import time
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
"""Seconds until the next key is delivered, even if the last one has not been handled."""


class KeyQueue:
    """Keys that wait for the previous key, or for data that is being loaded."""

    def __init__(
        self,
        app: App[Any],
        deliver: Callable[[events.Key], Awaitable[None]],
        is_ready: Callable[[events.Key], bool],
    ) -> None:
        self._app = app
        self._deliver = deliver
        self._is_ready = is_ready
        self.is_holding = False
        """Whether keys wait because a terminal or a question is being opened. They are not commands of the room."""
        self._since = 0.0
        """Keys typed before this moment (monotonic clock) are dropped."""
        self._waiting: deque[events.Key] = deque()
        self._is_busy = False
        self._number = 0
        self._timeout: Timer | None = None

    @property
    def is_idle(self) -> bool:
        return not self._is_busy and not self._waiting

    @property
    def held(self) -> int:
        """The number of keys that wait for data."""
        return 0 if self._is_busy else len(self._waiting)

    async def put(self, event: events.Key) -> None:
        """Deliver a key now, or after the keys before it."""
        if event.time < self._since:
            return
        self._waiting.append(event)
        if self._is_busy:
            self._time_out_later()
        else:
            await self.go_on()

    async def go_on(self) -> None:
        """Deliver the next key if keys are not held."""
        if not self._is_busy and self._waiting and self._is_ready(self._waiting[0]):
            await self._begin(self._waiting.popleft())

    def hold(self) -> None:
        """Let keys wait until `release` or `drop_held`."""
        self.is_holding = True

    def release(self) -> None:
        """Deliver the keys that wait."""
        self.is_holding = False
        self.go_on_later()

    def drop_held(self) -> None:
        """Drop the keys that wait, and those that are still on their way."""
        if self.is_holding:
            self.is_holding = False
            self._since = time.monotonic()
            self.drop()

    def go_on_later(self) -> None:
        """Deliver the next key if the data that it waits for is loaded."""
        if self.held:
            self._app.call_later(self.go_on)

    def drop(self) -> int:
        """Drop the waiting keys. Return how many there were."""
        number = len(self._waiting)
        self._waiting.clear()
        return number

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
        """Wait until a widget and its parents have handled the key."""

        def answered() -> None:
            around = node._parent
            if node is not screen and around is not None:
                self._follow(around, screen, number)
            else:
                self._settle(screen, number)

        if not node.call_later(answered):
            self._settle(screen, number)

    def _settle(self, screen: Screen[Any], number: int) -> None:
        """Finish this key. If it has opened another screen, wait for that screen first."""
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


_PLAIN: Final = {
    "enter": b"\r",
    "tab": b"\t",
    "escape": b"\x1b",
    "backspace": b"\x7f",
    "space": b" ",
    "shift+tab": b"\x1b[Z",
    "ctrl+space": b"\x00",
    "ctrl+at": b"\x00",
    "ctrl+underscore": b"\x1f",
    "ctrl+right_square_bracket": b"\x1d",
    "ctrl+circumflex_accent": b"\x1e",
    "ctrl+backspace": b"\x08",
    "alt+backspace": b"\x1b\x7f",
    "alt+enter": b"\x1b\r",
}
_CURSOR: Final = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
_TILDE: Final = {"insert": 2, "delete": 3, "pageup": 5, "pagedown": 6, "f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20,
                 "f10": 21, "f11": 23, "f12": 24}  # fmt: skip
_FUNCTION: Final = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_MODIFIERS: Final = {"shift": 1, "alt": 2, "ctrl": 4}


def bytes_of_key(key: str, character: str | None, *, has_application_cursor: bool = False) -> bytes:
    """Return the bytes of a key, or b"" if terminals do not send it."""
    if key in _PLAIN:
        return _PLAIN[key]
    *held, name = key.split("+") if key != "+" else ["+"]
    modifier = 1 + sum(_MODIFIERS.get(word, 0) for word in held)
    if name in _CURSOR:
        if modifier > 1:
            return f"\x1b[1;{modifier}{_CURSOR[name]}".encode()
        return f"\x1b{'O' if has_application_cursor else '['}{_CURSOR[name]}".encode()
    if name in _TILDE:
        return f"\x1b[{_TILDE[name]}{f';{modifier}' if modifier > 1 else ''}~".encode()
    if name in _FUNCTION:
        return f"\x1b[1;{modifier}{_FUNCTION[name]}".encode() if modifier > 1 else f"\x1bO{_FUNCTION[name]}".encode()
    if "ctrl" in held and len(name) == 1 and name.isascii() and name.isalpha():
        content = bytes([ord(name.upper()) & 31])
        return b"\x1b" + content if "alt" in held else content
    if "alt" in held and len(name) == 1:
        return b"\x1b" + (name.upper() if "shift" in held else name).encode()
    return character.encode() if character is not None else b""

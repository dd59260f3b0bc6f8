"""Show what swarm-tui is waiting for, on a terminal with the elapsed time and a bar."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

from swarm_tui.cli.progress import clear_passing, print_passing, print_progress
from swarm_tui.files import read_regular
from swarm_tui.journal.folder import write_beside
from swarm_tui.journal.user_files import state_folder
from swarm_tui.model.formatting import bar, duration

Waited = TypeVar("Waited")

TICK: Final = 0.5
UNSAID: Final = 1.0
"""Shorter waits are not shown."""
KEPT: Final = 200


def draw_wait(seconds: float, expected: float | None) -> str:
    """Return the elapsed time, with a bar and the time left if the duration of the last run is known."""
    if expected is None or expected < UNSAID:
        return duration(seconds)
    if seconds >= expected:
        return f"{duration(seconds)}, last time {duration(expected)}"
    return f"{''.join(bar(seconds / expected))}  {duration(seconds)} · ~{duration(expected - seconds)} left"


class Durations:
    """The durations of earlier waits, kept in a file; errors of that file are ignored."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, float] = {}
        with contextlib.suppress(OSError, ValueError):
            kept = json.loads(read_regular(path))
            items = kept.items() if isinstance(kept, dict) else ()
            self._known = {name: float(value) for name, value in items if isinstance(value, int | float)}

    def of(self, name: str) -> float | None:
        return self._known.get(name)

    def keep(self, new: dict[str, float]) -> None:
        others = {name: seconds for name, seconds in self._known.items() if name not in new}
        kept = dict(list((others | new).items())[-KEPT:])
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_beside(self._path, json.dumps(kept).encode())


class WaitBar:
    """Shows a series of waits, each with a sentence."""

    def __init__(self, place: Path | str = "") -> None:
        """`place` separates the durations of different projects."""
        self._place = str(place)
        self._durations = Durations(state_folder() / "durations.json")
        self._new: dict[str, float] = {}
        self._sentence = ""
        self._began = 0.0
        self._count = ""
        self._has_own_words = False

    def say(self, sentence: str) -> None:
        """Begin the next wait."""
        self._note()
        print_progress(sentence)
        self._sentence, self._began = sentence, time.monotonic()
        self._count, self._has_own_words = "", False

    def say_passing(self, text: str) -> None:
        """Show progress in the words of the current step."""
        self._has_own_words = True
        print_passing(text)

    def say_count(self, text: str) -> None:
        """Show a count next to the elapsed time."""
        self._count = text
        self._show()

    def wait(self, work: Coroutine[Any, Any, Waited]) -> Waited:
        """Run the coroutine, and save the duration of each step."""
        waited = asyncio.run(self._wait(work))
        self._note()
        if self._new:
            self._durations.keep(self._new)
        return waited

    async def _wait(self, work: Coroutine[Any, Any, Waited]) -> Waited:
        ticking = asyncio.ensure_future(self._tick()) if sys.stderr.isatty() else None
        try:
            return await work
        finally:
            if ticking is not None:
                ticking.cancel()
                clear_passing()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            self._show()

    def _show(self) -> None:
        seconds = time.monotonic() - self._began
        if self._sentence and not self._has_own_words and seconds >= UNSAID:
            taken = draw_wait(seconds, self._durations.of(self._name))
            print_passing(" · ".join(filter(None, (taken, self._count))))

    @property
    def _name(self) -> str:
        return f"{self._place}: {self._sentence}"

    def _note(self) -> None:
        if self._sentence and (seconds := time.monotonic() - self._began) >= UNSAID:
            self._new[self._name] = round(seconds, 1)

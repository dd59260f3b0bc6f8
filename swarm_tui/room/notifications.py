"""Notifies the user by bell, desktop notification and terminal title when an agent waits or the sweep has finished."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from swarm_tui.journal.state import SweepState
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import Result, State
from swarm_tui.model.text import plain

FINISHED_MARKS: Final = (*(result.value for result in Result), State.STOPPED.value)
PUSH_TITLE: Final = "\x1b[22;2t"
POP_TITLE: Final = "\x1b[23;2t"


class TerminalNotifications:
    """Compares the state with the previous one, and writes notifications to the terminal."""

    def __init__(self, write: Callable[[str], None], kind: str, sweep: str, noun: str = "test") -> None:
        self._write = write
        self._kind = kind
        self._sweep = plain(sweep, 60)
        self._noun = noun
        self._waiting: int | None = None
        self._ended: str | None = None
        self._alarms = 0
        self._title = ""

    def update(self, state: SweepState) -> str:
        """Notify of changes from the last state. Return the alert among them. The first call notifies of nothing."""
        waiting, reason = state.counts["waiting"], state.ended_why
        is_first = self._waiting is None
        before = self._waiting or 0
        is_ended_now = reason is not None and reason != self._ended
        new_alarms = len(state.alarms) - self._alarms
        self._waiting, self._ended, self._alarms = waiting, reason, len(state.alarms)
        if not is_first and waiting > before:
            self._notify(f"{counted(waiting, self._noun)} {'waits' if waiting == 1 else 'wait'} for an answer")
        if not is_first and is_ended_now:
            self._notify(f"the sweep has finished: {reason}")
        alarm_text = ""
        if not is_first and new_alarms > 0:
            alarm = list(state.alarms.values())[-1]
            alarm_text = f"{counted(len(alarm.tests), 'test')} with the same failure: {plain(alarm.cause, 120)}"
            self._notify(alarm_text)
        self._set_title(state)
        return alarm_text

    def _notify(self, text: str) -> None:
        if self._kind == "bell":
            self._write("\x07")
        elif self._kind == "desktop":
            self._write(f"\x1b]9;swarm-tui {self._sweep}: {text}\x07")

    def _set_title(self, state: SweepState) -> None:
        total = sum(state.counts.values())
        done = sum(state.counts[mark] for mark in FINISHED_MARKS)
        words = [f"swarm {self._sweep}", f"{done}/{total}"]
        if state.counts["waiting"]:
            words.append(f"?{state.counts['waiting']}")
        if state.counts["failed"]:
            words.append(f"!{state.counts['failed']}")
        title = " ".join(words)
        if title != self._title:
            self._title = title
            self._write(f"\x1b]2;{title}\x07")

"""Turns what the live plugin wrote into events: which try began, how it ended, what was imported from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from swarm_tui.model.events import ForeignImports, TryFinished, TryStarted
from swarm_tui.model.failure import parse_failure
from swarm_tui.model.state import Try
from swarm_tui.model.text import plain

TryEvent = TryStarted | TryFinished | ForeignImports

_FAILURE_LIMIT = 400


class TryReader:
    """Numbers the tries of one test in the order of their file, and leaves out those that the journal holds."""

    def __init__(self, test: str, known: Iterable[Try] = ()) -> None:
        self._test = test
        self._number = 0
        self._number_of_run: dict[str, int] = {}
        self._known = {made.number: made.passed is not None for made in known}
        # The journal's state keeps the last tries only; those before them are in the journal.
        self._first_known = min(self._known, default=0)
        self._foreign: tuple[str, ...] = ()

    def read(self, lines: Iterable[bytes]) -> list[TryEvent]:
        """Return the events for the lines; other lines are skipped."""
        events = (self._event(fields) for fields in map(_fields, lines) if fields)
        return [event for event in events if event is not None]

    def _event(self, fields: dict[str, Any]) -> TryEvent | None:
        run = str(fields.get("run"))
        match fields.get("kind"):
            case "start":
                self._number += 1
                self._number_of_run[run] = self._number
                if self._number in self._known or self._number < self._first_known:
                    return None
                return TryStarted(test=self._test, number=self._number)
            case "finish" if run in self._number_of_run:
                number = self._number_of_run[run]
                seconds, reruns = fields.get("seconds"), fields.get("reruns")
                if self._known.get(number) or number < self._first_known:
                    return None
                self._known[number] = True
                return TryFinished(
                    test=self._test,
                    number=number,
                    passed=fields.get("passed") is True,
                    seconds=float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e7 else 0.0,
                    failure=plain(str(fields.get("failure") or ""), _FAILURE_LIMIT),
                    outcome=plain(str(fields.get("outcome") or ""), 20),
                    reruns=reruns if isinstance(reruns, int) and 0 <= reruns < 10_000 else 0,
                    detail=parse_failure(fields.get("detail")),
                )
            case "foreign":
                return self._foreign_imports(fields.get("modules"))
        return None

    def _foreign_imports(self, modules: Any) -> ForeignImports | None:
        names: Sequence[Any] = modules if isinstance(modules, list) else ()
        found = tuple(sorted({plain(str(name), 80) for name in names[:20]} | set(self._foreign)))[:20]
        if not found or found == self._foreign:
            return None
        self._foreign = found
        return ForeignImports(test=self._test, modules=found)


def _fields(line: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None

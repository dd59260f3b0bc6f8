"""Decides which tests are launched next: a pure function of the queue, the slots and what is under way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from swarm_tui.model.formatting import counted
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import LIVING_STATES, State

CREATES_AT_ONCE: Final = 3
LAUNCH_ATTEMPTS: Final = 3
_BACK_OFF: Final = (2.0, 10.0)


def choose_launches(
    queue: Iterable[str],
    records: Mapping[str, TestRecord],
    *,
    slots: int,
    taken: int,
    creating: int,
    creates_at_once: int = CREATES_AT_ONCE,
    not_before: Mapping[str, float],
    now: float,
) -> list[str]:
    """Return the tests to launch now, in the order of the queue.

    `taken` slots are in use, `creating` of them by launches; a held test, one that backs off, or one of whose group
    another is at work, lets others pass.
    """
    free = min(slots - taken, creates_at_once - creating)
    chosen: list[str] = []
    groups_at_work: set[str] | None = None
    for test in queue:
        if len(chosen) >= free:
            break
        record = records[test]
        if record.state is not State.QUEUED or record.is_held or not_before.get(test, 0.0) > now:
            continue
        if record.group:
            if groups_at_work is None:
                groups_at_work = {rec.group for rec in records.values() if rec.state in LIVING_STATES}
            if record.group in groups_at_work:
                continue
            groups_at_work.add(record.group)
        chosen.append(test)
    return chosen


def slots_taken(active: int, waiting: int, slots: int) -> int:
    """Return how many slots are in use, so many tests being active or waiting for an answer.

    A waiting agent keeps its slot until as many wait as there are slots. Then others are launched in place of those
    that wait, until twice as many agents live as there are slots.
    """
    return active + waiting if waiting < slots else active + waiting - slots


def slots_without_tests(slots: int, tests: int) -> str:
    """Return what is said of more slots than tests; empty when there are not."""
    return f"{counted(tests, 'test')}: no more than {counted(tests, 'agent')} at once" if slots > tests else ""


def back_off(failures: int, attempts: int = LAUNCH_ATTEMPTS) -> float | None:
    """Return how long to wait after that many failed launches of an agent, or None to give up."""
    return None if failures >= attempts else _BACK_OFF[min(failures, len(_BACK_OFF)) - 1]

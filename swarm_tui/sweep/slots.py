"""Decide which tests are launched next. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import LIVING_STATES, State

CREATES_AT_ONCE: Final = 3
LAUNCH_PAUSES: Final = (2.0, 10.0)
"""Seconds to wait after each failed launch of an agent except the last."""
MAX_LAUNCHES: Final = len(LAUNCH_PAUSES) + 1
SHORTAGE_PAUSES: Final = (1.0, 2.0, 4.0, 8.0, 15.0)
"""The same if this machine lacked resources, and for pulling an agent's work."""


def next_launches(
    queue: Iterable[str],
    records: Mapping[str, TestRecord],
    *,
    slots: int,
    taken: int,
    creating: int,
    creates_at_once: int = CREATES_AT_ONCE,
    groups_at_work: Collection[str] = (),
) -> list[str]:
    """Return the tests to launch now, in the order of the queue.

    `taken` slots are in use, `creating` of them by launches. Held tests are skipped, and those whose group has a living
    agent or is in `groups_at_work`.
    """
    free = min(slots - taken, creates_at_once - creating)
    chosen: list[str] = []
    busy_groups: set[str] | None = None
    for test in queue:
        if len(chosen) >= free:
            break
        record = records[test]
        if record.state is not State.QUEUED or record.is_held:
            continue
        if record.group:
            if busy_groups is None:
                busy_groups = {rec.group for rec in records.values() if rec.state in LIVING_STATES}
                busy_groups.update(groups_at_work)
            if record.group in busy_groups:
                continue
            busy_groups.add(record.group)
        chosen.append(test)
    return chosen


def slots_taken(active: int, waiting: int, slots: int) -> int:
    """Return how many slots are in use by active agents and by agents that wait for an answer.

    A waiting agent keeps its slot until as many agents wait as there are slots. Others are then launched in place of
    the waiting ones, until there are twice as many agents as slots.
    """
    return active + waiting if waiting < slots else active + waiting - slots


def idle_slots(slots: int, tests: int) -> str:
    """Return a remark if there are more slots than tests, else ""."""
    return f"{counted(tests, 'test')}: no more than {counted(tests, 'agent')} at once" if slots > tests else ""

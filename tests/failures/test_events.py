"""Events of alerts and the held queue: what they change, and their log lines."""

from __future__ import annotations

from typing import Any

import pytest

from swarm_tui.failures.events import AlertRaised, QueueHeld, QueueReleased
from swarm_tui.model.event import Event
from tests.journal.folding import OTHER, TEST, check_line, check_record, check_sweep, type_name


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (QueueHeld(at=9, tests=(TEST,)), {"held_for": ""}),
        (QueueHeld(at=9, tests=(TEST,), cause="OSError"), {"held_for": "OSError"}),
        (QueueReleased(at=9, tests=(TEST,)), {"is_held": False, "held_for": ""}),
        (QueueHeld(at=9), {}),
        (QueueReleased(at=9), {}),
    ],
    ids=type_name,
)
def test_event_changes_fields_of_record(event: Event, changes: dict[str, Any]) -> None:
    check_record(event, changes)


@pytest.mark.parametrize(
    ("events", "changes"),
    [
        ([QueueHeld(seq=3, at=3)], {"is_held": True}),
        ([QueueHeld(seq=2, at=2), QueueReleased(seq=3, at=3)], {}),
        ([QueueHeld(seq=2, at=2), QueueReleased(seq=3, at=3, tests=(TEST,))], {"is_held": True}),
        ([QueueHeld(seq=3, at=3, tests=(TEST,))], {}),
    ],
)
def test_event_changes_fields_of_sweep(events: list[Event], changes: dict[str, Any]) -> None:
    check_sweep(events, changes)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (AlertRaised(cause="OSError", tests=("a", "b")), ("warning", "2 tests with the same cause: OSError", "")),
        (QueueHeld(), ("info", "the queue is held", "")),
        (QueueHeld(tests=(TEST,), reason="r"), ("info", "1 test is held: r", "")),
        (QueueReleased(tests=(TEST, OTHER)), ("info", "2 tests are released", "")),
    ],
    ids=type_name,
)
def test_event_gives_log_line(event: Event, line: tuple[str, str, str] | None) -> None:
    check_line(event, line)

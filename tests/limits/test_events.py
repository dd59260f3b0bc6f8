"""Events of API errors and stuck agents: what they change, and their log lines."""

from __future__ import annotations

from typing import Any

import pytest

from swarm_tui.limits.events import (
    AgentStuck,
    ApiAccess,
    LoginLost,
    LoginRestored,
    Throttle,
    ThrottleChanged,
    time_of_day,
)
from swarm_tui.model.event import Event
from tests.journal.folding import TEST, check_line, check_record, check_sweep, type_name

NO_LOGIN = LoginLost(seq=2, at=2, test=TEST, reason="403")


@pytest.mark.parametrize(
    ("event", "changes"),
    [
        (ThrottleChanged(at=9, slots=2), {}),
        (AgentStuck(at=9, test=TEST, reason="it sleeps"), {"stuck": "it sleeps"}),
        (AgentStuck(at=9, test=TEST), {"stuck": ""}),
        (LoginLost(at=9, test=TEST), {}),
        (LoginRestored(at=9), {}),
    ],
    ids=type_name,
)
def test_event_changes_fields_of_record(event: Event, changes: dict[str, Any]) -> None:
    check_record(event, changes)


@pytest.mark.parametrize(
    ("events", "changes"),
    [
        (
            [ThrottleChanged(seq=3, at=3, slots=2, cause="limited", until=9.0, is_halved=True, too_many=5)],
            {"access": ApiAccess(Throttle(2, "limited", until=9.0, halved_at=3, changed_at=3, too_many=5))},
        ),
        (
            [
                ThrottleChanged(seq=2, at=2, slots=2, cause="load", detail="9", is_halved=True),
                ThrottleChanged(seq=3, at=3, cause="load"),
            ],
            {"access": ApiAccess(Throttle(cause="load", halved_at=2, changed_at=3))},
        ),
        ([NO_LOGIN], {"access": ApiAccess(lost="login_lost", lost_reason="403")}),
        ([NO_LOGIN, LoginRestored(seq=3, at=3)], {"access": ApiAccess(restored_at=3)}),
    ],
)
def test_event_changes_fields_of_sweep(events: list[Event], changes: dict[str, Any]) -> None:
    check_sweep(events, changes)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            ThrottleChanged(slots=6, cause="limited", until=10.0, is_halved=True),
            ("warning", f"throttled to 6 agents: limited until {time_of_day(10.0, 9.0)}", ""),
        ),
        (
            ThrottleChanged(slots=1, cause="memory", detail="95 % used", is_halved=True),
            ("warning", "throttled to 1 agent: memory 95 % used", ""),
        ),
        (ThrottleChanged(slots=7, cause="limited"), ("info", "throttled to 7 agents", "")),
        (ThrottleChanged(), ("info", "throttle off", "")),
        (LoginLost(test=TEST, reason="403"), ("error", "login lost, the queue is held: 403", TEST)),
        (AgentStuck(test=TEST, reason="it loops"), ("warning", "stuck: it loops", TEST)),
        (AgentStuck(test=TEST), None),
        (LoginRestored(by="ada"), ("info", "ada released the queue: the API works again", "")),
    ],
    ids=type_name,
)
def test_event_gives_log_line(event: Event, line: tuple[str, str, str] | None) -> None:
    check_line(event, line)

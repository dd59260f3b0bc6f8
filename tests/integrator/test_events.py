"""Events of the integration: what they change, and their log lines."""

from __future__ import annotations

from typing import Any

import pytest

from swarm_tui.integrator.events import Integrated, Integration, IntegrationFailed, IntegrationStarted, IntegratorOutput
from swarm_tui.journal.events import Launched
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import INTEGRATOR_KEY, Event
from tests.journal.folding import check_line, check_sweep, type_name


@pytest.mark.parametrize(
    ("events", "changes"),
    [
        (
            [IntegrationStarted(seq=3, at=3, by="agent")],
            {"integration": Integration("integrating", detail="agent", at=3, started_at=3)},
        ),
        (
            [IntegrationStarted(seq=2, at=2, by="agent"), IntegratorOutput(seq=3, at=3, line="merging")],
            {"integration": Integration("integrating", detail="agent", at=2, started_at=2, last_line="merging")},
        ),
        (
            [
                IntegrationStarted(seq=2, at=2),
                Integrated(seq=3, at=3, branch="b", tip="t", fixes=4, left_out=5, detail="d"),
            ],
            {"integration": Integration("done", "b", "t", 4, 5, "d", at=3, started_at=2)},
        ),
        (
            [IntegrationStarted(seq=2, at=2), IntegrationFailed(seq=3, at=3, reason="no disk")],
            {"integration": Integration("failed", detail="no disk", at=3, started_at=2)},
        ),
    ],
)
def test_event_changes_fields_of_sweep(events: list[Event], changes: dict[str, Any]) -> None:
    check_sweep(events, changes)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (IntegrationStarted(by="agent", branches=3), ("info", "integrating 3 branches (agent)", "")),
        (IntegratorOutput(line="l"), ("info", "the integrator: l", "")),
        (Integrated(branch="b", fixes=2), ("info", "integrated on b: 2 fixes", "")),
        (Integrated(branch="b", fixes=2, left_out=1), ("info", "integrated on b: 2 fixes, 1 left out", "")),
        (Integrated(), ("info", "nothing to integrate", "")),
        (Integrated(branch="b", problems=("red",)), ("error", "integrated on b: 0 fixes; red", "")),
        (IntegrationFailed(reason="r"), ("error", "integration failed: r", "")),
    ],
    ids=type_name,
)
def test_event_gives_log_line(event: Event, line: tuple[str, str, str] | None) -> None:
    check_line(event, line)


def test_integrator_has_record() -> None:
    state = SweepState()
    assert state.record_of(INTEGRATOR_KEY) == TestRecord(test=INTEGRATOR_KEY)
    state.apply_all([IntegrationStarted(at=3, by="agent", agent="a", branch="b", launch=2)])
    assert state.record_of(INTEGRATOR_KEY) == TestRecord(test=INTEGRATOR_KEY, agent="a", branch="b", since=3, launch=2)
    state.apply_all([Launched(at=5, test=INTEGRATOR_KEY, agent_id="id")])
    record = state.record_of(INTEGRATOR_KEY)
    assert (record.agent, record.branch, record.agent_id, record.launch) == ("a", "b", "id", 2)
    state.apply_all([IntegrationStarted(at=4, by="agent", agent="c", branch="d", launch=1)])
    assert state.record_of(INTEGRATOR_KEY) == TestRecord(test=INTEGRATOR_KEY, agent="c", branch="d", since=4, launch=2)

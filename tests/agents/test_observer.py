"""The API errors that agents of any type report in a file."""

from __future__ import annotations

import pytest

from swarm_tui.agents.observer import ConditionObserver


@pytest.mark.parametrize(
    ("report", "condition"),
    [
        (b'{"trouble": "limited", "until": 50, "words": "429"}', "429"),
        (b'{"trouble": "limited", "until": 1e999}', "limited"),
        (b'{"trouble": "limited", "until": 99999999999999999999999999}', "limited"),
        (b'{"trouble": "limited", "until": "soon"}', "limited"),
        (b'{"trouble": "limited", "has_given_up": 7}', None),
        (b'{"trouble": "other"}', None),
        (b'{"trouble": {"limited": 1}}', None),
        (b"[" * 100_000, None),
        (b"{}", None),
    ],
)
def test_condition_report_of_any_content_is_read(report: bytes, condition: str | None) -> None:
    observer = ConditionObserver()
    observer.set_contents("condition", {"condition.json": report})
    observed = observer.observe(now=1.0)
    assert (observed.condition if observed is not None else None) == condition

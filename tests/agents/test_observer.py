"""The API errors that agents of any type report in a file."""

from __future__ import annotations

import pytest

from swarm_tui.agents.observer import ConditionObserver


@pytest.mark.parametrize(
    ("report", "status_detail"),
    [
        (b'{"api_error": "limited", "until": 50, "words": "429"}', "429"),
        (b'{"api_error": "limited", "until": 1e999}', "limited"),
        (b'{"api_error": "limited", "until": 99999999999999999999999999}', "limited"),
        (b'{"api_error": "limited", "until": "soon"}', "limited"),
        (b'{"api_error": "limited", "has_given_up": 7}', None),
        (b'{"api_error": "other"}', None),
        (b'{"api_error": {"limited": 1}}', None),
        (b"[" * 100_000, None),
        (b"{}", None),
    ],
)
def test_condition_report_of_any_content_is_read(report: bytes, status_detail: str | None) -> None:
    observer = ConditionObserver()
    observer.set_contents("condition", {"condition.json": report})
    observed = observer.observe(now=1.0)
    assert (observed.status_detail if observed is not None else None) == status_detail

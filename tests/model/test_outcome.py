"""Outcomes are read as agents write them, and broken ones become one reason."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.outcome import (
    BrokenReport,
    ChangeKind,
    ChangeStatus,
    EscalationKind,
    parse_integrator_outcome,
    parse_outcome,
)


def test_a_full_outcome_is_read() -> None:
    outcome = parse_outcome(
        b'{"changes": {"FIX_IMPL": {"status": "SUCCEEDED", "summary_markdown": "x", "new": 1}}, "errored": false,'
        b' "tests_passing_before": false, "tests_passing_after": true, "summary_markdown": "s",'
        b' "test_runs": [{"run_name": "r", "description_markdown": "d"}],'
        b' "escalations": [{"kind": "SHARED_PATTERN", "title": "t"}], "unknown": [1]}'
    )
    assert outcome.changes[ChangeKind.FIX_IMPL].status is ChangeStatus.SUCCEEDED
    assert outcome.escalations[0].kind == EscalationKind.SHARED_PATTERN
    assert outcome.model_extra == {"unknown": [1]}


def test_missing_keys_have_defaults_and_null_is_empty() -> None:
    outcome = parse_outcome(b'{"summary_markdown": null}')
    assert outcome.summary_markdown == ""
    assert not outcome.errored
    assert outcome.tests_passing_after is None


def test_what_is_said_beside_the_result_is_read_whatever_its_type() -> None:
    raw = b"""{"changes": null, "errored": null, "tests_passing_after": true, "summary_markdown": ["a", 1],
        "test_runs": ["twice", {"run_name": 2}], "escalations": {"kind": "UNCAUGHT_BUG", "title": "t"}}"""
    outcome = parse_outcome(raw)
    assert (outcome.changes, outcome.errored, outcome.summary_markdown) == ({}, False, '["a", 1]')
    assert [(run.run_name, run.description_markdown) for run in outcome.test_runs] == [("", "twice"), ("2", "")]
    assert [(found.kind, found.title) for found in outcome.escalations] == [("UNCAUGHT_BUG", "t")]
    integrated = b'{"impl_priority": null, "failed": null, "impl_commit_hashes": {"a": null, "b": "c"}}'
    assert parse_integrator_outcome(integrated).impl_commit_hashes == {"b": "c"}


def test_words_of_older_pipelines_are_read() -> None:
    outcome = parse_outcome(b'{"changes": {"FIX_TEST": {"status": "blocked"}}}')
    assert outcome.changes[ChangeKind.FIX_TEST].status is ChangeStatus.BLOCKED
    integrator = parse_integrator_outcome(b'{"failed": ["swarm/x/a", {"branch": "b", "reason": "conflict"}]}')
    assert [item.branch for item in integrator.failed] == ["swarm/x/a", "b"]


def test_escalations_in_the_words_of_mngr_are_read() -> None:
    raw = b"""{"escalations": [{"kind": "uncaught_bug", "description_markdown": "## The total is wrong\\n\\nOf two.",
        "locations": [{"path": "shop.py", "line": 3}, {"path": "b.py"}, {"path": "c.py", "line": "12"}, "d.py:7", 5,
                      {"path": null}, {"path": "e.py", "line": -1}]}]}"""
    (found,) = parse_outcome(raw).escalations
    assert (found.kind, found.title, found.detail_markdown) == ("UNCAUGHT_BUG", "The total is wrong", "Of two.")
    assert [str(location) for location in found.locations] == ["shop.py:3", "b.py", "c.py:12", "d.py:7", "e.py"]


@pytest.mark.parametrize(
    ("raw", "kind", "title"),
    [
        (b'{"kind": "NEXT_WORD", "title": "t"}', "NEXT_WORD", "t"),
        (b'{"kind": 7, "title": null, "description_markdown": "x"}', "BLOCKER", "x"),
        (b'"only words"', "BLOCKER", "only words"),
        (b"[1]", "BLOCKER", "an escalation that cannot be read"),
        (b'{"locations": "shop.py"}', "BLOCKER", ""),
    ],
)
def test_no_escalation_makes_an_outcome_unreadable(raw: bytes, kind: str, title: str) -> None:
    outcome = parse_outcome(b'{"tests_passing_after": true, "escalations": [' + raw + b"]}")
    assert outcome.tests_passing_after
    assert [(each.kind, each.title) for each in outcome.escalations] == [(kind, title)]


def test_changes_of_unknown_kinds_are_kept_apart() -> None:
    outcome = parse_outcome(
        b'{"changes": {"FIX_DOCS": {"status": "SUCCEEDED"}, "FIX_TEST": {"status": "SUCCEEDED"}, "FIX_IMPL": 3,'
        b' "IMPROVE_TEST": {"status": "HALF_DONE"}}}'
    )
    assert list(outcome.changes) == [ChangeKind.FIX_TEST]
    assert outcome.unknown_changes == ("FIX_DOCS SUCCEEDED", "FIX_IMPL 3", "IMPROVE_TEST HALF_DONE")


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"{", b"null", b'{"changes": ["BREAK_IT"]}', b"\xff\xfe", b"[" * 100_000],
)
def test_a_broken_outcome_is_one_reason(raw: bytes) -> None:
    with pytest.raises(BrokenReport) as caught:
        parse_outcome(raw)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=300))
def test_no_bytes_do_harm(raw: bytes) -> None:
    with contextlib.suppress(BrokenReport):
        assert not parse_outcome(raw).model_extra or raw.lstrip().startswith(b"{")


def test_a_huge_outcome_is_not_read() -> None:
    with pytest.raises(BrokenReport, match="at most"):
        parse_outcome(b" " * 2_000_001)

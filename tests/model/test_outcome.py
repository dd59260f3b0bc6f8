"""Parsing reports of agents, including invalid ones."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tui.model.pulled import ChangeKind, ChangeStatus, EscalationKind
from swarm_tui.model.report import InvalidReport, parse_integrator_report, parse_report


def test_parse_complete_report() -> None:
    outcome = parse_report(
        b'{"changes": {"FIX_IMPL": {"status": "SUCCEEDED", "summary_markdown": "x", "new": 1}}, "errored": false,'
        b' "tests_passing_before": false, "tests_passing_after": true, "summary_markdown": "s",'
        b' "test_runs": [{"run_name": "r", "description_markdown": "d"}],'
        b' "escalations": [{"kind": "SHARED_PATTERN", "title": "t"}], "unknown": [1]}'
    )
    assert outcome.changes[ChangeKind.FIX_IMPL].status is ChangeStatus.SUCCEEDED
    assert outcome.escalations[0].kind == EscalationKind.SHARED_PATTERN
    assert outcome.model_extra == {"unknown": [1]}


def test_missing_keys_and_nulls_get_defaults() -> None:
    outcome = parse_report(b'{"summary_markdown": null}')
    assert outcome.summary_markdown == ""
    assert not outcome.errored
    assert outcome.tests_passing_after is None


def test_extra_fields_of_any_type_are_read() -> None:
    raw = b"""{"changes": null, "errored": null, "tests_passing_after": true, "summary_markdown": ["a", 1],
        "test_runs": ["twice", {"run_name": 2}], "escalations": {"kind": "UNCAUGHT_BUG", "title": "t"}}"""
    outcome = parse_report(raw)
    assert (outcome.changes, outcome.errored, outcome.summary_markdown) == ({}, False, '["a", 1]')
    assert [(run.run_name, run.description_markdown) for run in outcome.test_runs] == [("", "twice"), ("2", "")]
    assert [(found.kind, found.title) for found in outcome.escalations] == [("UNCAUGHT_BUG", "t")]
    integrated = b'{"impl_priority": null, "failed": null, "impl_commit_hashes": {"a": null, "b": "c"}}'
    assert parse_integrator_report(integrated).impl_commit_hashes == {"b": "c"}


def test_older_kinds_are_read() -> None:
    outcome = parse_report(b'{"changes": {"FIX_TEST": {"status": "blocked"}}}')
    assert outcome.changes[ChangeKind.FIX_TEST].status is ChangeStatus.BLOCKED
    integrator = parse_integrator_report(b'{"failed": ["swarm/x/a", {"branch": "b", "reason": "conflict"}]}')
    assert [item.branch for item in integrator.failed] == ["swarm/x/a", "b"]


def test_escalations_of_mngr_are_read() -> None:
    raw = b"""{"escalations": [{"kind": "uncaught_bug", "description_markdown": "## The total is wrong\\n\\nOf two.",
        "locations": [{"path": "shop.py", "line": 3}, {"path": "b.py"}, {"path": "c.py", "line": "12"}, "d.py:7", 5,
                      {"path": null}, {"path": "e.py", "line": -1}]}]}"""
    (found,) = parse_report(raw).escalations
    assert (found.kind, found.title, found.detail_markdown) == ("UNCAUGHT_BUG", "The total is wrong", "Of two.")
    assert [str(location) for location in found.locations] == ["shop.py:3", "b.py", "c.py:12", "d.py:7", "e.py"]


@pytest.mark.parametrize(
    ("raw", "kind", "title"),
    [
        (b'{"kind": "NEXT_WORD", "title": "t"}', "NEXT_WORD", "t"),
        (b'{"kind": 7, "title": null, "description_markdown": "x"}', "BLOCKER", "x"),
        (b'"only words"', "BLOCKER", "only words"),
        (b"[1]", "BLOCKER", "invalid escalation"),
        (b'{"locations": "shop.py"}', "BLOCKER", ""),
    ],
)
def test_invalid_escalation_does_not_invalidate_report(raw: bytes, kind: str, title: str) -> None:
    outcome = parse_report(b'{"tests_passing_after": true, "escalations": [' + raw + b"]}")
    assert outcome.tests_passing_after
    assert [(each.kind, each.title) for each in outcome.escalations] == [(kind, title)]


def test_changes_of_unknown_kind_are_separate() -> None:
    outcome = parse_report(
        b'{"changes": {"FIX_DOCS": {"status": "SUCCEEDED"}, "FIX_TEST": {"status": "SUCCEEDED"}, "FIX_IMPL": 3,'
        b' "IMPROVE_TEST": {"status": "HALF_DONE"}}}'
    )
    assert list(outcome.changes) == [ChangeKind.FIX_TEST]
    assert outcome.unknown_changes == ("FIX_DOCS SUCCEEDED", "FIX_IMPL 3", "IMPROVE_TEST HALF_DONE")


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"{", b"null", b'{"changes": ["BREAK_IT"]}', b"\xff\xfe", b"[" * 100_000],
)
def test_invalid_report_has_one_reason(raw: bytes) -> None:
    with pytest.raises(InvalidReport) as caught:
        parse_report(raw)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "summary"),
    [
        (b'{"tests_passing_after": true, "summary_markdown": "a\\ud800b"}', "a\ufffdb"),
        (b'{"tests_passing_after": true, "summary_markdown": "a\xffb"}', "a\ufffdb"),
        (b'\xef\xbb\xbf{"tests_passing_after": true, "summary_markdown": "ab"}', "ab"),
        (b'{"tests_passing_after": true, "summary_markdown": ' + b"9" * 5_000 + b"}", ""),
        (b'{"tests_passing_after": true, "\\udfff": [{"deep": ' + b"9" * 5_000 + b"}]}", ""),
        (b'{"tests_passing_after": true, "escalations": [{"locations": [{"line": ' + b"9" * 5_000 + b"}]}]}", ""),
    ],
)
def test_invalid_value_affects_only_itself(raw: bytes, summary: str) -> None:
    outcome = parse_report(raw)
    assert (outcome.tests_passing_after, outcome.summary_markdown) == (True, summary)
    assert outcome.model_dump_json().encode()


@given(st.binary(max_size=300))
def test_any_bytes_raise_only_invalid_report(raw: bytes) -> None:
    with contextlib.suppress(InvalidReport):
        assert not parse_report(raw).model_extra or raw.lstrip().startswith(b"{")


def test_too_large_report_is_refused() -> None:
    with pytest.raises(InvalidReport, match="larger than 2,000,000 bytes"):
        parse_report(b" " * 2_000_001)

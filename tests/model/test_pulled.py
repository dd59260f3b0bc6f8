"""Pulled work contains the whole report, truncated and safe to print."""

from swarm_tui.model.pulled import ChangeKind, Escalation, EscalationKind, PulledChange, PulledWork
from swarm_tui.model.report import AgentReport, report_of

LONG = "\x1b[31m" + "x" * 9_000


def test_pulled_report_is_truncated_and_safe() -> None:
    outcome = AgentReport.model_validate(
        {
            "tests_passing_before": False,
            "tests_passing_after": True,
            "summary_markdown": LONG,
            "changes": {
                "FIX_IMPL": {"status": "SUCCEEDED", "summary_markdown": "two\nlines"},
                "FIX_TEST": {"status": "FAILED", "summary_markdown": LONG},
            },
            "escalations": [{"kind": "HARD_TO_USE", "title": "t\nu", "detail_markdown": LONG}] * 21,
        }
    )
    assert report_of(outcome, {ChangeKind.FIX_IMPL: "c", None: "d"}, end="timeout", tip="c", has_uncommitted=True) == (
        PulledWork(
            end="timeout",
            summary="x" * 7_995,
            passing_before=False,
            passing_after=True,
            changes=(
                PulledChange(kind="FIX_IMPL", status="SUCCEEDED", summary="two\nlines", commit="c"),
                PulledChange(kind="FIX_TEST", status="FAILED", summary="x" * 7_995),
            ),
            escalations=(Escalation(kind=EscalationKind.HARD_TO_USE, title="t u", detail_markdown="x" * 7_995),) * 20,
            tip="c",
            has_uncommitted=True,
        )
    )


def test_pulled_report_without_agent_report_is_errored() -> None:
    report = report_of(AgentReport(errored=True), {}, end="crash", tip="", has_uncommitted=False)
    assert report == PulledWork(end="crash", errored=True)

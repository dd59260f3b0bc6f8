"""What is kept of an outcome: all of it, shortened and harmless."""

from swarm_tui.model.harvest import HarvestedChange, HarvestReport, report_of
from swarm_tui.model.outcome import ChangeKind, Escalation, EscalationKind, Outcome

LONG = "\x1b[31m" + "x" * 9_000


def test_everything_that_was_reported_is_in_the_report_shortened_and_harmless() -> None:
    outcome = Outcome.model_validate(
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
        HarvestReport(
            end="timeout",
            summary="x" * 7_995,
            passing_before=False,
            passing_after=True,
            changes=(
                HarvestedChange(kind="FIX_IMPL", status="SUCCEEDED", summary="two\nlines", commit="c"),
                HarvestedChange(kind="FIX_TEST", status="FAILED", summary="x" * 7_995),
            ),
            escalations=(Escalation(kind=EscalationKind.HARD_TO_USE, title="t u", detail_markdown="x" * 7_995),) * 20,
            tip="c",
            has_uncommitted=True,
        )
    )


def test_without_an_outcome_the_report_says_that_it_failed() -> None:
    report = report_of(Outcome(errored=True), {}, end="crash", tip="", has_uncommitted=False)
    assert report == HarvestReport(end="crash", errored=True)

"""From what an agent handed in to its result: first that fits, and nothing believed that can be checked."""

from __future__ import annotations

import itertools

import pytest

from swarm_tui.agents.judging import CommitSummary, End, Evidence, judge
from swarm_tui.model.outcome import Outcome
from swarm_tui.model.state import Try
from swarm_tui.model.states import Result

IMPL = CommitSummary("1" * 40, "[FIX_IMPL] Keep the exit code")
TEST = CommitSummary("2" * 40, "[FIX_TEST] Expect it")


def outcome(**fields: object) -> Outcome:
    return Outcome.model_validate({"tests_passing_before": False, "tests_passing_after": True} | fields)


def change(status: str, summary: str = "") -> dict[str, str]:
    return {"status": status, "summary_markdown": summary}


GREEN = Try(1, True, 0.1, 0.0, outcome="passed")
RED = Try(1, False, 0.1, 0.0, "assert 1 == 2", "failed")
SKIPPED = Try(1, False, 0.1, 0.0, "skipped: no such device", "skipped")
XFAILED = Try(1, True, 0.1, 0.0, "a known bug", "xfailed")
UNFINISHED = Try(1, None, 0.0, 0.0)
TRIES = (None, GREEN, RED, SKIPPED, XFAILED, UNFINISHED)

BLOCKER = [{"kind": "BLOCKER", "title": "No network", "detail_markdown": ""}]


def escalated(kind: str) -> list[dict[str, str]]:
    return [{"kind": kind, "description_markdown": f"{kind} it is"}]


@pytest.mark.parametrize(
    ("evidence", "result", "reason"),
    [
        (Evidence(End.TIMEOUT), Result.FAILED, "time was over"),
        (Evidence(End.CRASH), Result.FAILED, "process ended"),
        (Evidence(End.NO_ANSWER), Result.BLOCKED, "no answer"),
        (Evidence(End.ARCHIVE, problem="its archive is broken: x"), Result.FAILED, "its archive is broken: x"),
        (Evidence(End.ARCHIVE, outcome(errored=True, summary_markdown="No disk")), Result.FAILED, "No disk"),
        (Evidence(End.ARCHIVE, outcome()), Result.CLEAN, "pytest's own report of it was not seen"),
        (Evidence(End.ARCHIVE, outcome(), last_try=GREEN), Result.CLEAN, ""),
        (Evidence(End.ARCHIVE, outcome(), last_try=GREEN._replace(reruns=2)), Result.CLEAN, "run again (2 times)"),
        (Evidence(End.ARCHIVE, outcome(), last_try=XFAILED), Result.CLEAN, "as it is expected to: a known bug"),
        (Evidence(End.ARCHIVE, outcome(), last_try=SKIPPED), Result.SKIPPED, "skipped: no such device"),
        (
            Evidence(End.ARCHIVE, outcome(tests_passing_after=False), last_try=SKIPPED),
            Result.SKIPPED,
            "skipped: no such device",
        ),
        (
            Evidence(End.ARCHIVE, outcome(changes={"FIX_IMPL": change("SUCCEEDED")}), commits=[IMPL], last_try=SKIPPED),
            Result.UNRESOLVED,
            "was skipped: no such device",
        ),
        (Evidence(End.ARCHIVE, outcome(), last_try=UNFINISHED), Result.UNRESOLVED, "did not come to its end"),
        (
            Evidence(
                End.ARCHIVE,
                outcome(tests_passing_after=None, changes={"FIX_IMPL": change("SUCCEEDED")}),
                commits=[IMPL],
                last_try=RED,
            ),
            Result.UNRESOLVED,
            "pytest's last run of it failed: assert 1 == 2",
        ),
        (
            Evidence(
                End.ARCHIVE,
                outcome(tests_passing_after=False, changes={"FIX_IMPL": change("SUCCEEDED")}),
                commits=[IMPL],
            ),
            Result.UNRESOLVED,
            "the test still fails",
        ),
        (
            Evidence(
                End.ARCHIVE,
                outcome(changes={"FIX_IMPL": change("SUCCEEDED")}),
                commits=[IMPL],
                last_try=GREEN,
                foreign_imports=["lib.core"],
            ),
            Result.UNRESOLVED,
            "ran against lib.core of your checkout",
        ),
        (Evidence(End.ARCHIVE, outcome(tests_passing_after=None), last_try=GREEN), Result.CLEAN, ""),
        (Evidence(End.ARCHIVE, outcome(tests_passing_after=False)), Result.UNRESOLVED, "does not pass"),
        (
            Evidence(End.ARCHIVE, outcome(changes={"FIX_IMPL": change("SUCCEEDED")}), commits=[IMPL]),
            Result.IMPL_FIX,
            "",
        ),
        (
            Evidence(
                End.ARCHIVE,
                outcome(changes={"FIX_TEST": change("SUCCEEDED"), "FIX_IMPL": change("FAILED")}),
                commits=[TEST],
            ),
            Result.TEST_FIX,
            "",
        ),
        (
            Evidence(End.ARCHIVE, outcome(changes={"FIX_TEST": change("SUCCEEDED")}), commits=[IMPL]),
            Result.UNRESOLVED,
            "no commit of that kind",
        ),
        (
            Evidence(
                End.ARCHIVE,
                outcome(changes={"FIX_IMPL": change("SUCCEEDED")}),
                commits_problem="the bundle is damaged",
            ),
            Result.UNRESOLVED,
            "the bundle is damaged",
        ),
        (
            Evidence(End.ARCHIVE, outcome(), last_try=RED),
            Result.UNRESOLVED,
            "pytest's last run of it failed: assert 1 == 2",
        ),
        (
            Evidence(End.ARCHIVE, outcome(tests_passing_before=True, tests_passing_after=False)),
            Result.UNRESOLVED,
            "passed before and fails now",
        ),
        (
            Evidence(End.ARCHIVE, outcome(tests_passing_before=True, tests_passing_after=None)),
            Result.UNRESOLVED,
            "the test does not pass",
        ),
        (
            Evidence(End.ARCHIVE, outcome(tests_passing_before=True, tests_passing_after=None), last_try=GREEN),
            Result.CLEAN,
            "",
        ),
        (
            Evidence(
                End.ARCHIVE,
                outcome(tests_passing_before=True, tests_passing_after=None, changes={"FIX_IMPL": change("SUCCEEDED")}),
                commits=[IMPL],
            ),
            Result.IMPL_FIX,
            "",
        ),
        (
            Evidence(
                End.ARCHIVE,
                outcome(
                    tests_passing_before=True, tests_passing_after=False, changes={"FIX_IMPL": change("SUCCEEDED")}
                ),
                commits=[IMPL],
            ),
            Result.UNRESOLVED,
            "passed before and fails now",
        ),
        (
            Evidence(
                End.ARCHIVE,
                outcome(tests_passing_before=False, tests_passing_after=False),
                last_try=RED,
            ),
            Result.UNRESOLVED,
            "the test does not pass",
        ),
        (Evidence(End.ARCHIVE, outcome(), commits=[IMPL]), Result.UNRESOLVED, "1 commits that its outcome does not"),
        (Evidence(End.ARCHIVE, outcome(escalations=BLOCKER)), Result.BLOCKED, "No network"),
        (
            Evidence(End.ARCHIVE, outcome(escalations=escalated("HARNESS_DEFECT"), tests_passing_after=False)),
            Result.BLOCKED,
            "HARNESS_DEFECT it is",
        ),
        (Evidence(End.ARCHIVE, outcome(escalations=escalated("HARNESS_DEFECT")), last_try=GREEN), Result.CLEAN, ""),
        (Evidence(End.ARCHIVE, outcome(escalations=escalated("UNCAUGHT_BUG")), last_try=GREEN), Result.CLEAN, ""),
        (Evidence(End.ARCHIVE, outcome(escalations=escalated("NEXT_WORD")), last_try=GREEN), Result.CLEAN, ""),
        (
            Evidence(End.ARCHIVE, outcome(escalations=escalated("FIX_DIRECTION_AMBIGUOUS"), tests_passing_after=False)),
            Result.UNRESOLVED,
            "FIX_DIRECTION_AMBIGUOUS it is",
        ),
        (
            Evidence(End.ARCHIVE, outcome(changes={"FIX_DOCS": change("SUCCEEDED")}), last_try=GREEN),
            Result.UNRESOLVED,
            "of an unknown kind: FIX_DOCS SUCCEEDED",
        ),
        (
            Evidence(
                End.ARCHIVE, outcome(escalations=BLOCKER, changes={"FIX_IMPL": change("SUCCEEDED")}), commits=[IMPL]
            ),
            Result.IMPL_FIX,
            "",
        ),
        (
            Evidence(End.ARCHIVE, outcome(changes={"FIX_IMPL": change("BLOCKED", "Needs a key")})),
            Result.BLOCKED,
            "Needs a key",
        ),
        (
            Evidence(End.ARCHIVE, outcome(changes={"FIX_IMPL": change("FAILED", "Too deep")})),
            Result.UNRESOLVED,
            "Too deep",
        ),
        (
            Evidence(
                End.ARCHIVE, outcome(changes={"FIX_IMPL": change("FAILED"), "FIX_TEST": change("FAILED", "Too deep")})
            ),
            Result.UNRESOLVED,
            "Too deep",
        ),
    ],
)
def test_the_first_rule_that_fits_decides(evidence: Evidence, result: Result, reason: str) -> None:
    judgement = judge(evidence)
    assert judgement.result is result
    assert reason in judgement.reason


def test_every_combination_has_a_result_and_a_bad_one_has_a_reason() -> None:
    statuses = (None, "SUCCEEDED", "FAILED", "BLOCKED")
    truths = (None, True, False)
    for impl, test, before, after, last in itertools.product(statuses, statuses, truths, truths, TRIES):
        changes = {kind: change(status) for kind, status in (("FIX_IMPL", impl), ("FIX_TEST", test)) if status}
        reported = outcome(changes=changes, tests_passing_before=before, tests_passing_after=after)
        judgement = judge(Evidence(End.ARCHIVE, reported, commits=[IMPL, TEST], last_try=last))
        is_good = judgement.result in (Result.CLEAN, Result.TEST_FIX, Result.IMPL_FIX)
        assert is_good or judgement.reason
        is_fix = judgement.result in (Result.TEST_FIX, Result.IMPL_FIX)
        if is_good and last is not None and (after or is_fix):
            assert last.passed, "pytest has the last word"
        assert not (is_fix and after is False), "a test that still fails was not fixed"
        assert (judgement.result is Result.SKIPPED) <= (last is SKIPPED)


def test_a_reason_is_one_harmless_line() -> None:
    said = "\x1b[31mred\x1b[0m\nand more" * 100
    reason = judge(Evidence(End.ARCHIVE, outcome(errored=True, summary_markdown=said))).reason
    assert "\x1b" not in reason
    assert "\n" not in reason
    assert len(reason) <= 300


@pytest.mark.parametrize(
    ("kind", "result"),
    [("IMPROVE_TEST", Result.TEST_FIX), ("FIX_TEST", Result.TEST_FIX), ("FIX_IMPL", Result.IMPL_FIX)],
)
def test_a_weaker_test_never_counts_as_better_and_says_why(kind: str, result: Result) -> None:
    made = outcome(changes={kind: change("SUCCEEDED")}, tests_passing_after=True)
    commits = [CommitSummary("c" * 40, f"[{kind}] x")]
    found = judge(Evidence(End.ARCHIVE, made, commits=commits, last_try=GREEN, weaker="skip added"))
    assert (found.result, found.reason) == (result, "its test became weaker: skip added")

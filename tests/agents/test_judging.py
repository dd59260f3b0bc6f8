"""Results of submitted work: the first matching rule decides, and claims are checked."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest

from swarm_tui.agents.judging import GONE, AgentEnd, CommitSummary, Evidence, JudgedResult, OwnRuns, judge, judge_claim
from swarm_tui.journal.work_events import Try
from swarm_tui.model.pulled import ClaimCheck
from swarm_tui.model.report import AgentReport
from swarm_tui.model.results import Result

IMPL = CommitSummary("1" * 40, "[FIX_IMPL] Keep the exit code")
TEST = CommitSummary("2" * 40, "[FIX_TEST] Expect it")


def outcome(**fields: object) -> AgentReport:
    return AgentReport.model_validate({"tests_passing_before": False, "tests_passing_after": True} | fields)


def change(status: str, summary: str = "") -> dict[str, str]:
    return {"status": status, "summary_markdown": summary}


GREEN = Try(1, True, 0.1, 0.0, outcome="passed")
RERUN = GREEN._replace(reruns=2)
RED = Try(1, False, 0.1, 0.0, "assert 1 == 2", "failed")
SKIPPED = Try(1, False, 0.1, 0.0, "skipped: no such device", "skipped")
XFAILED = Try(1, True, 0.1, 0.0, "a known bug", "xfailed")
UNFINISHED = Try(1, None, 0.0, 0.0)
TRIES = (None, GREEN, RED, SKIPPED, XFAILED, UNFINISHED)

BLOCKER = [{"kind": "BLOCKER", "title": "No network", "detail_markdown": ""}]


def escalated(kind: str) -> list[dict[str, str]]:
    return [{"kind": kind, "description_markdown": f"{kind} it is"}]


FIXED = {"FIX_IMPL": "SUCCEEDED"}


def submitted(
    last_try: Try | None = None,
    changes: Mapping[str, str] = MappingProxyType({}),
    *,
    commits: Sequence[CommitSummary] = (),
    commits_problem: str = "",
    foreign_imports: Sequence[str] = (),
    before: bool | None = False,
    after: bool | None = True,
    **fields: object,
) -> Evidence:
    """Return the evidence of an agent that reported changes, each with its status and a summary."""
    made = {kind: change(*status.split(" ", 1)) for kind, status in changes.items()}
    report = outcome(changes=made, tests_passing_before=before, tests_passing_after=after, **fields)
    return Evidence(
        AgentEnd.ARCHIVE,
        report,
        commits=commits,
        commits_problem=commits_problem,
        last_try=last_try,
        foreign_imports=foreign_imports,
    )


def fixed(last_try: Try | None = None, **more: Any) -> Evidence:
    """Return the evidence of an agent that reported a fix and committed it."""
    return submitted(last_try, FIXED, commits=[IMPL], **more)


@pytest.mark.parametrize(
    ("evidence", "result", "reason"),
    [
        (Evidence(AgentEnd.TIMEOUT), Result.ERROR, "within the time limit"),
        (Evidence(AgentEnd.CRASH), Result.ERROR, "process exited"),
        (Evidence(AgentEnd.NO_ANSWER), Result.BLOCKED, "no answer"),
        (Evidence(AgentEnd.ARCHIVE, problem="its archive is broken: x"), Result.ERROR, "its archive is broken: x"),
        (submitted(errored=True, summary_markdown="No disk"), Result.ERROR, "No disk"),
        (submitted(), Result.CLEAN, "pytest's own report is missing"),
        (submitted(GREEN), Result.CLEAN, ""),
        (submitted(RERUN), Result.CLEAN, "only after reruns (2)"),
        (submitted(XFAILED), Result.CLEAN, "as expected: a known bug"),
        (submitted(SKIPPED), Result.SKIPPED, "skipped: no such device"),
        (submitted(SKIPPED, after=False), Result.SKIPPED, "skipped: no such device"),
        (fixed(SKIPPED), Result.UNRESOLVED, "was skipped: no such device"),
        (submitted(UNFINISHED), Result.UNRESOLVED, "did not finish"),
        (fixed(RED, after=None), Result.UNRESOLVED, "pytest's last run of it failed: assert 1 == 2"),
        (fixed(after=False), Result.UNRESOLVED, "the test still fails"),
        (fixed(GREEN, foreign_imports=["lib.core"]), Result.UNRESOLVED, "imported lib.core from your checkout"),
        (submitted(GREEN, after=None), Result.CLEAN, ""),
        (submitted(after=False), Result.UNRESOLVED, "does not pass"),
        (fixed(), Result.IMPL_FIX, ""),
        (submitted(changes={"FIX_TEST": "SUCCEEDED", "FIX_IMPL": "FAILED"}, commits=[TEST]), Result.TEST_FIX, ""),
        (submitted(changes={"FIX_TEST": "SUCCEEDED"}, commits=[IMPL]), Result.UNRESOLVED, "no commit of that kind"),
        (submitted(changes=FIXED, commits_problem="the bundle is damaged"), Result.UNRESOLVED, "the bundle is damaged"),
        (submitted(RED), Result.UNRESOLVED, "pytest's last run of it failed: assert 1 == 2"),
        (submitted(before=True, after=False), Result.UNRESOLVED, "passed before and fails now"),
        (submitted(before=True, after=None), Result.UNRESOLVED, "the test does not pass"),
        (submitted(GREEN, before=True, after=None), Result.CLEAN, ""),
        (fixed(before=True, after=None), Result.IMPL_FIX, ""),
        (fixed(before=True, after=False), Result.UNRESOLVED, "passed before and fails now"),
        (submitted(RED, after=False), Result.UNRESOLVED, "the test does not pass"),
        (submitted(commits=[IMPL]), Result.UNRESOLVED, "1 commits that its report does not"),
        (submitted(escalations=BLOCKER), Result.BLOCKED, "No network"),
        (submitted(after=False, escalations=escalated("HARNESS_DEFECT")), Result.BLOCKED, "HARNESS_DEFECT it is"),
        (submitted(GREEN, escalations=escalated("HARNESS_DEFECT")), Result.CLEAN, ""),
        (submitted(GREEN, escalations=escalated("UNCAUGHT_BUG")), Result.CLEAN, ""),
        (submitted(GREEN, escalations=escalated("NEXT_WORD")), Result.CLEAN, ""),
        (
            submitted(after=False, escalations=escalated("FIX_DIRECTION_AMBIGUOUS")),
            Result.UNRESOLVED,
            "FIX_DIRECTION_AMBIGUOUS it is",
        ),
        (submitted(GREEN, {"FIX_DOCS": "SUCCEEDED"}), Result.UNRESOLVED, "of an unknown kind: FIX_DOCS SUCCEEDED"),
        (fixed(escalations=BLOCKER), Result.IMPL_FIX, ""),
        (submitted(changes={"FIX_IMPL": "BLOCKED Needs a key"}), Result.BLOCKED, "Needs a key"),
        (submitted(changes={"FIX_IMPL": "FAILED Too deep"}), Result.UNRESOLVED, "Too deep"),
        (submitted(changes={"FIX_IMPL": "FAILED", "FIX_TEST": "FAILED Too deep"}), Result.UNRESOLVED, "Too deep"),
    ],
)
def test_first_matching_rule_decides(evidence: Evidence, result: Result, reason: str) -> None:
    judgement = judge(evidence)
    assert judgement.result is result
    assert reason in judgement.reason


def test_every_combination_has_result_and_reason() -> None:
    statuses = (None, "SUCCEEDED", "FAILED", "BLOCKED")
    truths = (None, True, False)
    for impl, test, before, after, last in itertools.product(statuses, statuses, truths, truths, TRIES):
        changes = {kind: change(status) for kind, status in (("FIX_IMPL", impl), ("FIX_TEST", test)) if status}
        reported = outcome(changes=changes, tests_passing_before=before, tests_passing_after=after)
        judgement = judge(Evidence(AgentEnd.ARCHIVE, reported, commits=[IMPL, TEST], last_try=last))
        is_good = judgement.result in (Result.CLEAN, Result.TEST_FIX, Result.IMPL_FIX)
        assert is_good or judgement.reason
        is_fix = judgement.result in (Result.TEST_FIX, Result.IMPL_FIX)
        if is_good and last is not None and (after or is_fix):
            assert last.passed, "pytest has the last word"
        assert not (is_fix and after is False), "a test that still fails was not fixed"
        assert (judgement.result is Result.SKIPPED) <= (last is SKIPPED)


def test_reason_is_one_sanitized_line() -> None:
    said = "\x1b[31mred\x1b[0m\nand more" * 100
    reason = judge(Evidence(AgentEnd.ARCHIVE, outcome(errored=True, summary_markdown=said))).reason
    assert "\x1b" not in reason
    assert "\n" not in reason
    assert len(reason) <= 300


@pytest.mark.parametrize(
    ("kind", "result"),
    [("IMPROVE_TEST", Result.TEST_FIX), ("FIX_TEST", Result.TEST_FIX), ("FIX_IMPL", Result.IMPL_FIX)],
)
def test_weaker_test_never_counts_as_better(kind: str, result: Result) -> None:
    made = outcome(changes={kind: change("SUCCEEDED")}, tests_passing_after=True)
    commits = [CommitSummary("c" * 40, f"[{kind}] x")]
    found = judge(Evidence(AgentEnd.ARCHIVE, made, commits=commits, last_try=GREEN, weaker="skip added"))
    assert (found.result, found.reason) == (result, "its test became weaker: skip added")


def test_remarks_about_commits_follow_reason() -> None:
    left = "the agent left 1 commit on a stash, kept as refs/swarm-held/1/a/b"
    fixed = outcome(changes={"FIX_IMPL": change("SUCCEEDED")})
    lost = judge(Evidence(AgentEnd.ARCHIVE, fixed, remarks=[left]))
    assert lost.result is Result.UNRESOLVED
    assert lost.reason == f"it reports FIX_IMPL as succeeded, but there is no commit of that kind. {left}"
    clean = judge(Evidence(AgentEnd.ARCHIVE, outcome(), last_try=GREEN, remarks=[left]))
    assert (clean.result, clean.reason) == (Result.CLEAN, left)
    failed = judge(Evidence(AgentEnd.ARCHIVE, problem="x" * 400, remarks=[left]))
    assert failed.reason.endswith(left)


@pytest.mark.parametrize(
    ("claim", "runs", "result", "verdict", "reason"),
    [
        ("impl_fix", OwnRuns(("passed",)), Result.IMPL_FIX, "confirmed", ""),
        ("clean", OwnRuns(("passed",)), Result.CLEAN, "confirmed", ""),
        ("clean", OwnRuns(("skipped",), "no device"), Result.SKIPPED, "confirmed", "no device"),
        ("skipped", OwnRuns(("passed",)), Result.CLEAN, "confirmed", ""),
        (
            "clean",
            OwnRuns(("failed", "passed"), "a.py:1: assert 0"),
            Result.CLEAN,
            "flaky",
            "flaky: passed in 1 of 2 runs on the submitted commit; a.py:1: assert 0",
        ),
        (
            "impl_fix",
            OwnRuns(("failed",) * 3, "a.py:1: assert 0"),
            Result.UNRESOLVED,
            "refuted",
            "impl fix claimed, but the test fails on the submitted commit: a.py:1: assert 0",
        ),
        (
            "better",
            OwnRuns(("failed",) * 3, "x", has_uncommitted=True),
            Result.UNRESOLVED,
            "refuted",
            "fails on the submitted commit, which lacks the agent's uncommitted changes: x",
        ),
        (
            "impl_fix",
            OwnRuns(("skipped",), "not now"),
            Result.UNRESOLVED,
            "refuted",
            "impl fix claimed, but the test is skipped on the submitted commit: not now",
        ),
        (
            "clean",
            OwnRuns(("missing",), "SyntaxError"),
            Result.UNRESOLVED,
            "refuted",
            "clean claimed, but the test cannot be run on the submitted commit: SyntaxError",
        ),
        ("impl_fix", OwnRuns((GONE,), "it is gone"), Result.UNRESOLVED, "refuted", "cannot be run"),
        ("test_fix", OwnRuns((GONE,), "it is gone"), Result.CLAIMED, "unmeasured", "not measured: it is gone"),
        (
            "impl_fix",
            OwnRuns(("passed",), doubts=("changes conftest.py",)),
            Result.CLAIMED,
            "unmeasured",
            "impl fix; not measured: changes conftest.py",
        ),
        (
            "impl_fix",
            OwnRuns(("failed",) * 3, "x", doubts=("changes pluggy/a.py, loaded before",), is_other_code=True),
            Result.CLAIMED,
            "unmeasured",
            "impl fix; not measured: changes pluggy/a.py, loaded before",
        ),
        (
            "impl_fix",
            OwnRuns(impossible="no disk"),
            Result.CLAIMED,
            "impossible",
            "impl fix; swarm-tui cannot run the test: no disk",
        ),
    ],
)
def test_claim_is_judged_by_own_runs(claim: str, runs: OwnRuns, result: Result, verdict: str, reason: str) -> None:
    judgement, check = judge_claim(ClaimCheck(claim=claim), runs)
    assert (judgement.result, check.verdict, check.runs) == (result, verdict, runs.outcomes)
    assert reason in judgement.reason
    assert bool(reason) == bool(judgement.reason)


def test_verified_claim_keeps_what_is_known_of_the_commits() -> None:
    claim = ClaimCheck(claim="test_fix", claim_reason="its test became weaker: assertion removed")
    assert judge_claim(claim, OwnRuns(("passed",)))[0].reason == claim.claim_reason
    refuted, _ = judge_claim(claim, OwnRuns(("failed",), "x"))
    assert refuted.reason.endswith(f": x. {claim.claim_reason}")


def test_tries_decide_nothing_where_the_test_is_run_afterwards() -> None:
    evidence = Evidence(AgentEnd.ARCHIVE, outcome(), last_try=RED)
    assert judge(evidence).result is Result.UNRESOLVED
    assert judge(replace(evidence, is_verified=True)) == JudgedResult(Result.CLEAN)

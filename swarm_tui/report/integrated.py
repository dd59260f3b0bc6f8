"""Reads the integrated branch for the page: fixes by rank with verdicts, squashed and left-out commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from swarm_tui.errors import SwarmError
from swarm_tui.insight.costs import cost_of_each, cost_words
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.model.fixes import Fix, IntegratedBranch
from swarm_tui.model.outcome import Escalation, IntegratorOutcome
from swarm_tui.model.state import TestRecord
from swarm_tui.model.verdicts import Verdict
from swarm_tui.report.diffs import CommitDiffs
from swarm_tui.report.safe_text import safe_line, safe_lines
from swarm_tui.teeth.opening import teeth_of_sweep
from swarm_tui.triage.apply import applied_branch
from swarm_tui.triage.measurements import MeasuredEffect, read_measured_effects
from swarm_tui.triage.review import Review
from swarm_tui.triage.sweep_review import read_integrator_outcome, review_sweep

_WEAKER_NAMED: Final = 50
_HEADLINES: Final = {
    "none": "This sweep has not been integrated.",
    "integrating": "The integrator is at work.",
    "failed": "The integration failed; `swarm-tui integrate` repeats it.",
}


def read_integration(
    sweep: OpenedSweep, diffs: CommitDiffs, write_data: Callable[[str, object], None]
) -> tuple[dict[str, Any], tuple[Escalation, ...]]:
    """Return the section of the integrated branch, and what the integrator escalated."""
    integration = sweep.state.integration
    report, doubts = read_integrator_outcome(sweep.folder)
    outcome = report or IntegratorOutcome()
    section: dict[str, Any] = {
        "state": integration.state,
        "headline": _HEADLINES.get(integration.state, ""),
        "branch": safe_line(integration.branch or ""),
        "tip": integration.tip[:40],
        "detail": safe_lines(integration.detail, 4_000),
        "plan": "",
        "reviewed": "",
        "parts": [],
        "doubts": [safe_line(doubt) for doubt in doubts],
        "fixes": [],
        "squashed": None,
        "left_out": [
            {
                "branch": safe_line(left.branch),
                "commit": safe_line(left.commit, 64),
                "reason": safe_lines(left.reason, 2_000),
            }
            for left in outcome.failed[:500]
        ],
        "normalizations": [safe_lines(made.summary_markdown, 4_000) for made in outcome.normalizations[:100]],
    }
    if integration.state == "done" and not integration.branch:
        section["headline"] = "No agent's work qualified, so there is no integrated branch."
    if integration.tip:
        try:
            with review_sweep(sweep.folder) as review:
                _add_fixes(section, review, sweep, diffs, write_data)
        except SwarmError as error:
            section["doubts"].append(safe_line(str(error)))
    return section, outcome.escalations


def _add_fixes(
    section: dict[str, Any],
    review: Review,
    sweep: OpenedSweep,
    diffs: CommitDiffs,
    write_data: Callable[[str, object], None],
) -> None:
    records = list(sweep.state.tests())
    tests = {safe_line(record.branch): index for index, record in enumerate(records) if record.branch}
    measured = read_measured_effects(review.outcome)
    review.load_judged_hunks()
    section["fixes"] = [_fix(fix, review, measured.get(fix.id), tests, records) for fix in review.fixes]
    section["squashed"] = _squashed(review.branch, review.outcome)
    section["doubts"] += [
        safe_line(doubt) for doubt in review.branch.doubts if safe_line(doubt) not in section["doubts"]
    ]
    section["reviewed"] = safe_line(applied_branch(review, review.preview(), sweep.folder.name))
    section["parts"] = [_part(part, review, tests) for part in review.load_parts().parts[:2_000]]
    section["doubts"] += [safe_line(f"look at this file: {risk}") for risk in review.branch.risk_lines]
    weaker = [teeth for teeth in teeth_of_sweep(review, sweep).known() if teeth.is_weaker]
    section["doubts"] += [safe_line(f"weaker test: {teeth.test}: {teeth.words}") for teeth in weaker[:_WEAKER_NAMED]]
    section["plan"] = ", ".join(filter(None, (_plan(review), _cost_of_each(review, sweep))))
    for commit in (*(fix.id for fix in review.fixes), review.branch.squashed):
        if commit:
            write_data(f"commit-{commit}", diffs.diff(commit)._asdict())


def _plan(review: Review) -> str:
    preview = review.preview()
    if preview.is_clean:
        return f"{review.closing_line()}; the plan is clean"
    conflicts = ", ".join(conflict.commit[:8] for conflict in preview.conflicts)
    return safe_line(f"{review.closing_line()}; the plan conflicts at {conflicts}")


def _cost_of_each(review: Review, sweep: OpenedSweep) -> str:
    kept = sum(review.verdict(fix) is Verdict.KEEP for fix in review.fixes)
    return cost_of_each(sweep.state.spending, kept, len(review.fixes))


def _fix(
    fix: Fix,
    review: Review,
    measured: MeasuredEffect | None,
    tests: Mapping[str, int],
    records: Sequence[TestRecord],
) -> dict[str, Any]:
    verdict, line = review.verdict(fix), review.verdict_line(fix)
    out = [hunk for hunk in review.known_hunks(fix) if hunk.id in review.reverted]
    made_for = [tests[branch] for branch in map(safe_line, fix.branches) if branch in tests]
    return {
        "rank": fix.rank,
        "commit": fix.id,
        "title": safe_line(fix.title),
        "message": safe_lines(fix.commit.message, 4_000),
        "author": safe_line(fix.commit.author_name, 100),
        "verdict": verdict.value if verdict else "",
        "verdict_note": safe_line(" · ".join(part for part in (line.by, line.why) if part)) if line else "",
        "hunks_out": [safe_line(hunk.title) for hunk in out],
        "added": fix.added,
        "removed": fix.removed,
        "turned_green": len(measured.turned_green) if measured else 0,
        "broken": [safe_line(test) for test in measured.broken[:50]] if measured else [],
        "why": safe_line(measured.why) if measured else "",
        "tests": made_for,
        "cost": cost_words(records[index] for index in made_for),
    }


def _part(part: Fix, review: Review, tests: Mapping[str, int]) -> dict[str, Any]:
    verdict = review.verdict(part)
    return {
        "title": safe_line(part.title),
        "verdict": "out" if verdict is Verdict.REVERT else verdict.value if verdict else "",
        "tests": [tests[branch] for branch in map(safe_line, part.branches) if branch in tests],
    }


def _squashed(branch: IntegratedBranch, outcome: IntegratorOutcome) -> dict[str, Any] | None:
    commit = next((commit for commit in branch.commits if commit.id == branch.squashed), None)
    if commit is None:
        return None
    return {
        "commit": commit.id,
        "title": safe_line(commit.subject),
        "branches": [safe_line(name) for name in outcome.squashed_branches[:1_000]],
    }

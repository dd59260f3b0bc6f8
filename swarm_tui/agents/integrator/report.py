"""Composes the integrator's outcome: what is on the branch, in which order and why, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from swarm_tui.agents.integrator.branches import AgentCommit
from swarm_tui.agents.integrator.build_branch import BranchFixes, FixOnBranch, RejectedCommit
from swarm_tui.agents.integrator.inputs import IntegratorInputs
from swarm_tui.model.outcome import Escalation, EscalationKind, IntegratorOutcome, LeftOut, Normalization
from swarm_tui.model.states import Result
from swarm_tui.model.text import plain

TESTS_NAMED = 20


@dataclass(frozen=True, slots=True)
class FinalRun:
    """The sweep's tests, run once on the finished branch."""

    outcomes: Mapping[str, str]
    complaint: str = ""


@dataclass(frozen=True, slots=True)
class IntegrationResult:
    """The integrated branch and what became of each commit."""

    base: str
    start: str
    """The commit of all test and doc fixes; the base when there are none."""
    tip: str
    squashed: tuple[AgentCommit, ...]
    rejected: tuple[RejectedCommit, ...]
    fixes: BranchFixes
    refused: Mapping[str, str]
    """Branches that could not be read, with the reason."""
    final: FinalRun | None


def compose_outcome(inputs: IntegratorInputs, made: IntegrationResult) -> IntegratorOutcome:
    """Return the outcome in the form that every integrator uses, with the ranking's reasons beside it."""
    picked = sorted(made.fixes.picked, key=lambda entry: entry.ranked.rank)
    left_out = [LeftOut(branch=entry.branch, reason=entry.reason) for entry in inputs.not_taken]
    left_out += [LeftOut(branch=branch, reason=reason) for branch, reason in made.refused.items()]
    left_out += [
        LeftOut(branch=entry.commit.source.branch, commit=entry.commit.commit, reason=entry.reason)
        for entry in made.rejected
    ]
    left_out += [
        LeftOut(branch=branch, commit=entry.fix.chosen.commit, reason=f"{entry.fix.chosen.subject!r} {reason}")
        for entry, reason in made.fixes.left_out
        for branch in entry.fix.branches
    ]
    extra: dict[str, Any] = {
        "by": "builtin",
        "ranking": [_ranking_entry(rank, entry) for rank, entry in enumerate(picked, 1)],
        "final_run": _final_entry(made.final),
        "squashed_commits": [{"branch": commit.source.branch, "commit": commit.commit} for commit in made.squashed],
    }
    return IntegratorOutcome(
        squashed_branches=tuple(dict.fromkeys(commit.source.branch for commit in made.squashed)),
        squashed_commit_hash=made.start if made.start != made.base else None,
        impl_priority=tuple(dict.fromkeys(branch for entry in picked for branch in entry.fix.branches)),
        impl_commit_hashes=_commits_by_branch(picked),
        failed=tuple(left_out),
        normalizations=tuple(_normalizations(made, picked)),
        escalations=tuple(_escalations(inputs, made)),
        **extra,
    )


def _commits_by_branch(picked: list[FixOnBranch]) -> dict[str, str]:
    """Map every branch folded into a fix to its commit; of an agent's several fixes the highest ranked counts."""
    found: dict[str, str] = {}
    for entry in picked:
        for branch in entry.fix.branches:
            found.setdefault(branch, entry.commit)
    return found


def _ranking_entry(rank: int, entry: FixOnBranch) -> dict[str, Any]:
    effect = entry.ranked.effect
    return {
        "rank": rank,
        "commit": entry.commit,
        "branches": list(entry.fix.branches),
        "agents": list(entry.fix.agents),
        "tests": list(entry.fix.tests),
        "turned_green": list(effect.turned_green),
        "broken": list(effect.broken),
        "is_measured": effect.is_measured,
        "why": entry.ranked.why,
    }


def _final_entry(final: FinalRun | None) -> dict[str, Any] | None:
    if final is None:
        return None
    failed = [test for test, result in final.outcomes.items() if result == "failed"]
    passed = sum(result == "passed" for result in final.outcomes.values())
    return {"passed": passed, "failed": failed, "complaint": final.complaint}


def _normalizations(made: IntegrationResult, picked: list[FixOnBranch]) -> list[Normalization]:
    notes = []
    commits = [*made.squashed, *(commit for entry in picked for commit in entry.fix.commits)]
    for commit in commits:
        if commit.classification.note:
            summary = f"commit {commit.commit[:8]} of {commit.source.agent} {commit.classification.note}"
            notes.append(Normalization(summary_markdown=summary))
    for entry in picked:
        if len(entry.fix.agents) > 1:
            names = ", ".join(entry.fix.agents)
            summary = (
                f"{len(entry.fix.agents)} agents made {entry.fix.why_same} ({names}): folded into {entry.commit[:8]}"
            )
            notes.append(Normalization(summary_markdown=summary))
    return notes


def broken_tests(
    inputs: IntegratorInputs, squashed: Sequence[AgentCommit], fixes: BranchFixes, final: FinalRun | None
) -> list[str]:
    """Return the tests that passed for their agents, whose work is on the branch, and do not pass there."""
    if final is None:
        return []
    on_branch = {branch for entry in fixes.picked for branch in entry.fix.branches}
    on_branch |= {commit.source.branch for commit in squashed}
    passing = {source.test for source in inputs.branches if source.branch in on_branch and source.is_passing_after}
    expected = passing | {test.test for test in inputs.tests if test.result == Result.CLEAN.value}
    return [test for test in sorted(expected) if final.outcomes.get(test) != "passed"]


def _escalations(inputs: IntegratorInputs, made: IntegrationResult) -> list[Escalation]:
    broken = broken_tests(inputs, made.squashed, made.fixes, made.final)
    if made.final is None or not broken:
        return []
    culprits = {test: entry.fix.chosen.subject for entry in made.fixes.picked for test in entry.ranked.effect.broken}
    lines = []
    for test in broken[:TESTS_NAMED]:
        by = f", broken by {culprits[test]!r}" if test in culprits else ""
        missing = "" if test in made.final.outcomes else ", which was not run"
        lines.append(f"* {plain(test, 300)}{by}{missing}")
    detail = "\n".join(lines)
    if made.final.complaint:
        detail += f"\n\npytest: {made.final.complaint}"
    title = f"{len(broken)} tests that passed for their agents do not pass on the integrated branch"
    if len(broken) == 1:
        title = "one test that passed for its agent does not pass on the integrated branch"
    return [Escalation(kind=EscalationKind.BLOCKER, title=title, detail_markdown=detail)]

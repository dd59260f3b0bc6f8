"""Ranks the fixes and composes the integrator's report: their order with reasons, and the work that was left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from swarm_tui.integrator.branches import AgentCommit
from swarm_tui.integrator.build import BranchFixes, FixTree, RejectedCommit
from swarm_tui.integrator.duplicates import DistinctFix
from swarm_tui.integrator.inputs import IntegratorInputs
from swarm_tui.integrator.tip import TipRun
from swarm_tui.model.formatting import counted, named
from swarm_tui.model.pulled import Escalation, EscalationKind, without_marks
from swarm_tui.model.report import IntegratorReport, LeftOut, Normalization
from swarm_tui.model.results import Result
from swarm_tui.model.text import plain
from swarm_tui.review.ranking import Effect, TipResults


def reported_effect(fix: DistinctFix, why_not: str) -> Effect:
    """Return the effect that the agents reported for a fix that was not measured."""
    green = tuple(dict.fromkeys(commit.source.test for commit in fix.commits if commit.source.is_passing_after))
    return Effect(turned_green=green, why_not=why_not)


def rank_fixes(fixes: Iterable[DistinctFix], effects: Mapping[str, Effect]) -> list[DistinctFix]:
    """Return the fixes, best first; `effects` are indexed by the chosen commit of a fix."""

    def sort_key(fix: DistinctFix) -> tuple[int, bool, int, int, str, str]:
        effect = effects[fix.chosen.id]
        # A measured effect ranks above the same effect that was only reported.
        return (
            -effect.net,
            not effect.is_measured,
            -len(fix.agents),
            fix.chosen.lines,
            fix.chosen.subject,
            fix.chosen.source.branch,
        )

    return sorted(fixes, key=sort_key)


def reason_for_rank(fix: DistinctFix, effect: Effect) -> str:
    """Return the reason for a rank as one line."""
    parts = [f"turns {counted(len(effect.turned_green), 'test')} green"]
    if not effect.is_measured:
        why = f": {effect.why_not}" if effect.why_not else ""
        parts = [f"not measured{why}", f"{counted(len(effect.turned_green), 'test')} green as its agents report"]
    if effect.broken:
        parts.append(f"breaks {len(effect.broken)}")
    if effect.flaky:
        parts.append("that was flaky" if len(effect.flaky) == 1 else f"{len(effect.flaky)} of them were flaky")
    if effect.builds_on:
        parts.append(f"builds on {without_marks(effect.builds_on)!r}")
    if len(fix.agents) > 1:
        parts.append(f"{len(fix.agents)} agents submitted it ({fix.why_same})")
    parts.append(counted(fix.chosen.lines, "line"))
    return ", ".join(parts)


TESTS_NAMED = 20


@dataclass(frozen=True, slots=True)
class IntegrationResult:
    """An integrated branch, the disposition of each agent's commit, and the test results at its tip."""

    base: str
    start: str
    """The commit with all test and doc fixes; the base if there are none."""
    tip: str
    squashed: tuple[AgentCommit, ...]
    rejected: tuple[RejectedCommit, ...]
    fixes: BranchFixes
    refused: Mapping[str, str]
    """Unreadable branches, with the reasons."""
    final: TipRun | None
    """None if measuring is disabled."""
    effects: Mapping[str, Effect]
    """The effect of each fix by its chosen commit."""
    markers: tuple[str, ...] = ()
    """Files with conflict markers."""
    by_integrator: Mapping[str, str] = field(default_factory=dict)
    """Changes that an integrating agent added, by commit."""

    @property
    def problems(self) -> list[str]:
        """Return the problems of the branch as sentences."""
        markers = [f"conflict markers on the integrated branch: {named(self.markers)}"] if self.markers else []
        return markers + (self.final.problems if self.final is not None else [])


def compose_outcome(inputs: IntegratorInputs, result: IntegrationResult) -> IntegratorReport:
    """Return the report in the common format of all integrators, including the reasons for the ranking."""
    on_branch = {entry.fix.chosen.id: entry for entry in result.fixes.picked}
    ranked = rank_fixes((entry.fix for entry in on_branch.values()), result.effects)
    picked = [on_branch[fix.chosen.id] for fix in ranked]
    left_out = [LeftOut(branch=entry.branch, reason=entry.reason) for entry in inputs.not_taken]
    left_out += [LeftOut(branch=branch, reason=reason) for branch, reason in result.refused.items()]
    left_out += [
        LeftOut(branch=entry.commit.source.branch, commit=entry.commit.id, reason=entry.reason)
        for entry in result.rejected
    ]
    left_out += [
        LeftOut(branch=branch, commit=fix.chosen.id, reason=f"{fix.chosen.subject!r} {reason}")
        for fix, reason in result.fixes.left_out
        for branch in fix.branches
    ]
    extra: dict[str, Any] = {
        "ranking": [
            _ranking_entry(rank, entry, result.effects[entry.fix.chosen.id]) for rank, entry in enumerate(picked, 1)
        ],
        "final_run": _final_entry(result.final),
        "problems": result.problems,
        "by_integrator": dict(result.by_integrator),
        "squashed_commits": [{"branch": commit.source.branch, "commit": commit.id} for commit in result.squashed],
    }
    return IntegratorReport(
        squashed_branches=tuple(dict.fromkeys(commit.source.branch for commit in result.squashed)),
        squashed_commit_hash=result.start if result.start != result.base else None,
        impl_priority=tuple(dict.fromkeys(branch for entry in picked for branch in entry.fix.branches)),
        impl_commit_hashes=_commits_by_branch(picked),
        failed=tuple(left_out),
        normalizations=tuple(_normalizations(result, picked)),
        escalations=tuple(_escalations(result)),
        **extra,
    )


def _commits_by_branch(picked: list[FixTree]) -> dict[str, str]:
    """Map the branches of each fix to its commit. For several fixes of one agent, the highest rank counts."""
    found: dict[str, str] = {}
    for entry in picked:
        for branch in entry.fix.branches:
            found.setdefault(branch, entry.commit)
    return found


def _ranking_entry(rank: int, entry: FixTree, effect: Effect) -> dict[str, Any]:
    fix = entry.fix
    known = {"commit": entry.commit, "title": fix.chosen.subject, "branches": fix.branches}
    fields = effect.model_copy(update=known | {"why": reason_for_rank(fix, effect)}).model_dump(mode="json")
    return {"rank": rank, "agents": list(fix.agents), "tests": list(fix.tests), **fields}


def _final_entry(final: TipRun | None) -> dict[str, Any] | None:
    if final is None:
        return None
    passed = sum(result == "passed" for result in final.outcomes.values())
    failed, skipped = (
        [test for test, result in final.outcomes.items() if result == word] for word in ("failed", "skipped")
    )
    results = TipResults.model_validate({**asdict(final), "passed": passed, "failed": failed, "skipped": skipped})
    return results.model_dump(mode="json")


def _normalizations(result: IntegrationResult, picked: list[FixTree]) -> list[Normalization]:
    notes = []
    commits = [*result.squashed, *(commit for entry in picked for commit in entry.fix.commits)]
    for commit in commits:
        if commit.classification.note:
            summary = f"commit {commit.id[:8]} of {commit.source.agent} {commit.classification.note}"
            notes.append(Normalization(summary_markdown=summary))
    for entry in picked:
        if len(entry.fix.agents) > 1:
            names = ", ".join(entry.fix.agents)
            summary = (
                f"{len(entry.fix.agents)} agents share {entry.fix.why_same} ({names}): folded into {entry.commit[:8]}"
            )
            notes.append(Normalization(summary_markdown=summary))
    return notes


def passed_before(inputs: IntegratorInputs, branches: Collection[str], left_out: Collection[str]) -> dict[str, str]:
    """Return the tests that passed for their agents, each with the commit that it passed on.

    Tests of an agent whose work is partly left out are excluded, because they may fail on the integrated branch.
    """
    whole = set(branches) - set(left_out)
    passed = {test.test: inputs.base for test in inputs.tests if test.result == Result.CLEAN.value}
    passed |= {
        source.test: source.tip for source in inputs.branches if source.branch in whole and source.is_passing_after
    }
    return passed


def _escalations(result: IntegrationResult) -> list[Escalation]:
    final = result.final
    if final is None or not final.regressed:
        return []
    fixes = [entry.fix.chosen for entry in result.fixes.picked]
    culprits = {test: fix.subject for fix in fixes for test in result.effects[fix.id].broken}
    lines = []
    for test in final.regressed[:TESTS_NAMED]:
        by = f", broken by {culprits[test]!r}" if test in culprits else ""
        missing = "" if test in final.outcomes else ", which pytest did not find"
        lines.append(f"* {plain(test, 300)}{by}{missing}")
    detail = "\n".join(lines)
    if final.complaint:
        detail += f"\n\npytest: {final.complaint}"
    count = counted(len(final.regressed), "test")
    title = f"{count} that passed before integration {'fails' if len(final.regressed) == 1 else 'fail'} after it"
    return [Escalation(kind=EscalationKind.BLOCKER, title=title, detail_markdown=detail)]

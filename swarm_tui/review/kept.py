"""Reads the kept fixes of a sweep from its folder, without a repository."""

from __future__ import annotations

import json

from swarm_tui.journal.compare import KeptFix
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LineFollower
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.pulled import ChangeKind
from swarm_tui.model.report import IntegratorReport
from swarm_tui.model.text import plain
from swarm_tui.review.open import read_integrator_outcome
from swarm_tui.review.ranking import Effect, read_measured_effects
from swarm_tui.review.verdicts import APPLIED_FILE, ReviewFolder, Verdict, VerdictStore, review_of_sweep


def kept_fixes(folder: SweepFolder, state: SweepState) -> tuple[KeptFix, ...]:
    """Return the fixes with the verdict keep. If the plan was applied, also return those without a verdict."""
    outcome, _ = read_integrator_outcome(folder)
    review = review_of_sweep(folder.root)
    verdicts = {line.commit: line.verdict for line in VerdictStore(review).lines}
    is_applied = _is_applied(review)
    records = {record.branch: record for record in state.tests() if record.branch}
    fixes = []
    for effect in _effects(outcome):
        verdict = verdicts.get(effect.commit, Verdict.CLEAR)
        if verdict is Verdict.KEEP or (is_applied and verdict is not Verdict.REVERT):
            made_by = [records[branch] for branch in effect.branches if branch in records]
            tests = effect.turned_green if effect.is_measured else ()
            tests = tests or tuple(record.test for record in made_by)
            fixes.append(KeptFix(effect.commit, effect.title or _title(made_by), tests, is_applied))
    return tuple(fixes)


def _effects(outcome: IntegratorReport | None) -> list[Effect]:
    """Return the measured effects of all fixes of a branch; for unmeasured fixes only their branches."""
    measured = read_measured_effects(outcome)
    branches: dict[str, list[str]] = {}
    for branch, commit in outcome.impl_commit_hashes.items() if outcome is not None else ():
        branches.setdefault(commit, []).append(branch)
    named = [Effect(commit=commit, branches=tuple(found)) for commit, found in branches.items()]
    return [*measured.values(), *(effect for effect in named if effect.commit not in measured)]


def _is_applied(review: ReviewFolder) -> bool:
    for root in review.roots:
        for _, line in LineFollower(root / APPLIED_FILE).read()[0]:
            try:
                if json.loads(line)["branch"]:
                    return True
            except (ValueError, KeyError, TypeError):
                continue
    return False


def _title(made_by: list[TestRecord]) -> str:
    """Return the summary of the first agent's report."""
    for record in made_by:
        for change in record.harvest.changes:
            if change.kind == ChangeKind.FIX_IMPL.value and change.summary.strip():
                return plain(change.summary.strip().partition("\n")[0], 160)
    return ""

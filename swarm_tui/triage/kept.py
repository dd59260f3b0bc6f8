"""The fixes of a sweep that a person has kept, read from its folder alone: no repository is needed."""

from __future__ import annotations

import json
from collections.abc import Iterator

from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.follow import LineFollower
from swarm_tui.model.comparison import KeptFix
from swarm_tui.model.outcome import ChangeKind
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.model.verdicts import Verdict
from swarm_tui.triage.store import APPLIED_FILE, VerdictStore, review_of_sweep
from swarm_tui.triage.sweep_review import read_integrator_outcome


def kept_fixes(folder: SweepFolder, state: SweepState) -> tuple[KeptFix, ...]:
    """Return the fixes with the verdict keep, and where the plan was applied also those without a verdict."""
    outcome, _ = read_integrator_outcome(folder)
    review = review_of_sweep(folder.root)
    verdicts = {line.commit: line.verdict for line in VerdictStore(review).lines}
    is_applied = any(_applied(line) for root in review.roots for _, line in LineFollower(root / APPLIED_FILE).read()[0])
    records = {record.branch: record for record in state.tests() if record.branch}
    made_by: dict[str, list[TestRecord]] = {}
    for branch, commit in outcome.impl_commit_hashes.items() if outcome is not None else ():
        made_by.setdefault(commit, []).extend(_record_of(branch, records))
    for commit, verdict in verdicts.items():
        if verdict is Verdict.KEEP:
            made_by.setdefault(commit, [])
    fixes = []
    for commit, makers in made_by.items():
        verdict = verdicts.get(commit, Verdict.CLEAR)
        if verdict is Verdict.KEEP or (is_applied and verdict is not Verdict.REVERT):
            fixes.append(KeptFix(commit, _title(makers), tuple(record.test for record in makers), is_applied))
    return tuple(fixes)


def _applied(line: bytes) -> bool:
    try:
        return bool(json.loads(line)["branch"])
    except (ValueError, KeyError, TypeError):
        return False


def _record_of(branch: str, records: dict[str, TestRecord]) -> Iterator[TestRecord]:
    # A branch with several fixes is named once for each, as `branch#2`.
    record = records.get(branch) or records.get(branch.partition("#")[0])
    if record is not None:
        yield record


def _title(makers: list[TestRecord]) -> str:
    """Return what the first of the agents says that it has fixed."""
    for record in makers:
        for change in record.harvest.changes:
            if change.kind == ChangeKind.FIX_IMPL.value and change.summary.strip():
                return plain(change.summary.strip().partition("\n")[0], 160)
    return ""

"""Fixes and their diffs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from swarm_tui.adapters.git import GitError, Repository, is_commit_id
from swarm_tui.adapters.git.history import DiffReader
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import SwarmError
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.commits import visible
from swarm_tui.model.masking import mask_secrets, safe_line, safe_lines
from swarm_tui.model.pulled import Escalation
from swarm_tui.model.report import IntegratorReport, LeftOut
from swarm_tui.money.forecast import cost_of_each, cost_words
from swarm_tui.review.apply import applied_branch, subject_without
from swarm_tui.review.changes import Change, Preview
from swarm_tui.review.open import read_integrator_outcome, review_sweep
from swarm_tui.review.ranking import Effect, read_measured_effects
from swarm_tui.review.review import Review
from swarm_tui.review.test_changes import is_taken
from swarm_tui.review.verdicts import Verdict
from swarm_tui.strength.review import strength_of_sweep

DIFF_SIZE_LIMIT: Final = 200_000


class CommitDiff(NamedTuple):
    """The diff of a commit; `note` is set if it is missing or cut."""

    text: str
    note: str = ""


class CommitDiffs:
    """The diffs of a repository, which may be missing, because the sweep may be from another machine."""

    def __init__(self, repository: Path) -> None:
        self.problem = ""
        self._repository: Repository | None = None
        self._space: ObjectSpace | None = None
        self._reader: DiffReader | None = None
        self._known: dict[str, CommitDiff] = {}
        try:
            self._repository = Repository.open(repository)
            self._space = ObjectSpace(self._repository)
            self._reader = DiffReader(self._space)
        except (SwarmError, OSError) as error:
            self.problem = f"no diffs: cannot open the repository ({error})"

    def diff(self, commit: str) -> CommitDiff:
        """Return the diff of a commit from its first parent."""
        if not is_commit_id(commit):
            return CommitDiff("", "no commit is known")
        if self._space is None or self._reader is None:
            return CommitDiff("", "the repository is not on this machine")
        if commit not in self._known:
            self._known[commit] = self._read(self._space, self._reader, commit)
        return self._known[commit]

    def _read(self, space: ObjectSpace, reader: DiffReader, commit: str) -> CommitDiff:
        try:
            new, parent = _tree_and_parent(space, commit)
            old = _tree_and_parent(space, parent)[0] if parent else space.write("tree", b"")
            raw, is_truncated = reader.raw_diff(old, new)
        except GitError:
            return CommitDiff("", f"commit {commit[:10]} is not in the repository")
        is_cut = is_truncated or len(raw) > DIFF_SIZE_LIMIT
        text = visible(raw[:DIFF_SIZE_LIMIT].decode("utf-8", "replace"))
        if is_cut:
            text = text[: text.rfind("\n") + 1]
        return CommitDiff(mask_secrets(text), "only the beginning: the diff is too large" if is_cut else "")

    def close(self) -> None:
        for part in (self._reader, self._space, self._repository):
            if part is not None:
                part.close()


def _tree_and_parent(space: ObjectSpace, commit: str) -> tuple[str, str]:
    kind, content = space.read(commit)
    if kind != "commit":
        raise GitError(f"invalid commit: {commit[:12]}")
    tree = parent = ""
    for line in content.split(b"\n\n", 1)[0].split(b"\n"):
        word, _, value = line.partition(b" ")
        if word == b"tree":
            tree = value.decode("ascii", "replace")
        elif word == b"parent" and not parent:
            parent = value.decode("ascii", "replace")
    return tree, parent


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
    outcome = report or IntegratorReport()
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
        "left_out": _left_out(outcome.failed),
        "dropped": {},
        "normalizations": [safe_lines(made.summary_markdown, 4_000) for made in outcome.normalizations[:100]],
    }
    if integration.state == "done" and not integration.branch:
        section["headline"] = "There is nothing to integrate, because no agent's work qualified."
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
    measured = read_measured_effects(review.outcome, review.branch.not_measured)
    review.load_judged_hunks()
    plan, fixes = review.preview(), (*review.fixes, *review.taken)
    strength = strength_of_sweep(review, sweep)
    weaker_tests = strength.sentences(fixes)
    section["fixes"] = [
        _fix(fix, review, measured.get(fix.id), tests, records, weaker_tests.get(fix.id, ())) for fix in fixes
    ]
    section["left_out"] = _left_out([left for left in review.outcome.failed if not is_taken(left, review.taken)])
    section["squashed"] = _squashed(review, plan)
    section["doubts"] += [
        safe_line(doubt) for doubt in review.branch.doubts if safe_line(doubt) not in section["doubts"]
    ]
    section["reviewed"] = safe_line(applied_branch(review, plan, sweep.folder.name))
    section["parts"] = [_part(part, review, tests) for part in review.load_parts().parts[:2_000]]
    section["doubts"] += [safe_line(f"check this commit: {risk}") for risk in review.branch.risk_lines]
    weaker = [found for found in strength.known() if found.is_weaker]
    section["doubts"] += [safe_line(f"weaker test: {found.test}: {found.words}") for found in weaker[:_WEAKER_NAMED]]
    section["plan"] = ", ".join(filter(None, (_plan(review), _cost_of_each(review, sweep))))
    section["dropped"] = _dropped(review, plan, measured, records)
    for commit in (*(fix.id for fix in fixes), review.branch.squashed):
        if commit:
            write_data(f"commit-{commit}", diffs.diff(commit)._asdict())


def _plan(review: Review) -> str:
    preview = review.preview()
    if preview.is_clean:
        return f"{review.closing_line()}; the plan has no conflicts"
    conflicts = ", ".join(conflict.commit[:8] for conflict in preview.conflicts)
    return safe_line(f"{review.closing_line()}; the plan conflicts in {conflicts}")


def _cost_of_each(review: Review, sweep: OpenedSweep) -> str:
    kept = sum(review.verdict(fix) is Verdict.KEEP for fix in review.fixes)
    return cost_of_each(sweep.state.spending, kept, len(review.fixes))


def _fix(
    fix: Change,
    review: Review,
    measured: Effect | None,
    tests: Mapping[str, int],
    records: Sequence[TestRecord],
    weaker: Sequence[str],
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
        "weaker": [safe_line(words) for words in weaker[:_WEAKER_NAMED]],
        "why": safe_line(measured.why) if measured else "",
        "origin": safe_line(f"{fix.origin}: {fix.by_integrator}") if fix.origin else "",
        "tests": made_for,
        "cost": cost_words(records[index] for index in made_for),
    }


def _part(part: Change, review: Review, tests: Mapping[str, int]) -> dict[str, Any]:
    verdict = review.verdict(part)
    return {
        "title": safe_line(part.title),
        "verdict": "out" if verdict is Verdict.REVERT else verdict.value if verdict else "",
        "tests": [tests[branch] for branch in map(safe_line, part.branches) if branch in tests],
    }


def _left_out(failed: Sequence[LeftOut]) -> list[dict[str, str]]:
    return [
        {
            "branch": safe_line(left.branch),
            "commit": safe_line(left.commit, 64),
            "reason": safe_lines(left.reason, 2_000),
        }
        for left in failed[:500]
    ]


def _dropped(
    review: Review, plan: Preview, measured: Mapping[str, Effect], records: Sequence[TestRecord]
) -> dict[int, str]:
    """Return the tests, by index, whose work the plan leaves out, each with a word for the reason."""
    reverted = [fix for fix in review.fixes if fix.id in plan.reverted]
    kept = [*(fix for fix in review.fixes if fix.id not in plan.reverted), *review.taken]
    parts_out = [part for part in review.known_parts if part.id in plan.left_out]
    kept += [part for part in review.known_parts if part.id not in plan.left_out]
    stay = {branch for fix in kept for branch in fix.branches}
    green = {test for fix in kept if fix.id in measured for test in measured[fix.id].turned_green}
    lost = {test for fix in reverted if fix.id in measured for test in measured[fix.id].turned_green} - green
    words = {branch: "left out in review" for part in parts_out for branch in part.branches}
    words |= {branch: "reverted in review" for fix in reverted for branch in fix.branches}
    return {
        index: words.get(record.branch, "reverted in review")
        for index, record in enumerate(records)
        if record.test in lost or (record.branch in words and record.branch not in stay)
    }


def _squashed(review: Review, plan: Preview) -> dict[str, Any] | None:
    branch, parts = review.branch, review.load_parts()
    commit = next((commit for commit in branch.commits if commit.id == branch.squashed), None)
    if commit is None:
        return None
    is_shorter = 0 < len(plan.left_out) < len(parts.parts)
    return {
        "commit": commit.id,
        "title": safe_line(subject_without(parts, plan.left_out) if is_shorter else commit.subject),
        "branches": [safe_line(name) for name in review.outcome.squashed_branches[:1_000]],
    }

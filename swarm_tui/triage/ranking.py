"""Finds the fixes among the commits of a branch and puts them in order. Pure: commits and reports in, fixes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from swarm_tui.model.commit_kinds import without_marks
from swarm_tui.model.fixes import FIX_PREFIX, Commit, Fix, IntegratedBranch
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.text import plain
from swarm_tui.triage.measurements import read_measured_effects

_SHORTEST_ID: Final = 7
_UNRANKED: Final = 1_000_000
_SQUASHED_PREFIXES: Final = ("[TEST/DOC]", "[IMPROVE_TEST]", "[FIX_TEST]", "[FIX_TUTORIAL]")


def rank_fixes(
    commits: Sequence[Commit],
    *,
    base: str,
    base_tree: str,
    outcome: IntegratorOutcome | None = None,
    agents: Mapping[str, str] | None = None,
    is_all: bool = False,
) -> IntegratedBranch:
    """Return the branch with its fixes: those that the integrator ranks, then the others in the order of the branch.

    `agents` maps each branch to the agent that made it; `is_all` makes every commit a fix.
    """
    report = outcome or IntegratorOutcome()
    branches_of, doubts = _branches_of_commits(report, commits)
    squashed = _find_commit(report.squashed_commit_hash, commits)
    if report.squashed_commit_hash and squashed is None:
        doubts.append(f"the commit of test and doc fixes {plain(report.squashed_commit_hash, 12)} is not on the branch")
    if squashed is None:
        squashed = next((c.id for c in commits if c.subject.lstrip().startswith(_SQUASHED_PREFIXES)), None)
    chosen = [
        (position, commit)
        for position, commit in enumerate(commits)
        if is_all or commit.id in branches_of or _is_fix(commit)
    ]
    if squashed is not None and not is_all:
        chosen = [(position, commit) for position, commit in chosen if commit.id != squashed]
    # The report can name only one fix of a branch; the ranking names all of them.
    ranking = read_measured_effects(report)
    makers = {commit: ranked.branches for commit, ranked in ranking.items()} | branches_of
    place_in_ranking = {commit: place for place, commit in enumerate(ranking)}
    priority = {branch: place for place, branch in enumerate(report.impl_priority)}

    def importance(item: tuple[int, Commit]) -> tuple[int, int]:
        position, commit = item
        places = (priority.get(branch, _UNRANKED) for branch in branches_of.get(commit.id, ()))
        return place_in_ranking.get(commit.id, min(places, default=_UNRANKED)), position

    fixes = tuple(
        _fix(commit, position, rank, makers.get(commit.id, ()), agents or {})
        for rank, (position, commit) in enumerate(sorted(chosen, key=importance), start=1)
    )
    tip, tip_tree = (commits[-1].id, commits[-1].tree) if commits else (base, base_tree)
    tests = next(
        (
            _fix(commit, place, 0, report.squashed_branches, agents or {})
            for place, commit in enumerate(commits)
            if commit.id == squashed and not is_all
        ),
        None,
    )
    return IntegratedBranch(base, base_tree, tip, tip_tree, tuple(commits), fixes, squashed, tests, tuple(doubts))


def _is_fix(commit: Commit) -> bool:
    return commit.subject.lstrip().startswith(FIX_PREFIX)


def _branches_of_commits(
    report: IntegratorOutcome, commits: Sequence[Commit]
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Return the branches that were folded into each commit, the most important first, and what does not fit."""
    doubts: list[str] = []
    found: dict[str, tuple[str, ...]] = {}
    for branch in dict.fromkeys((*report.impl_priority, *report.impl_commit_hashes)):
        claimed = report.impl_commit_hashes.get(branch)
        if claimed is None:
            doubts.append(f"{plain(branch, 80)} is ranked, but no commit is named for it")
            continue
        commit = _find_commit(claimed, commits)
        if commit is None:
            doubts.append(f"{plain(branch, 80)} is said to be {plain(claimed, 12)}, which is not on the branch")
            continue
        found[commit] = (*found.get(commit, ()), branch)
    return found, doubts


def _find_commit(claimed: str | None, commits: Sequence[Commit]) -> str | None:
    """Return the one commit that an agent means by a full or short id."""
    wanted = (claimed or "").strip().lower()
    if len(wanted) < _SHORTEST_ID:
        return None
    fitting = [commit.id for commit in commits if commit.id.startswith(wanted)]
    return fitting[0] if len(fitting) == 1 else None


def _fix(commit: Commit, position: int, rank: int, branches: tuple[str, ...], agents: Mapping[str, str]) -> Fix:
    title = plain(without_marks(commit.subject) if rank == 0 else commit.subject.lstrip().removeprefix(FIX_PREFIX), 300)
    makers = (agents.get(branch) or branch.rpartition("/")[2] for branch in branches)
    return Fix(
        commit=commit,
        position=position,
        rank=rank,
        title=title.strip() or "(no title)",
        branch=plain(branches[0], 200) if branches else "",
        branches=tuple(plain(branch, 200) for branch in branches),
        agents=tuple(dict.fromkeys(plain(maker, 200) for maker in makers)),
    )

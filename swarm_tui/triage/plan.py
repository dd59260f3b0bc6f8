"""What is known of a plan without git: which reverts need no merge, who may stand in their way, and what it came to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from swarm_tui.model.fixes import Commit, IntegratedBranch


def can_be_reverted_by_path(commit: Commit) -> bool:
    """Return whether a revert is exactly "its paths as they were before" wherever those paths are untouched since.

    It is when the commit only changes and adds files. To bring deleted files back, or files that became another type,
    is left to a real merge: git may see the deletion as half of a rename, or follow a folder that has moved since.
    """
    return bool(commit.changes) and all(change.status in ("A", "M") for change in commit.changes)


def later_commits_that_stay(branch: IntegratedBranch, commit: str, reverted: Collection[str]) -> tuple[Commit, ...]:
    """Return the commits after this one that the plan does not revert, oldest first."""
    position = next(place for place, known in enumerate(branch.commits) if known.id == commit)
    return tuple(later for later in branch.commits[position + 1 :] if later.id not in reverted)


def commits_changing(commits: Iterable[Commit], paths: Collection[str]) -> tuple[Commit, ...]:
    wanted = frozenset(paths)
    return tuple(commit for commit in commits if not wanted.isdisjoint(commit.paths))


def verdict_counts(verdicts: Mapping[str, str], fixes: Iterable[str]) -> tuple[int, int, int, int]:
    """Return how many of the fixes are kept, kept in part, reverted and open."""
    found = [verdicts.get(fix) for fix in fixes]
    kept, partly, reverted = (found.count(word) for word in ("keep", "partly", "revert"))
    return kept, partly, reverted, len(found) - kept - partly - reverted


def closing_line(verdicts: Mapping[str, str], fixes: Collection[str]) -> str:
    """Return the one line for scripts with which a review ends."""
    kept, partly, reverted, still_open = verdict_counts(verdicts, fixes)
    in_part = f", {partly} partly" if partly else ""
    return f"reviewed {kept + partly + reverted} of {len(fixes)}, {reverted} reverted{in_part}, {still_open} open"

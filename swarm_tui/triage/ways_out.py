"""Ways out of a conflict: the smallest sets of further reverts with which a plan builds, and the work by hand.

A revert conflicts because of later commits that stay and touch the same paths. So whatever builds reverts at least one
of them: the search tries each, then one more, until a plan is clean. That finds the smallest sets, for chains too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from swarm_tui.model.fixes import Conflict, Fix
from swarm_tui.triage.plan import later_commits_that_stay
from swarm_tui.triage.preview import Previewer, extend_until_clean
from swarm_tui.triage.review import Review

MOST_PREVIEWS: Final = 5_000
MOST_SECONDS: Final = 10.0
MOST_SETS: Final = 5
_CONFLICT: Final = re.compile(rb"^<{7,} .*?^>{7,} [^\n]*\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class WaysOut:
    """Which further reverts make a plan build."""

    sets: tuple[tuple[Fix, ...], ...] = ()
    """The smallest first; all are of one size, and the best ranked fixes are in the last."""
    is_exact: bool = True
    """Whether no smaller set builds; else the search was given up before all were tried."""
    previews: int = 0


@dataclass(frozen=True, slots=True)
class HandWork:
    """What resolving a conflict by hand would touch in one file."""

    path: str
    places: int
    """The places with conflict markers; 0 where the file as a whole is in question."""
    lines: int
    """The lines between these markers."""


def ways_out(review: Review, reverted: Collection[str], *, seconds: float = MOST_SECONDS) -> WaysOut:
    """Return the smallest sets of fixes to revert too so that this plan builds."""
    search = _Search(review, frozenset(reverted), time.monotonic() + seconds)
    return search.run()


class _Search:
    def __init__(self, review: Review, reverted: frozenset[str], deadline: float) -> None:
        self._review = review
        self._reverted = reverted
        self._deadline = deadline
        self._fixes = {fix.id: fix for fix in review.fixes}
        self._tried: set[frozenset[str]] = set()

    def run(self) -> WaysOut:
        level = [self._reverted]
        while level:
            found, following = list[frozenset[str]](), dict[frozenset[str], None]()
            for plan in level:
                if len(self._tried) >= MOST_PREVIEWS or time.monotonic() > self._deadline:
                    return self._given_up()
                self._tried.add(plan)
                preview = self._review.preview_of(plan)
                if preview.is_clean:
                    found.append(plan)
                    continue
                following |= dict.fromkeys(plan | {more} for more in self._needed_for(preview.conflicts, plan))
            if found:
                return self._answer(found, is_exact=True)
            level = list(following)
        return WaysOut(previews=len(self._tried))

    def _needed_for(self, conflicts: Sequence[Conflict], plan: frozenset[str]) -> list[str]:
        """Return the fixes of which one at least must be reverted too, for the conflict that leaves least choice."""
        choices = [self._possible(conflict, plan) for conflict in conflicts]
        return min(choices, key=len, default=[])

    def _possible(self, conflict: Conflict, plan: frozenset[str]) -> list[str]:
        branch = self._review.branch
        commit = next((each for each in branch.commits if each.id == conflict.commit), None)
        if commit is None:
            return [each for each in conflict.opponents if each in self._fixes]
        paths = commit.paths | frozenset(conflict.paths)
        later = later_commits_that_stay(branch, commit.id, plan)
        named = frozenset(conflict.opponents)
        found = [each.id for each in later if each.id in self._fixes and (each.id in named or each.paths & paths)]
        # Those that are known to conflict first: where the search is given up, they were tried.
        return sorted(found, key=lambda each: each not in named)

    def _given_up(self) -> WaysOut:
        """Return a set that builds, without what it does not need; it may not be the smallest."""
        grown = self._grown(self._review.previewer)
        if grown is None:
            return WaysOut(is_exact=False, previews=len(self._tried))
        for more in sorted(grown - self._reverted, key=lambda each: self._fixes[each].rank):
            if self._review.preview_of(grown - {more}).is_clean:
                grown -= {more}
        return self._answer([grown], is_exact=False)

    def _grown(self, previewer: Previewer) -> frozenset[str] | None:
        grown = extend_until_clean(previewer, self._reverted)
        return grown if grown is not None and grown - self._reverted <= self._fixes.keys() else None

    def _answer(self, plans: Sequence[frozenset[str]], *, is_exact: bool) -> WaysOut:
        sets = [
            tuple(sorted((self._fixes[more] for more in plan - self._reverted), key=lambda fix: fix.rank))
            for plan in plans
        ]
        # What is ranked last is given up first.
        sets.sort(key=lambda found: [-fix.rank for fix in found])
        return WaysOut(tuple(sets[:MOST_SETS]), is_exact, len(self._tried))


def hand_work(review: Review, commit: str, reverted: Collection[str]) -> tuple[HandWork, ...]:
    """Return what a person who resolves the conflict of this revert by hand would have to look at."""
    steps = {done.id: step for done, step in review.previewer.steps(reverted)}
    merge = steps[commit].merge if commit in steps else None
    if merge is None:
        return ()
    found = []
    for path in merge.conflict_paths:
        entry = review.space.entry(merge.tree, path) if merge.tree else None
        is_file = entry is not None and entry.mode.startswith("100")
        content = review.space.read(entry.id)[1] if entry is not None and is_file else b""
        places = _CONFLICT.findall(content)
        found.append(HandWork(path, len(places), sum(max(0, place.count(b"\n") - 3) for place in places)))
    return tuple(found)

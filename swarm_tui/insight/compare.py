"""Compares two sweeps: how each found the tests, and which of the kept fixes do not hold any more. Pure.

A sweep finds a test as its runs in fresh copies say, before any agent was launched; without these as the first try of
its agent says, and at last as its agent reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from swarm_tui.journal.fold import SweepState
from swarm_tui.model.baseline import Baseline
from swarm_tui.model.comparison import Comparison, FoundTest, KeptFix, SweepTotals
from swarm_tui.model.state import TestRecord

KINDS: Final = tuple(kind.value for kind in (Baseline.RED, Baseline.FLAKY, Baseline.CLASH, Baseline.GREEN, Baseline.SKIPPED))
"""What a test can become, what is worst first."""
BROKEN: Final = frozenset({Baseline.RED.value, Baseline.FLAKY.value})
_KIND_OF_TRY: Final = {"passed": Baseline.GREEN.value, "failed": Baseline.RED.value, "skipped": Baseline.SKIPPED.value}


def found_kind(record: TestRecord) -> str:
    """Return how a sweep found a test: green, red, flaky, clash, skipped, or "" where that is not known."""
    if record.baseline is not Baseline.UNKNOWN:
        return record.baseline.value
    first = next((made for made in record.tries if made.number == 1 and made.passed is not None), None)
    if first is not None:
        return _KIND_OF_TRY[first.word]
    passing = record.harvest.passing_before
    return "" if passing is None else Baseline.GREEN.value if passing else Baseline.RED.value


def totals_of(sweep: str, state: SweepState, kept: Iterable[KeptFix] = ()) -> SweepTotals:
    """Return a sweep in numbers."""
    found, results = Counter(map(found_kind, state.tests())), Counter(record.mark for record in state.tests())
    end, spent = state.ended_at or state.last_at, state.spending
    return SweepTotals(
        sweep=sweep,
        began=state.started_at,
        seconds=end - state.started_at if state.started_at is not None else None,
        tests=len(state.records),
        found={kind: found[kind] for kind in (*KINDS, "") if found[kind]},
        results=dict(sorted(results.items())),
        dollars=spent.known_dollars,
        has_unknown_price=spent.unpriced > 0,
        tokens=spent.tokens if spent.is_known else None,
        fixes=state.integration.fixes,
        kept=len(list(kept)),
    )


def compare_sweeps(
    before: tuple[str, SweepState], after: tuple[str, SweepState], kept: tuple[KeptFix, ...], kept_after: int = 0
) -> Comparison:
    """Compare two sweeps, each with its name; `kept` are the fixes that were kept in the earlier one."""
    old, new = before[1].records, after[1].records
    both = [FoundTest(test, found_kind(old[test]), found_kind(new[test])) for test in new if test in old]
    changed = [found for found in both if found.before and found.after and found.before != found.after]
    kinds = {found.test: found for found in both}
    broken = []
    for fix in kept:
        failing = tuple(kinds[test] for test in fix.tests if test in kinds and kinds[test].after in BROKEN)
        if failing:
            broken.append((fix, failing))
    return Comparison(
        before=totals_of(*before, kept),
        after=totals_of(*after)._replace(kept=kept_after),
        became={kind: found for kind in KINDS if (found := tuple(each for each in changed if each.after == kind))},
        new=tuple(FoundTest(test, "", found_kind(record)) for test, record in new.items() if test not in old),
        gone=tuple(FoundTest(test, found_kind(record), "") for test, record in old.items() if test not in new),
        broken_again=tuple(broken),
        unknown=sum(not (found.before and found.after) for found in both),
    )

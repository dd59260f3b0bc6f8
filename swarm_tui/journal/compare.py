"""The comparison of two sweeps: their tests, kept fixes and costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.formatting import counted, duration, money
from swarm_tui.model.results import MARKS, Baseline
from swarm_tui.model.text import plain


class KeptFix(NamedTuple):
    """A fix with the verdict keep."""

    commit: str
    title: str
    tests: tuple[str, ...]
    """The tests whose agents committed the fix."""
    is_applied: bool
    """Whether a branch with the fix was created by `apply`."""


class ComparedTest(NamedTuple):
    """One test with its baseline in both sweeps; "" if the baseline is unknown or the sweep does not have the test."""

    test: str
    before: str
    after: str


class SweepTotals(NamedTuple):
    """One sweep in numbers."""

    sweep: str
    began: float | None
    seconds: float | None
    tests: int
    found: dict[str, int]
    """The number of tests by baseline: green, red, flaky and so on."""
    results: dict[str, int]
    dollars: float | None
    has_unknown_price: bool
    tokens: int | None
    fixes: int
    kept: int


class SweepComparison(NamedTuple):
    """The differences between an earlier and a later sweep."""

    before: SweepTotals
    after: SweepTotals
    changed: dict[str, tuple[ComparedTest, ...]]
    """Tests in both sweeps with a different baseline, by their new baseline: green, red, flaky, clash, skipped."""
    new: tuple[ComparedTest, ...]
    gone: tuple[ComparedTest, ...]
    regressed: tuple[tuple[KeptFix, tuple[ComparedTest, ...]], ...]
    """Fixes kept in the earlier sweep, each with its tests that fail again in the later sweep."""
    unknown: int
    """The number of tests in both sweeps whose baseline is unknown in one of them."""


KINDS: Final = ("red", "flaky", "clash", "order", "green", "skipped")
"""The status of a test, worst first."""
BROKEN: Final = frozenset({Baseline.RED.value, Baseline.FLAKY.value})
_KIND_OF_TRY: Final = {"passed": Baseline.GREEN.value, "failed": Baseline.RED.value, "skipped": Baseline.SKIPPED.value}


def found_kind(record: TestRecord) -> str:
    """Return the status of a test at the start: green, red, flaky, clash, order, skipped, or "" if unknown."""
    if record.baseline is not Baseline.UNKNOWN:
        return record.baseline.value
    first = next((each for each in record.tries if each.number == 1 and each.passed is not None), None)
    if first is not None:
        return _KIND_OF_TRY[first.word]
    passing = record.pulled.passing_before
    return "" if passing is None else Baseline.GREEN.value if passing else Baseline.RED.value


def totals_of(sweep: str, state: SweepState, kept: Iterable[KeptFix] = ()) -> SweepTotals:
    """Return the totals of a sweep."""
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
) -> SweepComparison:
    """Compare two named sweeps; `kept` are the kept fixes of the earlier one."""
    old, new = before[1].records, after[1].records
    both = [ComparedTest(test, found_kind(old[test]), found_kind(new[test])) for test in new if test in old]
    changed = [found for found in both if found.before and found.after and found.before != found.after]
    kinds = {found.test: found for found in both}
    broken = []
    for fix in kept:
        failing = tuple(kinds[test] for test in fix.tests if test in kinds and kinds[test].after in BROKEN)
        if failing:
            broken.append((fix, failing))
    return SweepComparison(
        before=totals_of(*before, kept),
        after=totals_of(*after)._replace(kept=kept_after),
        changed={kind: found for kind in KINDS if (found := tuple(each for each in changed if each.after == kind))},
        new=tuple(ComparedTest(test, "", found_kind(record)) for test, record in new.items() if test not in old),
        gone=tuple(ComparedTest(test, found_kind(record), "") for test, record in old.items() if test not in new),
        regressed=tuple(broken),
        unknown=sum(not (found.before and found.after) for found in both),
    )


class ComparisonLine(NamedTuple):
    """One line of a comparison."""

    text: str
    role: str = ""
    test: str = ""
    """The test in this line, if any."""


_ROLES: Final = {"red": "error", "flaky": "warning", "clash": "warning", "green": "good", "skipped": "dim"}
_COLUMN: Final = 22


def comparison_lines(comparison: SweepComparison) -> list[ComparisonLine]:
    """Return a comparison as text: totals of both sweeps, kept fixes that are broken, and changed tests."""
    lines = [*_totals(comparison.before, comparison.after)]
    if comparison.regressed:
        lines.append(ComparisonLine(f"kept fixes whose tests fail again: {len(comparison.regressed)}", "error"))
    for fix, tests in comparison.regressed:
        about = f"{fix.commit[:9]}, {'applied' if fix.is_applied else 'kept'}"
        lines.append(ComparisonLine(f"  {plain(fix.title, 160) or 'a fix'} ({about})"))
        lines += [ComparisonLine(f"    {plain(each.test, 300)} is {each.after}", test=each.test) for each in tests]
    for kind, found in comparison.changed.items():
        lines += _listed(f"now {_words(kind)}", _ROLES[kind], found)
    lines += _listed("new", "strong", comparison.new)
    lines += _listed("removed", "strong", comparison.gone)
    if not (comparison.changed or comparison.new or comparison.gone or comparison.regressed):
        lines.append(ComparisonLine("no differences between tests", "dim"))
    if comparison.unknown:
        skipped = counted(comparison.unknown, "test")
        lines.append(ComparisonLine(f"not compared: {skipped} with unknown status in one of the sweeps", "dim"))
    return lines


def _words(kind: str) -> str:
    return {"clash": "in conflict", "order": "order-dependent", "": "unknown"}.get(kind, kind)


def _listed(heading: str, role: str, found: tuple[ComparedTest, ...]) -> list[ComparisonLine]:
    """Return a heading and a line for each test; empty without tests."""
    lines = [ComparisonLine(f"{heading}: {len(found)}", role)] if found else []
    for each in found:
        kinds = f"was {_words(each.before)}" if heading != "new" else _words(each.after)
        lines.append(ComparisonLine(f"  {plain(each.test, 300)} ({kinds})", test=each.test))
    return lines


def _totals(before: SweepTotals, after: SweepTotals) -> list[ComparisonLine]:
    rows = [("", before.sweep, after.sweep), ("tests", f"{before.tests:,}", f"{after.tests:,}")]
    for kind in (*KINDS, ""):
        if before.found.get(kind) or after.found.get(kind):
            first, second = (f"{totals.found.get(kind, 0):,}" for totals in (before, after))
            rows.append((f"start: {_words(kind)}", first, second))
    for mark in sorted({*before.results, *after.results}):
        rows.append((MARKS[mark].word, f"{before.results.get(mark, 0):,}", f"{after.results.get(mark, 0):,}"))
    rows += [
        ("fixes", _fixes(before), _fixes(after)),
        ("time", _span(before), _span(after)),
        ("cost", _cost(before), _cost(after)),
        ("tokens", _tokens(before), _tokens(after)),
    ]
    return [
        ComparisonLine(f"{name:{_COLUMN}}{first:{_COLUMN}}{second}".rstrip(), "" if name else "strong")
        for name, first, second in rows
    ]


def _fixes(totals: SweepTotals) -> str:
    return f"{totals.fixes}, {totals.kept} kept" if totals.kept else str(totals.fixes)


def _span(totals: SweepTotals) -> str:
    return duration(totals.seconds) if totals.seconds is not None else "not started"


def _cost(totals: SweepTotals) -> str:
    return money(totals.dollars) + ("+?" if totals.dollars is not None and totals.has_unknown_price else "")


def _tokens(totals: SweepTotals) -> str:
    return f"{totals.tokens:,}" if totals.tokens is not None else "?"

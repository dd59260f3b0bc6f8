"""`swarm-tui compare`: print the differences between two sweeps."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.progress import opened_with_progress
from swarm_tui.cli.status import rounded
from swarm_tui.cli.sweeps import chosen_sweep, repository_root
from swarm_tui.errors import UsageError
from swarm_tui.journal.compare import ComparedTest, SweepComparison, SweepTotals, compare_sweeps, comparison_lines
from swarm_tui.journal.folder import SweepFolder, list_sweeps

if TYPE_CHECKING:
    from swarm_tui.model.shapes import ComparedTestJson, ComparisonJson, TotalsJson

DESCRIPTION = """\
Compare two sweeps: tests that became green, red or flaky, new and removed tests, kept fixes whose tests fail again,
and the time and cost of both. The state of a test at the start of a sweep comes from the baseline, or from the first
try of its agent."""
EXAMPLES = """\
  swarm-tui compare                    compare the newest sweep with the one before it
  swarm-tui compare 20261117           compare the newest sweep with this one
  swarm-tui compare 20261117 20261118 --json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("before", nargs="?", metavar="EARLIER", help="an id, the beginning of one, or a folder")
    parser.add_argument("after", nargs="?", metavar="LATER", help="the same (default: the newest sweep)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    before, after = _chosen(arguments.before, arguments.after)
    comparison = compare_folders(before, after)
    if arguments.json:
        print(json.dumps(_shown(comparison), indent=1))
    else:
        print("\n".join(line.text for line in comparison_lines(comparison)))
    return 0


def _chosen(before: str | None, after: str | None) -> tuple[SweepFolder, SweepFolder]:
    later = chosen_sweep(after, Path.cwd())
    if before is not None:
        earlier = chosen_sweep(before, Path.cwd())
    else:
        sweeps = list_sweeps(repository_root(Path.cwd()))
        if len(sweeps) < 2:
            raise UsageError(
                "only one sweep in this repository", "name two, or two folders: `swarm-tui compare EARLIER LATER`"
            )
        earlier = sweeps[-2]
    if earlier.root.resolve() == later.root.resolve():
        raise UsageError(f"cannot compare {later.name} with itself", "run `swarm-tui list` to list the sweeps")
    return earlier, later


def compare_folders(before: SweepFolder, after: SweepFolder) -> SweepComparison:
    """Compare the sweeps in two folders."""
    from swarm_tui.review.open import kept_fixes

    first, second = opened_with_progress(before).state, opened_with_progress(after).state
    kept, kept_after = kept_fixes(before, first), kept_fixes(after, second)
    return compare_sweeps((before.name, first), (after.name, second), kept, len(kept_after))


def _shown(comparison: SweepComparison) -> ComparisonJson:
    return {
        "before": _shown_totals(comparison.before),
        "after": _shown_totals(comparison.after),
        "changed": {kind: [_shown_test(each) for each in found] for kind, found in comparison.changed.items()},
        "new": [_shown_test(each) for each in comparison.new],
        "gone": [_shown_test(each) for each in comparison.gone],
        "regressed": [
            {
                "commit": fix.commit,
                "title": fix.title,
                "is_applied": fix.is_applied,
                "tests": [_shown_test(each) for each in tests],
            }
            for fix, tests in comparison.regressed
        ],
        "not_compared": comparison.unknown,
    }


def _shown_test(found: ComparedTest) -> ComparedTestJson:
    return {"test": found.test, "before": found.before or None, "after": found.after or None}


def _shown_totals(totals: SweepTotals) -> TotalsJson:
    return {
        "sweep": totals.sweep,
        "began": totals.began,
        "seconds": totals.seconds,
        "tests": totals.tests,
        "found": {kind or "unknown": count for kind, count in totals.found.items()},
        "counts": totals.results,
        "dollars": rounded(totals.dollars),
        "has_unknown_price": totals.has_unknown_price,
        "tokens": totals.tokens,
        "fixes": totals.fixes,
        "kept_fixes": totals.kept,
    }

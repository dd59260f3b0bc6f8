"""Searches for a random history whose preview differs from `git revert`: `python -m tests.review.search`.

A history that is found is minimized and stored in found_histories.json, and every later test run tries it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from swarm_tui.adapters.scratch import memory_folder
from tests.review.found import FoundHistory, add_found_history
from tests.review.histories import Edit, directory_renames, histories
from tests.review.test_preview import check_law

ROUND = 100
"""Number of histories between two checks of the time."""


def search_once(number: int, examples: int) -> FoundHistory | None:
    """Return the smallest of some random histories that violates the invariant, or None."""
    broken: FoundHistory | None = None

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(histories, st.sets(st.integers(0, 6), max_size=5), directory_renames)
    def law_holds(history: list[list[Edit]], reverted: set[int], setting: str) -> None:
        nonlocal broken
        try:
            check_law(history, reverted, setting)
        except AssertionError:
            # The last failing one is the smallest: hypothesis repeats it at the end.
            broken = FoundHistory(history, sorted(reverted), setting)
            raise

    try:
        law_holds()
    except AssertionError:
        return broken
    return None


def main() -> int:
    """Search until the time is over; exit with 1 if a history was found."""
    options = argparse.ArgumentParser(prog="python -m tests.review.search", description=__doc__)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, default=random.randrange(2**32), help="where to begin; printed")
    chosen = options.parse_args()
    # A third of the time is spent on removing small repositories from a disk.
    tempfile.tempdir = str(memory_folder())
    deadline = time.monotonic() + chosen.minutes * 60
    number, found = chosen.seed, 0
    print(f"begins with --seed {number}", flush=True)
    while time.monotonic() < deadline:
        broken = search_once(number, ROUND)
        number += 1
        if broken is not None and add_found_history(broken):
            found += 1
            print(f"broken by {broken}", flush=True)
    print(f"{(number - chosen.seed) * ROUND} histories tried, {found} break the law")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""`swarm-tui fixes --teeth`: measures the tests that a branch changes, and prints what they notice no more."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.model.progress import Progress
    from swarm_tui.model.teeth import TestTeeth
    from swarm_tui.triage.review import Review


def print_teeth(review: Review, folder: SweepFolder | None, *, is_json: bool) -> int:
    """Measure what was not measured yet, print all changed tests, and return 1 when one of them became weaker."""
    from swarm_tui.teeth.opening import teeth_of_review

    teeth, claims = teeth_of_review(review, folder)
    show = _show_progress if sys.stderr.isatty() else _say_nothing
    found = asyncio.run(teeth.measure(show))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    if is_json:
        print(json.dumps([teeth_as_json(each, claims.get(each.test, "")) for each in found], indent=2))
    else:
        for row in teeth_as_list(found, claims):
            print(row)
    return 1 if any(each.is_weaker for each in found) else 0


def _show_progress(progress: Progress) -> None:
    print(f"\r\x1b[K{progress.words}", end="", file=sys.stderr, flush=True)


def _say_nothing(progress: Progress) -> None:
    return


def teeth_as_json(teeth: TestTeeth, claim: str) -> dict[str, Any]:
    """Return a changed test as it is printed with --json."""
    return {
        **teeth.model_dump(mode="json"),
        "is_weaker": teeth.is_weaker,
        "is_toothless": teeth.is_toothless,
        "words": teeth.words,
        "claim": claim,
    }


def teeth_as_list(found: list[TestTeeth], claims: dict[str, str]) -> list[str]:
    """Return the changed tests as lines: what is known of each, and beside weaker ones what their agents say."""
    rows = []
    for teeth in found:
        sign = "▼" if teeth.is_weaker else "○" if teeth.is_toothless else " "
        rows.append(f"{sign} {plain(teeth.test)}  {teeth.words or 'not weaker'}")
        if not (teeth.is_weaker or teeth.is_toothless):
            continue
        for mark in teeth.signs:
            place = f"line {mark.line}" if mark.line else "gone"
            rows.append(f"    {place}: {' -> '.join(part for part in (mark.before, mark.after) if part)}")
        rows += [f"    no more noticed: {fault}" for fault in teeth.missed[:5]]
        claim = claims.get(teeth.test, "")
        rows += [f"    its agent says: {plain(claim, 200)}"] if claim else []
    weaker = sum(teeth.is_weaker for teeth in found)
    rows.append(f"{len(found)} tests changed or new, {weaker} weaker")
    return rows

"""Evaluates how well weakened tests are detected, and at what cost: `python -m tests.strength.judge`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from swarm_tui.strength.review import ReviewStrength
from swarm_tui.testing.settings import TestSettings
from tests.strength.conftest import make_project, open_review
from tests.strength.edits import EDITS


async def judge(folder: Path) -> int:
    project = make_project(folder / "project")
    with open_review(project, folder / "review") as review:
        strength = ReviewStrength(review, TestSettings(sys.executable))
        by_source = {found.test.rpartition("::test_")[2]: found for found in strength.known()}
        started = time.monotonic()
        measured = await strength.measure(lambda _: None)
        seconds = time.monotonic() - started
    weaker = {found.test.rpartition("::test_")[2] for found in measured if found.is_weaker}
    for found in measured:
        print(f"{'▼' if found.is_weaker else ' '} {found.test.rpartition('::')[2]:36} {found.words}")
    wanted = {edit.name for edit in EDITS if edit.is_weakening}
    signs = {name for name, found in by_source.items() if found.is_weaker}
    print(f"by source alone: {len(signs & wanted)} of {len(wanted)} found, false: {sorted(signs - wanted)}")
    print(f"measured: {len(weaker & wanted)} of {len(wanted)} found, missed {sorted(wanted - weaker)}")
    print(f"false: {len(weaker - wanted)} of {len(EDITS) - len(wanted)} honest edits {sorted(weaker - wanted)}")
    print(f"cost: {strength.cost:.1f} runs of the changed tests, {seconds:.0f} s")
    return 0 if wanted <= weaker and len(weaker - wanted) <= 1 and strength.cost <= 60 else 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="swarm-judge-") as place:
        sys.exit(asyncio.run(judge(Path(place))))

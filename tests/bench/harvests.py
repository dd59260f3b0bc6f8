"""Harvests of the real Claude Code: whether any message that its model told is missing in the transcripts.

    python -m tests.bench.harvests [TESTS [SLOTS]]

Half of the agents have a subagent. Prints the messages that were lost.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from swarm_tui.adapters.provision import find_mngr
from tests.claude.installed import claude_folder
from tests.claude.lab import claude_lab, lost_messages
from tests.isolation import isolate_mngr


def main() -> None:
    """Run one sweep and compare its transcripts with what the model has told."""
    count, slots = [*map(int, sys.argv[1:]), *(200, 6)[len(sys.argv) - 1 :]]
    claude = claude_folder()
    if claude is None:
        sys.exit("Claude Code cannot be installed here")
    tests = [f"stock_{number}_{'subagent' if number % 2 else 'fixed'}" for number in range(count)]
    begun = time.monotonic()
    path = asyncio.run(find_mngr()).path
    with isolate_mngr(path) as mngr, claude_lab(mngr, claude, Path(mngr.root) / "shop", tests) as lab:
        words = ["run", "--headless", "--no-preflight", "--ignore-load", "--integrator", "none"]
        process = lab.program.start(*words, "--slots", str(slots))
        process.wait()
        records = list(lab.program.opened().state.tests())
        ends = {record.harvest.end for record in records}
        lost = lost_messages(lab)
    print(f"{len(records)} harvests (ends: {', '.join(sorted(ends))}) in {time.monotonic() - begun:.0f} s, ", end="")
    print(f"{len(lab.model.told)} messages told, {len(lost)} lost; load {os.getloadavg()[0]:.1f}")
    for text in lost:
        print(f"  lost: {text[:100]}")


if __name__ == "__main__":
    main()

"""What the engine's process still does when its sweep is over: whether changed tests notice less is measured.

The journal is closed and the lock is free by then, so that nobody waits for this; another engine ends it.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

from swarm_tui.engine.context import EngineContext
from swarm_tui.errors import SwarmError
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.formatting import counted

LONGEST: Final = 1800.0
"""So many seconds it may take; `swarm-tui fixes --teeth` goes on from there."""
_LOOK: Final = 1.0


async def announce_measuring(context: EngineContext) -> bool:
    """Return whether there is something to measure, and say in the log that it begins."""
    integration = context.state.integration
    if not context.spec.measures_teeth or integration.state != "done" or not integration.tip:
        return False
    try:
        count = await asyncio.to_thread(_count_unmeasured, context.folder)
    except (SwarmError, OSError) as error:
        context.note(f"the tests that were changed cannot be measured: {error}", level="warning")
        return False
    if count:
        changed = counted(count, "changed test")
        context.note(f"{changed}: measured from now on, in the background; `swarm-tui fixes --teeth` waits for it")
    return count > 0


def _count_unmeasured(folder: SweepFolder) -> int:
    from swarm_tui.teeth.opening import teeth_of_review
    from swarm_tui.triage.sweep_review import review_sweep

    with review_sweep(folder) as review:
        return teeth_of_review(review, folder)[0].unmeasured


async def measure_teeth(folder: SweepFolder) -> None:
    """Measure the tests that a sweep changed, until that is done, takes too long, or an engine works again."""
    from swarm_tui.teeth.opening import teeth_of_review
    from swarm_tui.triage.sweep_review import review_sweep

    end = time.monotonic() + LONGEST
    try:
        with await asyncio.to_thread(review_sweep, folder) as review:
            teeth, _ = await asyncio.to_thread(teeth_of_review, review, folder)
            measuring = asyncio.ensure_future(teeth.measure(lambda _: None))
            try:
                while not measuring.done() and time.monotonic() < end and engine_process_id(folder.lock) is None:
                    await asyncio.wait({measuring}, timeout=_LOOK)
                if measuring.done():
                    measuring.result()
            finally:
                measuring.cancel()
                await asyncio.gather(measuring, return_exceptions=True)
    except (SwarmError, OSError) as error:
        # The journal is closed: this goes to the engine's log.
        print(f"the changed tests are not measured: {error}", file=sys.stderr)

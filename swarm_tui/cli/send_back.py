"""`swarm-tui fixes --send-back`: sends a fix back to the agent that made it; an engine that has ended begins again."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from typing import TYPE_CHECKING

from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.model.fixes import Fix
    from swarm_tui.triage.review import Review


def send_back(review: Review, folder: SweepFolder, fix: Fix, comment: str) -> None:
    """Ask the engine of a sweep to send a fix, or one hunk of it, back to its agent, and remember why."""
    from swarm_tui.cli.engine_requests import send_request
    from swarm_tui.engine.resume import check_continued
    from swarm_tui.engine.start import start_engine
    from swarm_tui.journal.open import open_sweep
    from swarm_tui.model.requests import RequestKind
    from swarm_tui.model.verdicts import Verdict
    from swarm_tui.triage.revisions import hunk_text

    if not comment.strip():
        raise UsageError("its agent has to know what to do differently", "say it with --why")
    opened = open_sweep(folder)
    records = [record for record in opened.state.tests() if record.branch in fix.branches]
    made = next((record for branch in fix.branches for record in records if record.branch == branch), None)
    if made is None:
        raise UsageError(f"no agent of {folder.name} is known to have made {plain(fix.title, 60)!r}")
    asyncio.run(check_continued(folder, opened.spec))
    begin = partial(start_engine, folder, opened.spec.engine_environment)
    if not opened.has_running_engine:
        begin()
        opened = open_sweep(folder)
    commit, hunk = fix.hunk_of or fix.id, hunk_text(review, fix) or None
    # An engine that is about to end reads no requests any more.
    send_request(
        opened, RequestKind.REVISE, tests=[made.test], text=comment.strip(), fix=commit, hunk=hunk, begin_again=begin
    )
    review.set_verdict(fix, Verdict.LATER, comment.strip())
    print(f"#{fix.rank} is with {made.agent} again; `swarm-tui wait --until done` waits for it", file=sys.stderr)

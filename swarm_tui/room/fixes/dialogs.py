"""Dialogs of the Fixes screen: apply the plan, open its tree, resolve a conflict, swap in a fix."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.adapters.git.checkouts import check_out_tree
from swarm_tui.adapters.processes.foreground import editor_command
from swarm_tui.adapters.processes.run import finish_in_thread
from swarm_tui.errors import UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.review.changes import Change
from swarm_tui.review.conflicts import (
    ConflictCopy,
    ManualResolution,
    Resolutions,
    apply_resolution,
    discard,
    find_resolutions,
    manual_resolution,
    open_conflict,
)
from swarm_tui.review.review import Review
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.dialog import Choosable
from swarm_tui.room.external import run_in_terminal
from swarm_tui.room.fixes.session import ReviewSession, ranks
from swarm_tui.room.fixes.view import proposal_details

if TYPE_CHECKING:
    from swarm_tui.room.fixes.screen import FixesScreen


async def apply_with_question(screen: FixesScreen, session: ReviewSession, *, is_drop: bool) -> None:
    """Create the branch of the plan after the user has confirmed it."""
    try:
        proposal = await asyncio.to_thread(session.propose, is_drop=is_drop)
    finally:
        screen.room.key_queue.drop_held()
    question = f"Create {proposal.branch}? Your checkout is unchanged."
    if not await screen.confirm(question, proposal_details(session, proposal)):
        screen.show_message("nothing was created")
        return
    applied, hint = await session.apply(proposal)
    screen.store.note("info", f"applied on {applied.branch}: {session.review.closing_line()}")
    screen.show_message(f"Created. To check it out: {hint}", "good")


async def open_plan_tree(screen: FixesScreen, review: Review) -> None:
    """Check out the plan's tree in a scratch folder and open it in the editor. Changes there are discarded."""
    preview = await asyncio.to_thread(review.preview)
    if preview.tree is None:
        screen.show_message("the plan has conflicts, so it has no tree", "warning")
        return
    with tempfile.TemporaryDirectory(prefix="swarm-tree-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch) / "plan"
        await finish_in_thread(partial(check_out_tree, review.space, preview.tree, folder, parent=review.branch.tip))
        problem = run_in_terminal(screen.room, (*editor_command(), "."), folder)
    screen.show_message(problem or "scratch folder of the plan's tree removed", "error" if problem else "info")


async def resolve_conflict(screen: FixesScreen, session: ReviewSession, fix: Change) -> None:
    """Let the user choose how to resolve the conflict of reverting a fix."""
    reverted = session.with_it_reverted(fix)
    found = await asyncio.to_thread(find_resolutions, session.review, reverted)
    work = await asyncio.to_thread(manual_resolution, session.review, fix.hunk_of or fix.id, reverted)
    conflict = session.conflict_of(fix)
    if session.current is not fix or conflict is None or reverted != session.with_it_reverted(fix):
        return
    screen.show_message("")
    by_hand = _manual_work(work) or ", ".join(plain(path, 60) for path in conflict.paths[:3])
    entries = [
        *_sets_to_revert(found),
        Choosable("keep", f"keep {session.number(fix.id)} as well", "the plan keeps all of them unchanged", "k"),
        Choosable("edit", "resolve it in the editor", f"{by_hand}, in a scratch copy", "e"),
        Choosable("tool", "resolve it with git mergetool", "in a scratch copy", "m"),
    ]
    against = ", ".join(session.number(other) for other in conflict.opponents)
    title = f"Reverting {session.number(fix.id)} conflicts" + (f" with {against}" if against else "")
    match await screen.pick(title, entries):
        case "":
            screen.show_message("nothing was decided")
        case "keep":
            session.decide_all([(fix, Verdict.KEEP)])
        case ("edit" | "tool") as program:
            await _resolve_by_hand(screen, session, fix, is_editor=program == "edit")
        case number:
            session.decide_all([(other, Verdict.REVERT) for other in (fix, *found.sets[int(number)])])


def _sets_to_revert(found: Resolutions) -> Iterable[Choosable]:
    """Yield an entry for each smallest set of other fixes to revert so that the conflict disappears."""
    if not found.sets:
        why_not = "a commit that is not a fix conflicts" if found.is_exact else "none found within the time limit"
        yield Choosable("0", "revert others too", "", "r", "", why_not)
    for number, fixes in enumerate(found.sets):
        about = _titles(fixes) if found.is_exact else f"{_titles(fixes)} (a smaller set may exist)"
        yield Choosable(str(number), f"revert {ranks(fixes)} too", about, "r" if number == 0 else str(number + 1))


def _titles(fixes: Iterable[Change]) -> str:
    return plain(" · ".join(fix.title for fix in fixes), 60)


def _manual_work(work: Sequence[ManualResolution]) -> str:
    """Return the size of a manual resolution: `cli.py: 2 places, 9 lines`."""
    parts = []
    for each in work[:3]:
        places = f"{counted(each.places, 'place')}, {counted(each.lines, 'line')}" if each.places else "the whole file"
        parts.append(f"{plain(each.path, 60)}: {places}")
    return "; ".join(parts) + (f" and {len(work) - 3} more files" if len(work) > 3 else "")


async def _resolve_by_hand(screen: FixesScreen, session: ReviewSession, fix: Change, *, is_editor: bool) -> None:
    """Let the user resolve a conflict in a scratch copy. The plan changes only if the user accepts the result."""
    reverted = session.with_it_reverted(fix)
    copy = await asyncio.to_thread(open_conflict, session.review, fix.hunk_of or fix.id, reverted)
    try:
        is_resolved = await _edit(screen, session, fix, copy, is_editor=is_editor)
    finally:
        discard(copy)
    if is_resolved:
        session.forget_effects()
        session.decide_all([(fix, Verdict.REVERT)], "conflict resolved by hand")


async def _edit(
    screen: FixesScreen, session: ReviewSession, fix: Change, copy: ConflictCopy, *, is_editor: bool
) -> bool:
    """Run the editor or merge tool until the user accepts or rejects its result. Return whether it is used."""
    editor = (*editor_command(), *(f"./{path}" for path in copy.paths))
    command = editor if is_editor else ("git", "mergetool", "--no-prompt")
    question = f"Use this as the revert of #{fix.rank}?"
    while True:
        problem = run_in_terminal(screen.room, command, copy.folder)
        if problem:
            screen.show_message(f"{problem}: the plan has not changed", "error")
            return False
        if await screen.confirm(question, copy.paths):
            try:
                apply_resolution(session.review, copy)
                return True
            except UsageError as error:
                if await screen.confirm(f"{error.message}. Continue with it?", copy.paths):
                    continue
        screen.show_message("the plan has not changed")
        return False


async def swap_in(screen: FixesScreen, session: ReviewSession, fix: Change) -> None:
    """Include a left-out fix in the plan. If there is a choice, the user chooses the fixes that it replaces."""
    reverted = session.with_it_reverted(fix)
    found = await asyncio.to_thread(find_resolutions, session.review, reverted)
    if session.current is not fix or reverted != session.with_it_reverted(fix):
        return
    if not found.sets:
        screen.show_message(f"cannot swap in #{fix.rank}: it conflicts with a commit that is not a fix", "error")
        return
    number = "0"
    if len(found.sets) > 1:
        choices = enumerate(found.sets)
        entries = [Choosable(str(place), f"instead of {ranks(fixes)}", _titles(fixes)) for place, fixes in choices]
        number = await screen.pick(f"Swap #{fix.rank} in", entries)
    if number:
        session.swap_in(fix, found.sets[int(number)])

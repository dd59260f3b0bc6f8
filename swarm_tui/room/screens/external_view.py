"""Opens a fix in git's pager, or the tree of the plan in the person's editor; the room waits behind it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.foreground import editor_command, run_in_foreground
from swarm_tui.adapters.git.checkouts import check_out_tree
from swarm_tui.errors import SwarmError
from swarm_tui.model.fixes import Fix
from swarm_tui.room.merge_state import MergeState
from swarm_tui.room.suspend import step_aside

if TYPE_CHECKING:
    from swarm_tui.room.screens.fixes import FixesScreen


def leave_for(screen: FixesScreen, words: Sequence[str], folder: Path, extra: Mapping[str, str] = {}) -> str:
    """Return the terminal to a program until it ends; return what went wrong, or ""."""

    def hand_over() -> str:
        code = run_in_foreground(words, cwd=folder, environment=scrubbed_environment(extra))
        return f"{words[0]} ended with {code}" if code else ""

    trouble = step_aside(screen.app, hand_over)
    screen.app.refresh(layout=True)
    return trouble


def open_commit(screen: FixesScreen, merge: MergeState, fix: Fix) -> None:
    """Show the commit of a fix in the pager that git would use."""
    words = ("git", "--paginate", "show", "--stat", "--patch", "--no-ext-diff", fix.id, "--")
    # git tells less to leave at once when everything fits: then nobody would see it.
    trouble = leave_for(screen, words, merge.review.repository.root, {"LESS": "R"})
    if trouble:
        screen.say(trouble, "error")


async def open_tree(screen: FixesScreen, merge: MergeState) -> None:
    """Open the plan's tree, checked out in a scratch folder, in the editor. What is changed there is not taken."""
    preview = await asyncio.to_thread(merge.review.preview)
    if preview.tree is None:
        screen.say("the plan conflicts, so there is no tree to open", "warning")
        return
    with tempfile.TemporaryDirectory(prefix="swarm-tree-") as place:
        folder = Path(place) / "plan"
        try:
            await asyncio.to_thread(
                check_out_tree, merge.review.space, preview.tree, folder, parent=merge.review.branch.tip
            )
        except SwarmError as error:
            screen.say(str(error), "error")
            return
        trouble = leave_for(screen, (*editor_command(), "."), folder)
    screen.say(trouble or "the scratch folder of the plan's tree is removed", "error" if trouble else "info")

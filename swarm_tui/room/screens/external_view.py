"""Opens a fix in git's pager, or the tree of the plan in the person's editor; the room waits behind it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from textual.app import App

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.foreground import editor_command, run_in_foreground
from swarm_tui.adapters.git.checkouts import check_out_tree
from swarm_tui.errors import SwarmError
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.room.suspend import lend_terminal


def run_in_terminal(app: App[str], words: Sequence[str], folder: Path, extra: Mapping[str, str] = {}) -> str:
    """Lend the terminal to a program until it ends; return what went wrong, or ""."""

    def run() -> str:
        code = run_in_foreground(words, cwd=folder, environment=scrubbed_environment(extra))
        return f"{words[0]} ended with {code}" if code else ""

    problem = lend_terminal(app, run)
    app.refresh(layout=True)
    return problem


class ExternalView:
    """Shows parts of the review in other programs."""

    def __init__(self, screen: FixesServices) -> None:
        self._screen = screen

    def open_commit(self) -> None:
        """Show the commit of the fix under the cursor in the pager that git would use."""
        state, fix = self._screen.reviewed_fix()
        if fix in state.review.known_parts:
            self._screen.show_message("a part is no commit of its own; o on row 0 opens the whole one", "warning")
            return
        words = ("git", "--paginate", "show", "--stat", "--patch", "--no-ext-diff", fix.hunk_of or fix.id, "--")
        # By default git lets less quit at once when everything fits on the screen.
        problem = run_in_terminal(self._screen.room, words, state.review.repository.root, {"LESS": "R"})
        if problem:
            self._screen.show_message(problem, "error")

    def open_tree(self) -> None:
        """Open the plan's tree, checked out in a scratch folder, in the editor; changes made there are dropped."""
        state, _ = self._screen.reviewed_fix()
        self._screen.start(partial(self._open_tree, state), "tree")

    async def _open_tree(self, state: ReviewState) -> None:
        preview = await asyncio.to_thread(state.review.preview)
        if preview.tree is None:
            self._screen.show_message("the plan conflicts, so there is no tree to open", "warning")
            return
        with tempfile.TemporaryDirectory(prefix="swarm-tree-") as scratch:
            folder = Path(scratch) / "plan"
            try:
                await asyncio.to_thread(
                    check_out_tree, state.review.space, preview.tree, folder, parent=state.review.branch.tip
                )
            except SwarmError as error:
                self._screen.show_message(str(error), "error")
                return
            problem = run_in_terminal(self._screen.room, (*editor_command(), "."), folder)
        message = problem or "the scratch folder of the plan's tree is removed"
        self._screen.show_message(message, "error" if problem else "info")

"""Opens the review that the merge view shows, watches whether its branch is rewritten, and closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from swarm_tui.errors import SwarmError
from swarm_tui.room.review_state import ReviewState
from swarm_tui.room.screens.services import FixesServices
from swarm_tui.room.test_runs import runner_of_sweep, runner_without_sweep, tests_of_sweep, tests_without_sweep
from swarm_tui.triage.review import Review

CHECK_SECONDS = 2.0
"""How often it is checked whether the branch is still the one under review, or back after it could not be read."""


class ReviewLoader:
    """Holds the open review, if there is one."""

    def __init__(self, screen: FixesServices, on_opened: Callable[[], None], on_closed: Callable[[], None]) -> None:
        self._screen = screen
        self._on_opened = on_opened
        self._on_closed = on_closed
        self.state: ReviewState | None = None
        self.is_opening = False
        self.problem = ""
        """Why the branch could not be read."""
        self._opened_for: tuple[str | None, str] | None = None
        self._checked_at = 0.0

    @property
    def _has_branch(self) -> bool:
        integration = self._screen.store.state.integration
        return self._screen.room.given_review is not None or bool(integration.branch or integration.tip)

    @property
    def is_coming(self) -> bool:
        """Whether a review is being opened, or is about to be, for the first time."""
        return self.state is None and self._has_branch and not self.problem

    def update(self) -> None:
        """Open the review when there is a new branch; read verdicts from other rooms."""
        if self._screen.room.opened_review is not None:
            self._show(self._screen.room.open_review())
            return
        store = self._screen.store
        integration = store.state.integration
        wanted = (integration.branch, integration.tip)
        has_branch = self._has_branch
        is_due = wanted != self._opened_for or (self.state is None and self.problem != "" and self._is_check_due())
        if has_branch and not self.is_opening and store.is_loaded and is_due:
            self._opened_for = wanted
            self.is_opening = True
            self._screen.start(self._open, "open")
        elif self.state is not None:
            if self.state.review.refresh():
                self._screen.show_verdicts()
            if not self.is_opening and self._is_check_due():
                self._screen.start(self._check_branch, "check")

    def _is_check_due(self) -> bool:
        now = self._screen.store.clock()
        if now - self._checked_at < CHECK_SECONDS:
            return False
        self._checked_at = now
        return True

    async def _check_branch(self) -> None:
        """Open the review again when the branch was rewritten."""
        state = self.state
        if state is not None and await asyncio.to_thread(state.review.is_rewritten) and state is self.state:
            self.is_opening = True
            await self._open()
            self._screen.show_message(
                "the branch was rewritten; verdicts of fixes that have not changed are kept", "warning"
            )

    async def _open(self) -> None:
        try:
            review = await asyncio.to_thread(self._screen.room.open_review)
            await asyncio.to_thread(review.warm_up)
        except SwarmError as error:
            self.problem = str(error)
            await self.close()
            return
        finally:
            self.is_opening = False
        await self.close()
        self._show(review)

    def _show(self, review: Review) -> None:
        integration = self._screen.store.state.integration
        self._opened_for = (integration.branch, integration.tip)
        self.problem = ""
        self.state = self._state_of(review)
        self._on_opened()

    def _state_of(self, review: Review) -> ReviewState:
        store = self._screen.store
        spec, command = store.opened.spec, self._screen.room.test_command
        if self._screen.room.given_review is not None:
            runner = runner_without_sweep(review, review.repository, command)
            changed = tests_without_sweep(review, review.repository)
            return ReviewState(review, lambda: store.state, "", store.clock, runner, changed)
        runner = runner_of_sweep(review, spec, store.state, command)
        changed = tests_of_sweep(review, spec, store.state)
        return ReviewState(review, lambda: store.state, spec.sweep, store.clock, runner, changed)

    async def close(self) -> None:
        state, self.state = self.state, None
        self._on_closed()
        if state is not None:
            await state.test_runner.close()
            state.review.close()

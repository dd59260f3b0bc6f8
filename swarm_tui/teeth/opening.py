"""Opens the teeth of a review: with the tests of its sweep and what their agents say of them, or without a sweep."""

from __future__ import annotations

from collections.abc import Iterable

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import OpenedSweep, open_sweep
from swarm_tui.model.state import TestRecord
from swarm_tui.teeth.review_teeth import ReviewTeeth
from swarm_tui.teeth.turn import TeethTurn
from swarm_tui.testing.settings import guess_settings, settings_of_sweep
from swarm_tui.testing.traced import without_case
from swarm_tui.triage.review import Review
from swarm_tui.triage.store import review_of_sweep


def teeth_of_review(review: Review, folder: SweepFolder | None) -> tuple[ReviewTeeth, dict[str, str]]:
    """Return the teeth of a review, and what the agents say of what they did to each test."""
    if folder is None:
        return ReviewTeeth(review, guess_settings(review.repository)), {}
    opened = open_sweep(folder)
    return teeth_of_sweep(review, opened), claims_of(opened.state.tests())


def teeth_of_sweep(review: Review, opened: OpenedSweep) -> ReviewTeeth:
    """Return the teeth of the tests that a sweep changed."""
    # Over a tutorial no agent has a test of its own.
    records = opened.state.tests() if opened.spec.kind == "tests" else ()
    return ReviewTeeth(review, settings_of_sweep(opened.spec), records)


def turn_of_sweep(folder: SweepFolder) -> TeethTurn:
    """Return who measures the teeth of a sweep's tests now."""
    return TeethTurn(review_of_sweep(folder.root).root)


def claims_of(records: Iterable[TestRecord]) -> dict[str, str]:
    """Return what the agents say of their work, by the name under which a test's teeth are known."""
    return {without_case(record.test): record.harvest.summary for record in records if record.harvest.summary}

"""Whatever is killed, and whenever: a sweep that is resumed ends as one that nobody disturbed."""

from __future__ import annotations

import pytest

from tests.engine.chaos import play_round

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def undisturbed(mngr_path: str) -> str:
    """Return the tree that the agents' work comes to when nothing is struck."""
    _, problems, tree = play_round(mngr_path, None, None)
    assert problems == []
    return tree


@pytest.mark.parametrize("seed", range(3, 13))
def test_chaos_changes_nothing(mngr_path: str, undisturbed: str, seed: int) -> None:
    blows, problems, _ = play_round(mngr_path, seed, undisturbed)
    assert problems == [], blows

"""Fixtures for all tests."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from swarm_tui.adapters.provision import find_mngr
from swarm_tui.errors import AdapterError
from tests.isolation import IsolatedMngr, isolate_mngr

__all__ = ["IsolatedMngr"]


@pytest.fixture(scope="session")
def mngr_path() -> str:
    """Return the mngr that the tests use: SWARM_MNGR, PATH, or the private environment."""
    try:
        return asyncio.run(find_mngr()).path
    except AdapterError as error:
        missing = error.message
    pytest.fail(f"these tests need mngr 0.3 ({missing}): run `swarm-tui doctor --fix`", pytrace=False)


@pytest.fixture(scope="session")
def isolated_mngr(mngr_path: str) -> Iterator[IsolatedMngr]:
    """Return a real mngr that sees nothing of the user's: own home, own tmux server, own repository."""
    with isolate_mngr(mngr_path) as isolated:
        yield isolated

"""Waits for calls of `mngr create` that have outlived their engine: the agents that they make belong to its sweep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.process import run_process
from swarm_tui.model.hosts import mngr_address
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State

CREATE_DEADLINE: Final = 120.0


async def wait_for_creates(records: Iterable[TestRecord]) -> None:
    """Wait until no agent of these records is being created any more, for a limited time."""
    names = {mngr_address(record.agent, record.host) for record in records if record.state is State.LAUNCHING}
    deadline = time.monotonic() + CREATE_DEADLINE
    while names and time.monotonic() < deadline:
        listed = await run_process(["ps", "-e", "-ww", "-o", "args="], environment=scrubbed_environment())
        words = (line.split() for line in listed.text.splitlines() if " create " in line)
        if not any(names.intersection(line) for line in words):
            return
        await asyncio.sleep(0.2)

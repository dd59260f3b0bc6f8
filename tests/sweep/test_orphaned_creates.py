"""A create that goes on without its engine is waited for, so that what it makes is found."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.results import State
from swarm_tui.sweep.launch import wait_for_creates
from tests.waiting import PATIENCE

AGENT = "swarm-orphaned-creates-test-copy"


@pytest.mark.parametrize(("state", "host", "is_awaited"), [
    (State.LAUNCHING, "box1", True),
    (State.LAUNCHING, "box2", False),
    (State.RUNNING, "box1", False),
])  # fmt: skip
async def test_only_the_create_of_an_agent_that_was_being_launched_is_waited_for(
    state: State, host: str, is_awaited: bool
) -> None:
    words = ["sh", "-c", "read line", "mngr", "create", f"{AGENT}@box1.box1"]
    create = subprocess.Popen(words, stdin=subprocess.PIPE)  # noqa: ASYNC220
    waiting = asyncio.ensure_future(wait_for_creates([TestRecord(test="a::b", agent=AGENT, state=state, host=host)]))
    ended, _ = await asyncio.wait([waiting], timeout=1.0 if is_awaited else PATIENCE)
    assert bool(ended) is not is_awaited
    create.communicate(b"go\n")
    await asyncio.wait_for(waiting, PATIENCE)

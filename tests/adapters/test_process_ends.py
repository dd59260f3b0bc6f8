"""The ends of processes are told at once, whoever started them."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from swarm_tui.adapters.processes.ends import SHARE_OF_DESCRIPTORS, ProcessEnds
from tests.adapters.descriptors import open_descriptors
from tests.waiting import eventually


@contextmanager
def grandchild() -> Iterator[int]:
    """Yield the id of a process that is not our child."""
    starter = ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]
    process_id = int(subprocess.run(starter, capture_output=True, check=True).stdout)
    try:
        yield process_id
    finally:
        with suppress(ProcessLookupError):
            os.kill(process_id, 9)


async def test_exit_before_following_is_reported() -> None:
    told: list[int] = []
    ends = ProcessEnds(lambda: told.append(1))
    with grandchild() as one, grandchild() as other:
        assert ends.follow([one, other])
        assert told == []
        os.kill(one, 9)
        await eventually(lambda: len(told) == 1, "the end of the first")
        assert ends.follow([one, other])
        await eventually(lambda: len(told) == 2, "that the first has ended before")
    ends.close()


async def test_unfollowed_process_uses_no_descriptor() -> None:
    before = open_descriptors()
    ends = ProcessEnds(lambda: None)
    with grandchild() as one:
        assert ends.follow([one])
        assert ends.follow([])
        assert open_descriptors() == before
    ends.close()


async def test_too_many_processes_are_not_followed() -> None:
    ends = ProcessEnds(lambda: None)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // SHARE_OF_DESCRIPTORS
    assert not ends.follow(range(1, most + 2))
    ends.close()

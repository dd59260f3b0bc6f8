"""Output that is taken while a program runs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from swarm_tui.adapters.process import stream_process
from swarm_tui.errors import AdapterError, ProgramMissing
from tests.waiting import eventually


async def test_pieces_come_while_it_runs_and_cancelling_ends_all_of_it(tmp_path: Path) -> None:
    pieces: list[bytes] = []
    has_come = asyncio.Event()

    def collect(piece: bytes) -> None:
        pieces.append(piece)
        has_come.set()

    script = f"echo first; sleep 100 & echo $! > {tmp_path}/child; wait"
    task = asyncio.create_task(stream_process(["sh", "-c", script], environment=dict(os.environ), on_output=collect))
    async with asyncio.timeout(10):
        await has_come.wait()
    await eventually(
        lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text().endswith("\n"), "the child"
    )
    child = int((tmp_path / "child").read_text())
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert b"".join(pieces) == b"first\n"
    status = Path(f"/proc/{child}/stat")
    await eventually(lambda: not status.exists() or " Z " in status.read_text(), "its end")


async def test_the_last_line_of_a_program_that_fails_is_its_error() -> None:
    with pytest.raises(AdapterError, match="no such agent"):
        await stream_process(
            ["sh", "-c", "echo no such agent >&2; exit 3"], environment=dict(os.environ), on_output=print
        )


async def test_a_missing_program_is_an_error() -> None:
    with pytest.raises(ProgramMissing):
        await stream_process(["/nowhere/mngr", "event"], environment=dict(os.environ), on_output=print)

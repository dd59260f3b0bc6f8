"""The room shows new lines of the journal and of a transcript, with file notifications or by polling."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.adapters.file_notices import FileNotices
from swarm_tui.journal.events import LogMessage
from swarm_tui.room.app import RoomApp
from swarm_tui.room.settings import Settings
from tests.room.scenes import open_store, press, shows
from tests.sweep.scripted_sweep import QuickMngr, record_launch, scripted_sweep


@pytest.mark.parametrize("is_off", [False, True], ids=["told", "looking"])
async def test_room_shows_new_journal_and_transcript_lines(is_off: bool, tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 2, QuickMngr(tmp_path / "mngr"))
    record = next(context.state.tests())
    address = context.address_of(record.agent, 1)
    transcript = Path(address.state_dir) / "events/agent/common_transcript/events.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text('{"type": "step", "source": "agent", "message": "I begin."}\n')
    record_launch(context, record, address)
    app = RoomApp(open_store(context.folder), Settings(notify="none"))
    app.file_notices = FileNotices(is_off=is_off)
    async with app.run_test(size=(120, 36)) as pilot:
        context.record(LogMessage(text="first"))
        await press(pilot, "6")
        for number in range(3):
            context.record(LogMessage(text=f"the line of number {number}"))
            await shows(pilot, f"the line of number {number}")
        await press(pilot, "1", "t")
        await shows(pilot, "I begin.")
        for number in range(3):
            with transcript.open("a") as file:
                file.write(f'{{"type": "step", "source": "agent", "message": "Now comes {number}."}}\n')
            await shows(pilot, f"Now comes {number}.")

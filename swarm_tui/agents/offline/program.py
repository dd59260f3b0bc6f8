"""The program of the offline agent: reads its task, replays its record and submits the result."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from swarm_tui.agents.contract import BUNDLE_FILE, OUTPUT_FOLDER, Task
from swarm_tui.agents.offline.play import MisfitError, RecordPlayer, compose_report
from swarm_tui.agents.offline.records import BadRecord, Record, RecordedStep, find_record
from swarm_tui.agents.submit import Presence, publish_archive, write_report
from swarm_tui.errors import SwarmError


def main() -> None:
    task = Task.read(Path(sys.argv[1]))
    state_folder = Path(os.environ["MNGR_AGENT_STATE_DIR"])
    presence = Presence(state_folder, Path(os.environ["MNGR_HOST_DIR"]))
    presence.set_working(True)
    copy = Path(os.environ["MNGR_AGENT_WORK_DIR"])
    asyncio.run(_work(RecordPlayer(task, copy, presence), state_folder))
    presence.set_working(False)


async def _work(player: RecordPlayer, state_folder: Path) -> None:
    try:
        report = compose_report(player, await _play(player))
    except SwarmError as error:
        # For example an id that is too long for a command line, or a missing interpreter: report the reason.
        player.presence.write_message(f"I cannot continue: {error}.")
        report = {
            "errored": True,
            "changes": player.changes,
            "summary_markdown": f"The agent could not continue: {error}.",
        }
    write_report(player.copy / player.task.outcome, report, player.breakage)
    bundle = await _bundle(player, state_folder)
    player.presence.write_message("Done. The work is submitted.")
    publish_archive(state_folder, player.copy / OUTPUT_FOLDER, bundle, player.breakage)


async def _play(player: RecordPlayer) -> Record | None:
    task = player.task
    player.presence.write_message(f"I am {task.agent} and work on {task.test!r}.")
    record = _record_of(player)
    steps = _steps_of(player, record) if record else ()
    for position, step in enumerate(steps):
        try:
            await player.play_step(step)
        except MisfitError as error:
            player.report_misfit(str(error), steps[position:])
            player.verdicts = player.verdicts[:1]
            await player.run_test("before any change")
            break
    if not player.verdicts:
        await player.run_test("without changes")
    return record


def _steps_of(player: RecordPlayer, record: Record) -> tuple[RecordedStep, ...]:
    """Return the steps to replay. For work that was sent back again, the last revision is repeated."""
    number = player.task.revision
    if not number:
        return record.steps
    if not record.revisions:
        player.presence.write_message("My work was sent back, but my record has no steps for that.")
        return ()
    return record.revisions[min(number, len(record.revisions)) - 1]


def _record_of(player: RecordPlayer) -> Record | None:
    folder = player.task.records
    try:
        record = find_record(Path(folder), player.task.test) if folder else None
    except BadRecord as error:
        player.presence.write_message(f"The record of this test is invalid: {error}.")
        return None
    if record is None:
        player.presence.write_message("I found no record of this test, so I only run it.")
    return record


async def _bundle(player: RecordPlayer, state_folder: Path) -> Path | None:
    """Write the commits since the base to a bundle. Return None if there are none: git rejects empty bundles."""
    task = player.task
    count = await player.git("rev-list", "--count", f"{task.base}..{task.branch}")
    if count.text.strip() == "0":
        return None
    path = state_folder / BUNDLE_FILE
    if player.breakage == "bundle":
        path.write_bytes(b"# v2 git bundle\nnot a bundle\n")
    else:
        await player.git("bundle", "create", "--quiet", str(path), f"{task.base}..{task.branch}")
    return path


if __name__ == "__main__":
    main()

"""The program that mngr runs as the offline agent: reads its task, plays its record, hands in the result and ends."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from swarm_tui.agents.contract import BUNDLE_FILE, OUTPUT_FOLDER
from swarm_tui.agents.offline.handing_in import publish_archive, write_outcome
from swarm_tui.agents.offline.play import MisfitError, RecordPlayer, compose_outcome
from swarm_tui.agents.offline.presence import Presence
from swarm_tui.agents.offline.records import BadRecord, Record, find_record
from swarm_tui.agents.task import Task
from swarm_tui.errors import SwarmError


def main() -> None:
    """Play the record for the task file that the command line names."""
    task = Task.read(Path(sys.argv[1]))
    state_folder = Path(os.environ["MNGR_AGENT_STATE_DIR"])
    presence = Presence(state_folder, Path(os.environ["MNGR_HOST_DIR"]))
    presence.set_working(True)
    copy = Path(os.environ["MNGR_AGENT_WORK_DIR"])
    asyncio.run(_work(RecordPlayer(task, copy, presence), state_folder))
    presence.set_working(False)


async def _work(play: RecordPlayer, state_folder: Path) -> None:
    try:
        outcome = compose_outcome(play, await _play(play))
    except SwarmError as error:
        # An id that no command line can hold, an interpreter that is gone: reported, and no riddle of a dead process.
        play.presence.say(f"I cannot go on: {error}.")
        outcome = {"errored": True, "changes": play.changes, "summary_markdown": f"The agent could not go on: {error}."}
    write_outcome(play.copy / play.task.outcome, outcome, play.breakage)
    bundle = await _bundle(play, state_folder)
    play.presence.say("Done; the result is handed in.")
    publish_archive(state_folder, play.copy / OUTPUT_FOLDER, bundle, play.breakage)


async def _play(play: RecordPlayer) -> Record | None:
    """Take the steps of the record; without any, look whether the test passes."""
    task = play.task
    play.presence.say(f"I am {task.agent} and work on {task.test!r}.")
    record = _record_of(play)
    steps = record.steps if record else ()
    for position, step in enumerate(steps):
        try:
            await play.take(step)
        except MisfitError as error:
            play.misfit(str(error), steps[position:])
            play.verdicts = play.verdicts[:1]
            await play.run_test("the tree as it is")
            break
    if not play.verdicts:
        await play.run_test("the test as it is")
    return record


def _record_of(play: RecordPlayer) -> Record | None:
    folder = play.task.records
    try:
        record = find_record(Path(folder), play.task.test) if folder else None
    except BadRecord as error:
        play.presence.say(f"The record for this test cannot be played: {error}.")
        return None
    if record is None:
        play.presence.say("There is no record for this test, so I only look whether it passes.")
    return record


async def _bundle(play: RecordPlayer, state_folder: Path) -> Path | None:
    """Put the commits since the base into a bundle; git refuses an empty one, so no commits give none."""
    task = play.task
    count = await play.git("rev-list", "--count", f"{task.base}..{task.branch}")
    if count.text.strip() == "0":
        return None
    path = state_folder / BUNDLE_FILE
    if play.breakage == "bundle":
        path.write_bytes(b"# v2 git bundle\nthis is none\n")
    else:
        await play.git("bundle", "create", "--quiet", str(path), f"{task.base}..{task.branch}")
    return path


if __name__ == "__main__":
    main()

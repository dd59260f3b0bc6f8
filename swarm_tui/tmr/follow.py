"""Follows a run of `mngr tmr` while a room is open: `python -m swarm_tui.tmr.follow RUN [REPOSITORY]`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.append import EngineLock
from swarm_tui.tmr.opening import living_agents, sweep_folder_of, write_run
from swarm_tui.tmr.run_folder import read_run, run_signature

LOOK_SECONDS: Final = 1.0
ASK_SECONDS: Final = 15.0
"""How often mngr is asked, which takes it seconds."""


def follow(root: Path, repository: Path | None) -> None:
    """Write down what is new in a run until it is over, or the room that started us is gone."""
    folder, parent = sweep_folder_of(root), os.getppid()
    lock = EngineLock(folder.lock)
    while not _is_acquired(lock):
        # Another room follows it already, and may be closed first.
        if os.getppid() != parent:
            return
        time.sleep(LOOK_SECONDS)
    seen: object = None
    asked_at, live = 0.0, dict[str, AgentDetails]()
    try:
        while os.getppid() == parent:
            if time.monotonic() - asked_at > ASK_SECONDS:
                live, asked_at = living_agents(read_run(root)), time.monotonic()
            found = (run_signature(root), {name: agent.state for name, agent in live.items()})
            if found != seen:
                seen = found
                if write_run(read_run(root), folder, repository, live, is_followed=True)[0]:
                    break
            time.sleep(LOOK_SECONDS)
    finally:
        lock.release()


def _is_acquired(lock: EngineLock) -> bool:
    try:
        lock.acquire()
    except UsageError:
        return False
    return True


def main() -> int:
    try:
        follow(Path(sys.argv[1]).resolve(), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
    except (SwarmError, OSError) as error:
        print(f"swarm-tui: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

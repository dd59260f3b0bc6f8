"""Start a watch: create its folder and start the observer process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from swarm_tui.adapters.mngr_settings import current_settings
from swarm_tui.adapters.processes.run import fork_detached, is_alive
from swarm_tui.adapters.provision import mngr_at_hand
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.errors import AdapterError, SwarmError
from swarm_tui.files import read_regular
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.spec import WATCH_SOURCE, SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.watch.agents import Conditions

FOLDER_PREFIX: Final = "swarm-watch-"
NAME: Final = "watch"
WAIT_SECONDS: Final = 60.0
_POLL: Final = 0.005


@contextlib.contextmanager
def watch_folder(title: str) -> Iterator[SweepFolder]:
    """Create a temporary folder for a watch. Raise ProgramMissing if mngr is not installed."""
    settings = current_settings(mngr_at_hand())
    with contextlib.closing(ScratchFolder(FOLDER_PREFIX)) as scratch:
        folder = SweepFolder(scratch.path / NAME)
        spec = SweepSpec(
            sweep=NAME,
            repository="",
            base="",
            created_at=time.time(),
            title=title,
            integrator="none",
            source=WATCH_SOURCE,
            mngr=settings,
        )
        folder.write_spec(spec)
        yield folder


class ObserverProcess:
    """The observer process. It exits with this process or on `close`."""

    def __init__(self, folder: SweepFolder, conditions: Conditions) -> None:
        self._folder = folder
        self._process = fork_detached(partial(_observe, folder, conditions, os.getpid()), log=folder.engine_log)

    def wait_for_first_look(self, within: float = WAIT_SECONDS) -> bool:
        """Wait until the journal exists. Return False after a timeout. Raise AdapterError if the observer failed."""
        deadline = time.monotonic() + within
        while not self._folder.events.exists():
            if not is_alive(self._process):
                raise AdapterError(*_last_words(self._folder.engine_log))
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL)
        return True

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGTERM)


def _observe(folder: SweepFolder, conditions: Conditions, parent: int) -> int:
    # Imported here, while the other process imports the room.
    from swarm_tui.watch.observer import observe

    try:
        asyncio.run(observe(folder, conditions, parent))
    except (SwarmError, OSError) as error:
        print(f"swarm-tui: {error}", file=sys.stderr)
        return 1
    return 0


def _last_words(log: Path) -> tuple[str, str]:
    """Return an error with the last line in the log of an observer."""
    lines = [line for line in read_regular(log).decode("utf-8", "replace").splitlines() if line.strip()]
    last = plain(lines[-1], 600) if lines else "the observer exited without a message"
    return "the agents cannot be watched", last.removeprefix("swarm-tui: ")

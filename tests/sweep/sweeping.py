"""Runs real sweeps for tests: the program itself, against a mngr, a home and a tmux server of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.folder import SweepFolder, list_sweeps
from swarm_tui.journal.follow import EventFollower
from swarm_tui.journal.open import OpenedSweep, open_sweep
from swarm_tui.model.event import Event
from tests.waiting import until


@dataclass(frozen=True)
class Program:
    """The command line, called in one folder and one environment."""

    folder: Path
    environment: dict[str, str]

    def call(self, *words: str, timeout: float = 600.0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever comes of it."""
        return subprocess.run(
            [sys.executable, "-m", "swarm_tui", *words],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a command and let it run."""
        with open(self.folder / ".git" / "started.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "swarm_tui", *words],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def status(self) -> dict[str, Any]:
        """Return what `status --json` says of the newest sweep."""
        done = self.call("status", "--json")
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def newest(self) -> SweepFolder:
        """Return the newest sweep."""
        return list_sweeps(self.folder)[-1]

    def newest_events(self) -> Sequence[Event]:
        """Return the events of the newest sweep."""
        return EventFollower(self.newest().events).read().events

    def opened(self) -> OpenedSweep:
        """Open the newest sweep for looking."""
        return open_sweep(self.newest())


def kill_engine(folder: SweepFolder, number: int = signal.SIGKILL) -> None:
    """Kill the engine of a sweep, if one lives, and wait until it is gone."""
    process_id = engine_process_id(folder.lock)
    if process_id:
        # It may have ended by itself since.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_id, number)
        until(lambda: engine_process_id(folder.lock) is None, "the death of the engine")


def offline(records: str = "records", *more: str) -> Sequence[str]:
    """Return the arguments for a sweep with offline agents, regardless of the load of the machine."""
    arguments = (
        "--agent",
        "offline",
        "--records",
        records,
        "--python",
        sys.executable,
        "--no-strength",
        "--ignore-load",
    )
    return (*arguments, *more)

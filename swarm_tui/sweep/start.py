"""Writes the folder of a new sweep, and starts engine processes."""

from __future__ import annotations

import dataclasses
import os
import secrets
import string
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import structs

from swarm_tui.adapters.processes.environment import passed_variables, scrubbed_environment
from swarm_tui.adapters.processes.run import is_alive, start_detached
from swarm_tui.errors import JournalError, SwarmError
from swarm_tui.files import open_regular
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import EngineStarted, LogMessage, Queued
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.journal.follow import EventFollower
from swarm_tui.model.spec import SweepSpec, SweptTest
from swarm_tui.model.text import plain

SLOW_START: Final = 5.0
"""Seconds after which a slow start is reported."""
LETTERS: Final = 5
"""The number of random letters in a sweep's name, which has 11 million combinations."""
SPACE_NEEDED: Final = 1 << 16
"""The free bytes on the disk that an engine needs to start and to log an error."""


def new_sweep_name(repository: Path) -> str:
    """Return the name of a new sweep, and create its folder.

    Agents, terminals and refs have the name in their names, together with those of other repositories. So the name is
    the time and random letters.
    """
    runs = create_runs_folder(repository)
    letters = "".join(secrets.choice(string.ascii_lowercase) for _ in range(LETTERS))
    name = f"{time_stamp(_free_second(runs))}-{letters}"
    try:
        (runs / name).mkdir()
    except OSError as error:
        raise JournalError(f"{runs} cannot be written: {error.strerror or error}") from error
    return name


def time_stamp(moment: float) -> str:
    """Return the time at the start of a sweep's name."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(moment))


def _free_second(runs: Path) -> float:
    """Return the current time, or the next second without a sweep, because sweeps are sorted by name."""
    moment = time.time()
    while any(runs.glob(f"{time_stamp(moment)}*")):
        moment += 1
    return moment


def write_sweep(folder: SweepFolder, spec: SweepSpec, tests: Iterable[SweptTest]) -> None:
    """Write sweep.json with all tests, and the first events."""
    spec = dataclasses.replace(spec, tests=tuple(tests))
    folder.write_spec(spec)
    with JournalWriter(folder.events) as writer:
        for test in spec.tests:
            writer.append(Queued(**structs.asdict(test)))
        for sentence in spec.left_out:
            writer.append(LogMessage(level="warning", text=f"left out: {sentence}"))
        writer.sync()


def start_engine(
    folder: SweepFolder,
    passed_environment: Sequence[str] = (),
    *,
    is_relaunching: bool = False,
    say: Callable[[str], object] = lambda text: None,
) -> int:
    """Start the engine of a sweep as a detached process, wait for its first event, and return its process id."""
    _check_disk(folder)
    passed = passed_variables(passed_environment)
    root = folder.root.absolute()
    log_size = folder.engine_log.stat().st_size if folder.engine_log.exists() else 0
    size = folder.events.stat().st_size if folder.events.exists() else 0
    process_id = start_detached(
        [sys.executable, "-m", "swarm_tui.sweep.engine", str(root), *(["--relaunch"] if is_relaunching else [])],
        cwd=root,
        environment=scrubbed_environment(passed),
        log=folder.engine_log,
    )
    follower = EventFollower(folder.events, size)
    said_at = time.monotonic() + SLOW_START
    while True:
        is_running = is_alive(process_id)
        if any(isinstance(event, EngineStarted) and event.pid == process_id for event in follower.read().events):
            return process_id
        if not is_running:
            raise SwarmError(f"the engine did not start: {last_log_line(folder, log_size) or 'it exited'}")
        if time.monotonic() > said_at:
            say(f"the engine is reading its journal ({size // 1_000_000} MB)")
            said_at = float("inf")
        time.sleep(0.02)


def _check_disk(folder: SweepFolder) -> None:
    """Raise SwarmError if the disk is full, because an engine could not report that."""
    scrap = folder.root / f".space-{os.getpid()}"
    try:
        try:
            scrap.write_bytes(bytes(SPACE_NEEDED))
        finally:
            scrap.unlink(missing_ok=True)
    except OSError as error:
        raise SwarmError(
            f"the engine cannot write in {folder.root}: {error.strerror or error}",
            f"nothing is lost; fix this, then run `swarm-tui resume {folder.name}`",
        ) from error


def last_log_line(folder: SweepFolder, offset: int = 0) -> str:
    """Return the last line of the engine's log after `offset`."""
    try:
        with open_regular(folder.engine_log) as file:
            file.seek(offset)
            lines = file.read(1 << 20).decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return plain(lines[-1], 500) if lines else ""

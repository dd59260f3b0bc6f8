"""Finds the sweep that a command line names: one of the current repository, or a folder."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.journal.history import JournalHistory
    from swarm_tui.journal.open import OpenedSweep

_QUIET_TIME: Final = 0.5
"""What takes no longer is not told of."""
_START_LIMIT: Final = 10.0


def add_repository_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that goes with folders of `mngr tmr`, which do not say where their commits belong."""
    parser.add_argument(
        "--repository", type=Path, metavar="PATH", help="of a folder of mngr tmr: the repository of its commits"
    )


def add_moment_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that shows a sweep as it was."""
    parser.add_argument(
        "--at", metavar="TIME", help="as it was then: 12:04, 12:04:31, 2026-11-19T12:04, or -10m from now or its end"
    )


def moment_in(folder: SweepFolder, words: str) -> tuple[JournalHistory, float]:
    """Return the history of a sweep, and the time in it that is meant; raise UsageError for any other words."""
    from swarm_tui.errors import UsageError
    from swarm_tui.journal.append import engine_process_id
    from swarm_tui.journal.history import JournalHistory
    from swarm_tui.model.moments import parse_moment

    history = JournalHistory(folder, folder.read_spec())
    first, last = history.span
    if not last:
        raise UsageError(f"nothing has happened in {folder.name} yet")
    try:
        is_running = engine_process_id(folder.lock) is not None
        return history, parse_moment(words, first, max(last, time.time()) if is_running else last)
    except ValueError as error:
        raise UsageError(f"--at {error}") from None


def repository_root(folder: Path) -> Path:
    """Return the top of the repository that holds a folder, found by its `.git` or `.swarm`, without asking git."""
    for candidate in (folder, *folder.parents):
        if (candidate / ".swarm").is_dir() or (candidate / ".git").exists():
            return candidate
    return folder


def chosen_sweep(name: str | None, folder: Path, repository: Path | None = None) -> SweepFolder:
    """Return the sweep of that name, beginning or path, or the newest one; a run of `mngr tmr` becomes a sweep."""
    from swarm_tui.journal.folder import find_sweep

    run = run_of_tmr(name)
    if run is not None:
        from swarm_tui.tmr.opening import sweep_of_run

        return sweep_of_run(run, repository)
    return find_sweep(repository_root(folder), name)


def opened_sweep(name: str | None, folder: Path, repository: Path | None = None) -> OpenedSweep:
    """Open the sweep of that name, beginning or path, or the newest one."""
    return opened_with_progress(chosen_sweep(name, folder, repository))


def opened_with_progress(folder: SweepFolder) -> OpenedSweep:
    """Open a sweep; on a terminal it is shown how far a long journal is read."""
    from swarm_tui.cli.progress import clear_passing, print_passing
    from swarm_tui.journal.open import open_sweep

    begun = said_at = time.monotonic()

    def tell(done: int, size: int) -> None:
        nonlocal said_at
        now = time.monotonic()
        if now - begun > _QUIET_TIME and now - said_at > _QUIET_TIME:
            said_at = now
            print_passing(f"reading the journal of {folder.name}: {100 * done // max(size, 1)} % of {size >> 20} MiB")

    opened = open_sweep(folder, tell)
    if said_at > begun:
        clear_passing()
    return opened


@contextlib.contextmanager
def following(
    name: str | None, sweep: SweepFolder, repository: Path | None = None, *, is_awaited: bool = False
) -> Iterator[None]:
    """Have a run of `mngr tmr` written down while it goes on, by a process that ends with this one."""
    run = run_of_tmr(name)
    if run is None:
        yield
        return
    from swarm_tui.adapters.environment import own_environment
    from swarm_tui.adapters.process import is_alive, start_detached
    from swarm_tui.journal.append import engine_process_id

    words = [sys.executable, "-m", "swarm_tui.tmr.follow", str(run), *([str(repository)] if repository else [])]
    environment = own_environment() | {"PYTHONPATH": str(Path(__file__).parents[2])}
    process = start_detached(words, cwd=Path.cwd(), environment=environment, log=sweep.engine_log)
    deadline = time.monotonic() + _START_LIMIT
    while is_awaited and engine_process_id(sweep.lock) is None and is_alive(process) and time.monotonic() < deadline:
        time.sleep(0.05)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)


def run_of_tmr(name: str | None) -> Path | None:
    """Return the folder that a name leads to, if a run of `mngr tmr` left it."""
    path = Path(name).expanduser() if name else None
    if path is None or not path.is_dir() or (path / "sweep.json").exists():
        return None
    from swarm_tui.tmr.run_folder import is_run_folder

    return path.resolve() if is_run_folder(path) else None

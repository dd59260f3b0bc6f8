"""`swarm-tui simulate`: open the room on a simulated sweep of any size."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from pathlib import Path

from swarm_tui.cli.open import require_terminal
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.options import is_possible_budget
from swarm_tui.room.splash import splash

DESCRIPTION = """\
Write a simulated sweep to a folder and open the room on it. No agent and no test runs, and only the folder is written.
The simulation handles requests as an engine does (stop, retry, hold, slots). It stops when you quit the room."""
EXAMPLES = """\
  swarm-tui simulate                                   120 tests, in a temporary folder
  swarm-tui simulate --tests 10000 --rate 1000         a load test of the room
  swarm-tui simulate --hosts 8 --slots 32              eight hosts, one of them unreachable at times
  swarm-tui simulate --headless --seconds 0 --ahead 0.6 /tmp/sweep   write a sweep with 60 % of tests done"""

APPEARS_WITHIN = 20.0


_RANGES = (("tests", 1, inf), ("rate", 0, inf), ("slots", 0, inf), ("hosts", 0, inf), ("ahead", 0, 1.0))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="write to this folder; it must be new or empty"
    )
    parser.add_argument("--tests", type=int, default=120, metavar="N", help="number of tests (default: 120)")
    parser.add_argument("--rate", type=float, default=20.0, metavar="R", help="events per second (default: 20)")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="stop after this many seconds (default: play to the end)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="K", help="the random seed (default: 1)")
    parser.add_argument(
        "--slots", type=int, default=24, metavar="N", help="agents running at the same time (default: 24)"
    )
    parser.add_argument("--budget", type=float, metavar="DOLLARS", help="limit the cost of the sweep")
    parser.add_argument(
        "--hosts", type=int, default=0, metavar="N", help="number of hosts (default: 0, only this machine)"
    )
    parser.add_argument(
        "--ahead",
        type=float,
        default=0.0,
        metavar="F",
        help="the share of tests that are done at the start, 0 to 1 (default: 0)",
    )
    parser.add_argument("--headless", action="store_true", help="do not open the room")
    parser.add_argument("--ascii", action="store_true", help="use only ASCII characters")


def run(arguments: argparse.Namespace) -> int:
    for name, least, most in _RANGES:
        value = getattr(arguments, name)
        if not least <= value <= most:
            raise UsageError(
                f"invalid value for --{name}: {value:g}", f"use {least} {'or more' if most == inf else f'to {most:g}'}"
            )
    if arguments.budget is not None and not is_possible_budget(arguments.budget):
        raise UsageError(f"invalid value for --budget: {arguments.budget:g}", "use dollars, from 0.01 to 1,000,000")
    if not arguments.headless:
        require_terminal()
    with _folder(arguments) as folder:
        if arguments.headless:
            with _feeder(arguments, folder) as is_alive:
                print(folder)
                while is_alive():
                    time.sleep(0.05)
            return 0
        with splash(folder.name, is_ascii=arguments.ascii), _feeder(arguments, folder) as is_alive:
            from swarm_tui.room.entry import open_room

            _wait_for_sweep(folder, is_alive)
            return open_room(folder, ascii=arguments.ascii)


@contextlib.contextmanager
def _folder(arguments: argparse.Namespace) -> Iterator[Path]:
    if arguments.folder is not None:
        folder = arguments.folder.expanduser().absolute()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is not empty", "name a new or empty folder")
        yield folder
        return
    if arguments.headless:
        raise UsageError("--headless requires FOLDER", "name a new or empty folder")
    with tempfile.TemporaryDirectory(prefix="swarm-simulated-", ignore_cleanup_errors=True) as place:
        yield Path(place) / time.strftime("%Y%m%d-%H%M%S")


@contextlib.contextmanager
def _feeder(arguments: argparse.Namespace, folder: Path) -> Iterator[Callable[[], bool]]:
    """Start the process that writes the simulated sweep; yield whether it is alive."""
    # Imports asyncio, which the first frame does not wait for.
    from swarm_tui.adapters.processes.run import is_alive, start_detached

    words = [sys.executable, "-m", "swarm_tui.simulate.feeder", str(folder)]
    for name in ("tests", "rate", "seed", "slots", "hosts", "ahead"):
        words += [f"--{name}", str(getattr(arguments, name))]
    for name in ("seconds", "budget"):
        if getattr(arguments, name) is not None:
            words += [f"--{name}", str(getattr(arguments, name))]
    package_folder = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": str(package_folder)}
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.parent / f"{folder.name}.feeder.log"
    process = start_detached(words, cwd=Path.cwd(), environment=environment, log=log)
    try:
        yield partial(is_alive, process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
        if log.exists() and not log.stat().st_size:
            log.unlink()


def _wait_for_sweep(folder: Path, is_alive: Callable[[], bool]) -> None:
    end = time.monotonic() + APPEARS_WITHIN
    while not (folder / "sweep.json").is_file():
        if time.monotonic() > end or not is_alive():
            raise SwarmError("the simulated sweep did not start", f"see {folder.parent / folder.name}.feeder.log")
        time.sleep(0.01)

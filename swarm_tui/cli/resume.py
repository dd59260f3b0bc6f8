"""`swarm-tui resume`: starts an engine again for a sweep, however the last one ended."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from swarm_tui.cli.sweep_options import add_display_options, show_sweep

DESCRIPTION = """Takes a sweep up again: after a crash, a kill, a reboot or a stop. Agents that still live are adopted,
results that are there stay, nothing is launched twice."""
EXAMPLES = """\
  swarm-tui resume                          the newest sweep of this repository
  swarm-tui resume 20261118 --relaunch      tests whose agents are gone get a new one
  swarm-tui resume --headless               progress on stderr instead of the room"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument(
        "--relaunch", action="store_true", help="a new agent for each test whose agent is gone; else it is failed"
    )
    parser.add_argument("--slots", type=int, metavar="N", help="so many agents work at once from now on")
    add_display_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.engine_requests import wait_for_release
    from swarm_tui.cli.progress import print_progress
    from swarm_tui.cli.sweeps import opened_sweep
    from swarm_tui.engine.resume import check_continued
    from swarm_tui.engine.start import start_engine
    from swarm_tui.errors import UsageError
    from swarm_tui.journal.append import engine_process_id
    from swarm_tui.journal.requests import append_request
    from swarm_tui.model.requests import RequestKind

    if arguments.slots is not None and arguments.slots < 1:
        raise UsageError(f"--slots {arguments.slots} would let no agent work", "give 1 or more")
    opened = opened_sweep(arguments.sweep, Path.cwd())
    folder, spec = opened.folder, opened.spec
    asyncio.run(check_continued(folder, spec))
    wait_for_release(opened)
    process_id = engine_process_id(folder.lock)
    if process_id is not None:
        raise UsageError(
            f"an engine works on {folder.name} already (process {process_id})", "`swarm-tui open` shows it"
        )
    if arguments.slots is not None:
        append_request(folder, RequestKind.SLOTS, slots=arguments.slots)
    missing = [name for name in spec.engine_environment if name not in os.environ]
    if missing:
        print_progress(f"not set here, so that new agents go without: {', '.join(missing)}")
    start_engine(folder, spec.engine_environment, is_relaunching=arguments.relaunch, say=print_progress)
    print_progress(f"sweep {folder.name} is taken up again")
    return show_sweep(folder, arguments, known=opened)

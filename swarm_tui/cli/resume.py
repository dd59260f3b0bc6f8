"""`swarm-tui resume`: start a new engine for a sweep."""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

from swarm_tui.cli.engine_requests import wait_for_release
from swarm_tui.cli.progress import opened_sweep, print_progress
from swarm_tui.cli.sweep_options import add_display_options, checked_ci_output, show_sweep
from swarm_tui.errors import UsageError
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.sweep.start import start_engine

DESCRIPTION = """Resume a sweep after a stop, a crash, a kill or a reboot. Running agents continue, results are
kept, and no test gets a second agent."""
EXAMPLES = """\
  swarm-tui resume                          resume the newest sweep of this repository
  swarm-tui resume 20261118 --relaunch      launch new agents for tests whose agents are gone
  swarm-tui resume --headless               print progress instead of opening the room"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument(
        "--relaunch", action="store_true", help="launch a new agent for each test whose agent is gone (default: error)"
    )
    parser.add_argument("--slots", type=int, metavar="N", help="run up to N agents at the same time")
    add_display_options(parser)


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.sweep.resume import check_continued

    output = checked_ci_output(arguments)
    if arguments.slots is not None and arguments.slots < 1:
        raise UsageError(f"invalid value for --slots: {arguments.slots}", "use 1 or more")
    opened = opened_sweep(arguments.sweep, Path.cwd())
    folder, spec = opened.folder, opened.spec
    asyncio.run(check_continued(folder, spec))
    wait_for_release(opened)
    process_id = engine_process_id(folder.lock)
    if process_id is not None:
        raise UsageError(
            f"{folder.name} already has an engine (process {process_id})", "to see the sweep, run `swarm-tui open`"
        )
    if arguments.slots is not None:
        append_request(folder, RequestKind.SLOTS, slots=arguments.slots)
    missing = [name for name in spec.engine_environment if name not in os.environ]
    if missing:
        print_progress(f"not set here, so new agents do not get them: {', '.join(missing)}")
    start_engine(folder, spec.engine_environment, is_relaunching=arguments.relaunch, say=print_progress)
    print_progress(f"sweep {folder.name} resumed")
    return show_sweep(folder, arguments, known=opened, output=output)

"""`swarm-tui stop`: stop a sweep that can be resumed later."""

from __future__ import annotations

import argparse
from pathlib import Path

from swarm_tui.cli.engine_requests import send_request, wait_for_end, wait_for_release
from swarm_tui.cli.progress import opened_sweep, print_progress
from swarm_tui.journal.requests import RequestKind

DESCRIPTION = """Stop a sweep: launch no more agents, pull submitted work, stop the other agents and keep their commits.
You can resume the sweep with `swarm-tui resume`."""
EXAMPLES = """\
  swarm-tui stop               stop the newest sweep of this repository
  swarm-tui stop 20261118      stop this sweep"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.strength.review import STOPPED_MEASURING, turn_of_sweep

    opened = opened_sweep(arguments.sweep, Path.cwd())
    wait_for_release(opened)
    if not opened.has_running_engine:
        if turn_of_sweep(opened.folder).stop_and_wait():
            print_progress(STOPPED_MEASURING)
        else:
            print_progress(f"nothing to stop: no engine is running for {opened.folder.name}")
        return 0
    send_request(opened, RequestKind.STOP_SWEEP)
    print_progress(f"stopping {opened.folder.name}: submitted work is pulled, the other agents are stopped")
    wait_for_end(opened)
    print_progress(f"stopped; to resume: `swarm-tui resume {opened.folder.name}`")
    return 0

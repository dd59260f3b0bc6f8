"""`swarm-tui stop`: stops a sweep so that it can be resumed."""

from __future__ import annotations

import argparse
from pathlib import Path

DESCRIPTION = """Stops a sweep: nothing more is launched, work that is handed in is harvested, the other agents are
stopped and what they have committed is kept. `swarm-tui resume` takes it up again."""
EXAMPLES = """\
  swarm-tui stop               the newest sweep of this repository
  swarm-tui stop 20261118      another one"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.engine_requests import send_request, wait_for_end, wait_for_release
    from swarm_tui.cli.progress import print_progress
    from swarm_tui.cli.sweeps import opened_sweep
    from swarm_tui.model.requests import RequestKind
    from swarm_tui.teeth.opening import turn_of_sweep
    from swarm_tui.teeth.turn import STOPPED_MEASURING

    opened = opened_sweep(arguments.sweep, Path.cwd())
    if not opened.spec.why_not_continued:
        wait_for_release(opened)
    if not opened.has_running_engine and not opened.spec.why_not_continued:
        if turn_of_sweep(opened.folder).stop_and_wait():
            print_progress(STOPPED_MEASURING)
        else:
            print_progress(f"no engine works on {opened.folder.name}: there is nothing to stop")
        return 0
    send_request(opened, RequestKind.STOP_SWEEP)
    print_progress(f"{opened.folder.name} is stopping: what is handed in is harvested, the other agents are stopped")
    wait_for_end(opened)
    print_progress(f"stopped; `swarm-tui resume {opened.folder.name}` takes it up again")
    return 0

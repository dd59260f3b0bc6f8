"""`swarm-tui clean`: remove the agents of a sweep with their copies and refs, after listing the losses."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.engine_requests import wait_for_release
from swarm_tui.cli.progress import opened_sweep, print_progress
from swarm_tui.errors import UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.sweep.clean import Leftovers

DESCRIPTION = """Remove what a sweep left outside its folder: agents, their copies of the repository, refs below
refs/swarm, the files and entries that mngr and Claude Code created for these copies in your home folder, and the mngr
home and tmux server of a demo. Integrated and reviewed branches are kept. The folder of the
sweep with all pulled work is kept unless you give --folder. swarm-tui first lists the losses and asks."""
EXAMPLES = """\
  swarm-tui clean                   the newest sweep of this repository
  swarm-tui clean 20261118 --yes    do not ask, for scripts
  swarm-tui clean --folder          also remove the sweep's folder: journal, reports, transcripts, verdicts"""

_LISTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--folder", action="store_true", help="also remove the sweep's folder")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.strength.review import STOPPED_MEASURING, turn_of_sweep
    from swarm_tui.sweep.clean import find_leftovers, original_of, remove_folder, remove_leftovers

    opened = opened_sweep(arguments.sweep, Path.cwd())
    wait_for_release(opened)
    leftovers = asyncio.run(find_leftovers(opened))
    measuring = turn_of_sweep(opened.folder)
    original = original_of(opened)
    if original is not None:
        print_progress(f"{opened.folder.root} is a copy; its agents and refs belong to {original}")
    if leftovers.is_nothing and not arguments.folder:
        is_stopped = measuring.stop_and_wait()
        print_progress(STOPPED_MEASURING if is_stopped else f"nothing to clean in {opened.folder.name}")
        return 0
    if measuring.progress() is not None:
        print_progress("stops the running check of test strength")
    for line in _removal_lines(leftovers, opened.folder.root if arguments.folder else None):
        print_progress(line)
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise UsageError("cannot ask for confirmation without a terminal", "to remove all of this, add --yes")
        if not _confirm():
            print_progress("nothing was removed")
            return 1
    measuring.stop_and_wait()
    problems = asyncio.run(remove_leftovers(opened, leftovers))
    # The folder has the only record of what is left on other hosts.
    if arguments.folder and not leftovers.hosts.unreached:
        problems += remove_folder(opened.folder.root)
    for problem in problems:
        print_progress(f"could not remove: {plain(problem, 300)}")
    return 1 if problems else 0


def _removal_lines(leftovers: Leftovers, folder: Path | None) -> list[str]:
    lines = []
    if leftovers.agents:
        number = len(leftovers.agents)
        agents = "1 agent with its copy" if number == 1 else f"{number} agents with their copies"
        lines.append(f"removes {agents} of the repository")
    if leftovers.made:
        lines.append(f"destroys the hosts created for it, with all their data: {', '.join(leftovers.made)}")
    if leftovers.hosts.names:
        lines.append(f"removes its folder on {', '.join(leftovers.hosts.names)}")
    if leftovers.hosts.unreached:
        lines.append(f"skips hosts that do not answer: {', '.join(leftovers.hosts.unreached)}")
    if leftovers.refs:
        lines.append(f"removes {counted(len(leftovers.refs), 'ref')} of the base and the agents' work")
    if leftovers.home.removable:
        lines.append(f"removes what its agents left in your home folder: {'; '.join(leftovers.home.removable)}")
    if leftovers.private_home is not None:
        lines.append(f"removes the mngr home and tmux server created for it: {leftovers.private_home}")
    if folder is not None:
        lines.append(f"removes the sweep's folder with journal, reports, transcripts and verdicts: {folder}")
    lines += [f"keeps {plain(kept, 300)}" for kept in leftovers.home.kept]
    if leftovers.losses:
        lines.append("this will be lost:")
        lines += [f"  {plain(loss, 300)}" for loss in leftovers.losses[:_LISTED]]
        if len(leftovers.losses) > _LISTED:
            lines.append(f"  and {len(leftovers.losses) - _LISTED} more")
    return lines


def _confirm() -> bool:
    print("Remove? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")

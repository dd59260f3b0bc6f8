"""`swarm-tui clean`: removes a sweep's agents, their copies and refs, after listing what would be lost."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.engine.cleaning import Leftovers

DESCRIPTION = """Removes what a sweep has left outside its folder: its agents with their copies of the repository, the
refs under refs/swarm, and the mngr home and tmux server of a demo. Integrated and reviewed branches stay, and so does
the sweep's folder with everything that was pulled, unless --folder is given. What would be lost is listed, then it
asks."""
EXAMPLES = """\
  swarm-tui clean                   the newest sweep of this repository
  swarm-tui clean 20261118 --yes    without a question, for scripts
  swarm-tui clean --folder          the sweep's folder too: journal, outcomes, transcripts, verdicts"""

_LISTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--folder", action="store_true", help="remove the sweep's folder too")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.engine_requests import wait_for_release
    from swarm_tui.cli.progress import print_progress
    from swarm_tui.cli.sweeps import opened_sweep
    from swarm_tui.engine.cleaning import find_leftovers, original_of, remove_folder, remove_leftovers
    from swarm_tui.errors import UsageError
    from swarm_tui.teeth.opening import turn_of_sweep
    from swarm_tui.teeth.turn import STOPPED_MEASURING

    opened = opened_sweep(arguments.sweep, Path.cwd())
    wait_for_release(opened)
    leftovers = asyncio.run(find_leftovers(opened))
    measuring = turn_of_sweep(opened.folder)
    original = original_of(opened)
    if original is not None:
        print_progress(f"{opened.folder.root} is a copy: agents and refs belong to {original}")
    if leftovers.is_nothing and not arguments.folder:
        is_stopped = measuring.stop_and_wait()
        print_progress(STOPPED_MEASURING if is_stopped else f"{opened.folder.name} has left nothing to clean")
        return 0
    if measuring.progress() is not None:
        print_progress("stops the measuring of changed tests")
    for line in _removal_lines(leftovers, opened.folder.root if arguments.folder else None):
        print_progress(line)
    if not arguments.yes:
        if not sys.stdin.isatty():
            raise UsageError("nobody is there to be asked", "give --yes when this is what you want")
        if not _confirm():
            print_progress("nothing was removed")
            return 1
    measuring.stop_and_wait()
    problems = asyncio.run(remove_leftovers(opened, leftovers))
    # Only by its records what is left on other hosts can be found again.
    if arguments.folder and not leftovers.hosts.unreached:
        problems += remove_folder(opened.folder.root)
    for problem in problems:
        print_progress(f"could not be removed: {plain(problem, 300)}")
    return 1 if problems else 0


def _removal_lines(leftovers: Leftovers, folder: Path | None) -> list[str]:
    lines = []
    if leftovers.agents:
        number = len(leftovers.agents)
        whose = "1 agent with its copy" if number == 1 else f"{number} agents with their copies"
        lines.append(f"removes {whose} of the repository")
    if leftovers.made:
        lines.append(f"destroys the hosts that were made for it, with all that is on them: {', '.join(leftovers.made)}")
    if leftovers.hosts.names:
        lines.append(f"removes its folder on {', '.join(leftovers.hosts.names)}")
    if leftovers.hosts.unreached:
        lines.append(f"leaves what is on {', '.join(leftovers.hosts.unreached)}, which cannot be reached now")
    if leftovers.refs:
        lines.append(f"removes {len(leftovers.refs)} refs of agents' work")
    if leftovers.private_home is not None:
        lines.append(f"removes the mngr home and tmux server that were made for it: {leftovers.private_home}")
    if folder is not None:
        lines.append(f"removes the sweep's folder, with journal, outcomes, transcripts and verdicts: {folder}")
    if leftovers.losses:
        lines.append("lost for good:")
        lines += [f"  {plain(loss, 300)}" for loss in leftovers.losses[:_LISTED]]
        if len(leftovers.losses) > _LISTED:
            lines.append(f"  and {len(leftovers.losses) - _LISTED} more")
    return lines


def _confirm() -> bool:
    print("Remove? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")

"""`swarm-tui watch`: the room on agents of mngr that no sweep made."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.model.shapes import ShownSweep
    from swarm_tui.watching.conditions import Conditions

DESCRIPTION = """\
Open a room on the agents that mngr knows, whoever made them: yours, those of sweeps, on this machine and on others.
Looking changes nothing. Agents of this machine are there at once, and what they do is seen as it happens; those on
other machines come as `mngr list` tells of them, every 15 seconds or more. Conditions are mngr's own (CEL, as for
`mngr list`); mngr judges them, which takes it some seconds.

`b` in the room groups them by project, host, type, state or one of their labels."""
EXAMPLES = """\
  swarm-tui watch                                       every agent
  swarm-tui watch --include 'labels.project == "shop"'  those of one project
  swarm-tui watch --exclude 'state == "STOPPED"'        those that are not stopped
  swarm-tui watch --json                                once, for a script: the shape of `status --json`"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--include", action="append", default=[], metavar="CEL", help="only agents for which this holds"
    )
    parser.add_argument("--exclude", action="append", default=[], metavar="CEL", help="no agents for which this holds")
    parser.add_argument("--json", action="store_true", help="print all agents once, as JSON")
    parser.add_argument("--plain", action="store_true", help="print all agents once, as plain lines")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII signs only")


def run(arguments: argparse.Namespace) -> int:
    if arguments.json or arguments.plain:
        return _print_once(arguments)
    return _open_room(arguments)


def _print_once(arguments: argparse.Namespace) -> int:
    import asyncio

    from swarm_tui.watching.observer import look_once

    with _watch(arguments) as (folder, conditions):
        asyncio.run(look_once(folder, conditions))
        if arguments.json:
            print(json.dumps(_described(folder), indent=1))
            return 0
        from swarm_tui.cli.open import print_plain

        return print_plain(folder)


def _described(folder: SweepFolder) -> ShownSweep:
    from swarm_tui.cli.status import describe_sweep
    from swarm_tui.journal.open import open_sweep

    return describe_sweep(open_sweep(folder))


def _open_room(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.open import require_terminal
    from swarm_tui.room.splash import splash

    require_terminal("`swarm-tui watch --plain` prints all agents once")
    with splash("watch", panel="Agents", is_ascii=arguments.ascii), _watch(arguments) as (folder, conditions):
        from swarm_tui.watching.opening import ObserverProcess

        # It takes its first look while the room's modules are imported.
        with closing(ObserverProcess(folder, conditions)) as observer:
            from swarm_tui.room.entry import open_room

            observer.wait_for_first_look()
            return open_room(folder.root, ascii=arguments.ascii)


@contextmanager
def _watch(arguments: argparse.Namespace) -> Iterator[tuple[SweepFolder, Conditions]]:
    """Begin a watch of the agents that the arguments mean."""
    from swarm_tui.watching.conditions import Conditions
    from swarm_tui.watching.opening import watch_folder

    with watch_folder("agents of mngr") as folder:
        yield folder, Conditions(tuple(arguments.include), tuple(arguments.exclude))

"""`swarm-tui watch`: open the room on all agents of mngr."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from swarm_tui.cli.open import print_plain, require_terminal
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.room.splash import splash

if TYPE_CHECKING:
    from swarm_tui.model.shapes import SweepJson
    from swarm_tui.watch.agents import Conditions

DESCRIPTION = """\
Open the room on all agents of mngr: yours and those of sweeps, on this machine and on other hosts. This does not change
any agent. Agents on this machine appear immediately and update live. Agents on other hosts come from `mngr list`, every
15 seconds or more. Filters are CEL expressions, as for `mngr list`; mngr evaluates them, which takes some seconds.

Press `b` in the room to group agents by project, host, type, state or label."""
EXAMPLES = """\
  swarm-tui watch                                       show all agents
  swarm-tui watch --include 'labels.project == "shop"'  show the agents of one project
  swarm-tui watch --exclude 'state == "STOPPED"'        hide stopped agents
  swarm-tui watch --json                                print once, in the format of `status --json`"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--include", action="append", default=[], metavar="CEL", help="show only agents that match; repeatable"
    )
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="CEL", help="hide agents that match; repeatable"
    )
    parser.add_argument("--json", action="store_true", help="print all agents once, as JSON")
    parser.add_argument("--plain", action="store_true", help="print all agents once, as plain lines")
    parser.add_argument("--ascii", action="store_true", help="use only ASCII characters")


def run(arguments: argparse.Namespace) -> int:
    if arguments.json or arguments.plain:
        return _print_once(arguments)
    return _open_room(arguments)


def _print_once(arguments: argparse.Namespace) -> int:
    import asyncio

    from swarm_tui.watch.observer import look_once

    with _watch(arguments) as (folder, conditions):
        asyncio.run(look_once(folder, conditions))
        if arguments.json:
            print(json.dumps(_described(folder), indent=1))
            return 0
        return print_plain(folder)


def _described(folder: SweepFolder) -> SweepJson:
    from swarm_tui.cli.status import describe_sweep
    from swarm_tui.journal.open import open_sweep

    return describe_sweep(open_sweep(folder))


def _open_room(arguments: argparse.Namespace) -> int:
    require_terminal("run `swarm-tui watch --plain` instead")
    with splash("watch", panel="Agents", is_ascii=arguments.ascii), _watch(arguments) as (folder, conditions):
        from swarm_tui.watch.start import ObserverProcess

        # Its first poll runs while the room is imported.
        with closing(ObserverProcess(folder, conditions)) as observer:
            from swarm_tui.room.entry import open_room

            observer.wait_for_first_look()
            return open_room(folder.root, ascii=arguments.ascii)


@contextmanager
def _watch(arguments: argparse.Namespace) -> Iterator[tuple[SweepFolder, Conditions]]:
    """Yield the folder and the filters of a watch."""
    from swarm_tui.watch.agents import Conditions
    from swarm_tui.watch.start import watch_folder

    with watch_folder("agents of mngr") as folder:
        yield folder, Conditions(tuple(arguments.include), tuple(arguments.exclude))

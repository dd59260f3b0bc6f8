"""`swarm-tui open`: the room on a sweep; also what `swarm-tui` without a command does."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.sweeps import add_moment_option, add_repository_option
from swarm_tui.errors import UsageError

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder

DESCRIPTION = """\
Open the room on a sweep: every test in one grid, live. Without a name, on the newest sweep of this repository.
Looking changes nothing; a folder from another machine can be opened too. `?` in the room shows its keys.

$XDG_CONFIG_HOME/swarm-tui/config.toml may set a theme, notices and keys:
  [room]
  theme = "nord"
  notify = "bell"                # of this terminal: or "desktop", "none"
  [notify]                       # when you are away, sent by the engine
  command = ["ntfy", "publish", "sweeps"]
  webhook = "https://example.org/hook"
  desktop = true
  [keys]
  "sweep.wanted" = ["w", "n"]    # `?` in the room lists the names"""
EXAMPLES = """\
  swarm-tui                              the newest sweep here
  swarm-tui open 20261118                the sweep whose id begins so
  swarm-tui open ./copied/20261118-0612  a folder, also from another machine
  swarm-tui open ./tmr_20260514184215    what a run of `mngr tmr` left behind, or is doing
  swarm-tui open --at 12:04              as it was then; `[` and `]` go on from there
  swarm-tui open --plain                 the same as lines, without signs or colours"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP|FOLDER", help="an id, the beginning of one, or a folder")
    parser.add_argument("--ascii", action="store_true", help="draw with ASCII signs only")
    parser.add_argument("--plain", action="store_true", help="print what the room shows as plain lines, and end")
    add_moment_option(parser)
    add_repository_option(parser)


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.sweeps import chosen_sweep, following, repository_root
    from swarm_tui.journal.folder import list_sweeps

    here = repository_root(Path.cwd())
    is_first_run = arguments.sweep is None and not list_sweeps(here) and not arguments.plain and not arguments.at
    folder = None if is_first_run else chosen_sweep(arguments.sweep, Path.cwd(), arguments.repository)
    if arguments.plain and folder is not None:
        return print_plain(folder, arguments.at)
    require_terminal()
    if folder is None:
        return _first_run(arguments.ascii)
    with following(arguments.sweep, folder, arguments.repository):
        return show_room(folder, is_ascii=arguments.ascii, at=arguments.at)


def print_plain(folder: SweepFolder, at: str | None = None) -> int:
    """Print what the room shows of a sweep, now or at an earlier moment, as lines."""
    from swarm_tui.cli.sweeps import moment_in
    from swarm_tui.room.plain import plain_lines_of
    from swarm_tui.room.store import PastMoment, Store

    store = Store(folder)
    if at is not None:
        history, moment = moment_in(folder, at)
        offset = history.moment_at(moment)
        store.show(PastMoment(offset, moment, history.state_at(offset)))
    else:
        while store.read_new_events():
            pass
    print("\n".join(plain_lines_of(store)))
    return 0


def show_room(folder: SweepFolder, *, is_ascii: bool = False, at: str | None = None) -> int:
    """Open the room on a sweep, now or at an earlier moment."""
    from swarm_tui.room.splash import splash

    with splash(folder.name, is_ascii=is_ascii):
        from swarm_tui.cli.sweeps import moment_in
        from swarm_tui.room.entry import open_room

        return open_room(folder.root, ascii=is_ascii, at=moment_in(folder, at)[1] if at is not None else None)


def _first_run(is_ascii: bool) -> int:
    from swarm_tui.cli.main import run_command_line
    from swarm_tui.room.splash import splash

    with splash("", panel="Welcome", is_ascii=is_ascii):
        from swarm_tui.room.first_run import FirstRunApp

        app = FirstRunApp(is_ascii=is_ascii)
        words = app.run()
    return run_command_line(words) if words else app.return_code or 0


def has_terminal() -> bool:
    """Return whether the room can be shown: it reads stdin and draws on stderr."""
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()


def require_terminal(otherwise: str = "`swarm-tui status` prints where the sweep stands") -> None:
    """Raise UsageError without a terminal, with what can be done there."""
    if not has_terminal():
        raise UsageError("the room needs a terminal", otherwise)

"""`swarm-tui open`: open the room on a sweep (the default command)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.main import run_command_line
from swarm_tui.cli.sweeps import add_moment_option, chosen_sweep, repository_root
from swarm_tui.errors import UsageError
from swarm_tui.journal.folder import SweepFolder, list_sweeps
from swarm_tui.room.splash import splash

if TYPE_CHECKING:
    from swarm_tui.journal.history import JournalHistory

DESCRIPTION = """\
Open the room on a sweep: a live grid of all tests. The default is the newest sweep of this repository.
Opening a sweep does not change it. You can also open a folder from another machine. Press `?` for the keys.

You can set a theme, notifications, prices and keys in $XDG_CONFIG_HOME/swarm-tui/config.toml:
  [room]
  theme = "nord"
  notify = "bell"                # in this terminal: "bell", "desktop" or "none"
  [notify]                       # sent by the engine while you are away
  command = ["ntfy", "publish", "sweeps"]
  webhook = "https://example.org/hook"
  desktop = true
  [prices]                       # dollars for a million tokens of a model
  "my-model" = { input = 2, output = 8, cache_read = 0.2 }
  [keys]
  "sweep.wanted" = ["w", "n"]    # press `?` in the room for the names"""
EXAMPLES = """\
  swarm-tui                              open the newest sweep of this repository
  swarm-tui open 20261118                open the sweep whose id begins with 20261118
  swarm-tui open ./copied/20261118-0612  open a folder
  swarm-tui open --at 12:04              show the sweep as it was at 12:04; press `[` and `]` to move
  swarm-tui open --plain                 print plain lines, without colours"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP|FOLDER", help="an id, the beginning of one, or a folder")
    parser.add_argument("--ascii", action="store_true", help="use only ASCII characters")
    parser.add_argument("--plain", action="store_true", help="print plain lines instead of opening the room")
    add_moment_option(parser)


def run(arguments: argparse.Namespace) -> int:
    here = repository_root(Path.cwd())
    is_first_run = arguments.sweep is None and not list_sweeps(here) and not arguments.plain and not arguments.at
    folder = None if is_first_run else chosen_sweep(arguments.sweep, Path.cwd())
    if arguments.plain and folder is not None:
        return print_plain(folder, arguments.at)
    require_terminal()
    if folder is None:
        return _first_run(arguments.ascii)
    return show_room(folder, is_ascii=arguments.ascii, at=arguments.at)


def print_plain(folder: SweepFolder, at: str | None = None) -> int:
    """Print the sweep as plain lines, now or at an earlier moment."""
    from swarm_tui.room.store import PastMoment, Store
    from swarm_tui.room.view import plain_lines_of

    store = Store(folder)
    if at is not None:
        history, moment = _moment_in(folder, at)
        offset = history.moment_at(moment)
        store.show(PastMoment(offset, moment, history.state_at(offset)))
    else:
        while store.read_new_events():
            pass
    print("\n".join(plain_lines_of(store)))
    return 0


def show_room(folder: SweepFolder, *, is_ascii: bool = False, at: str | None = None) -> int:
    """Open the room on a sweep, now or at an earlier moment."""
    with splash(folder.name, is_ascii=is_ascii):
        from swarm_tui.room.entry import open_room

        return open_room(folder.root, ascii=is_ascii, at=_moment_in(folder, at)[1] if at is not None else None)


def _moment_in(folder: SweepFolder, at: str) -> tuple[JournalHistory, float]:
    # The first frame does not wait for the modules that fold a journal.
    from swarm_tui.cli.progress import moment_in

    return moment_in(folder, at)


def _first_run(is_ascii: bool) -> int:
    with splash("", panel="Welcome", is_ascii=is_ascii):
        from swarm_tui.room.first_run import FirstRunApp

        app = FirstRunApp(is_ascii=is_ascii)
        words = app.run()
    return run_command_line(words) if words else app.return_code or 0


def has_terminal() -> bool:
    """Return whether stdin, stdout and stderr are terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()


def require_terminal(hint: str = "run `swarm-tui status` instead") -> None:
    """Raise UsageError without a terminal."""
    if not has_terminal():
        raise UsageError("the room requires a terminal", hint)

"""Reads the command line, calls one command, and turns errors into a sentence and an exit code."""

from __future__ import annotations

import argparse
import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Protocol, cast

from swarm_tui import __version__
from swarm_tui.cli.commands import COMMAND_BY_NAME, COMMANDS
from swarm_tui.errors import SwarmError, UsageError

EXIT_INTERRUPTED = 130


class CommandModule(Protocol):
    """What every module of a command offers."""

    DESCRIPTION: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


def run_command_line(words: Sequence[str]) -> int:
    """Run the command that the words name and give its exit code."""
    try:
        return _dispatch(list(words))
    except SwarmError as error:
        print(f"swarm-tui: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("swarm-tui: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has left (`swarm-tui status | head`): nobody is there to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _dispatch(words: list[str]) -> int:
    if words and words[0] in ("-h", "--help", "help") and len(words) == 1:
        print(overview())
        return 0
    if words and words[0] in ("-V", "--version"):
        print(f"swarm-tui {__version__}")
        return 0
    if words and words[0] == "help":
        words = [words[1], "--help"]
    if not words:
        words = ["open"]
    name, *rest = words
    command = COMMAND_BY_NAME.get(name)
    if command is None:
        near = difflib.get_close_matches(name, COMMAND_BY_NAME, n=1)
        meant = f"did you mean `swarm-tui {near[0]}`?" if near else "`swarm-tui --help` lists the commands"
        raise UsageError(f"there is no command {name!r}", meant)
    module = cast(CommandModule, importlib.import_module(command.module))
    parser = build_parser(name, module)
    try:
        arguments = parser.parse_args(rest)
    except SystemExit as exit_request:
        # argparse has printed its own words; its codes are ours: 0 for --help, 2 for misuse.
        return int(exit_request.code or 0)
    return module.run(arguments)


def build_parser(name: str, module: CommandModule) -> argparse.ArgumentParser:
    """Give the parser of one command's words."""
    parser = argparse.ArgumentParser(
        prog=f"swarm-tui {name}",
        description=module.DESCRIPTION,
        epilog=f"examples:\n{module.EXAMPLES.rstrip()}" if module.EXAMPLES else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    return parser


def overview() -> str:
    """Give the text of `swarm-tui --help`."""
    width = max((len(command.name) for command in COMMANDS), default=0)
    rows = "\n".join(f"  {command.name:{width}}  {command.summary}" for command in COMMANDS)
    return (
        "usage: swarm-tui [COMMAND] [OPTIONS]\n\n"
        "One coding agent on every test, one room to watch them, one verdict for each fix.\n\n"
        f"commands (`swarm-tui COMMAND --help` tells more):\n{rows}\n\n"
        "Without a command the room opens on the newest sweep of this repository.\n"
        "exit codes: 0 well, 1 something failed, 2 misuse, 130 interrupted"
    )

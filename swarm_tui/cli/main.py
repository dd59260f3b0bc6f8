"""Reads the command line, calls one command, and turns errors into a sentence and an exit code."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol, cast

from swarm_tui import __version__
from swarm_tui.cli.called_as import as_called
from swarm_tui.cli.commands import COMMAND_BY_NAME, COMMANDS
from swarm_tui.errors import SwarmError, UsageError

EXIT_INTERRUPTED = 130
_WAYS_OUT = {
    errno.EMFILE: ": this shell allows too few open files; `ulimit -n 1024` allows more",
    errno.ENFILE: ": this machine allows no more open files; close programs",
    errno.ENOLCK: ": the disk has no locks, as some network disks; use another one",
    errno.EROFS: ": the disk can only be read; use another one",
    errno.ENOSPC: ": the disk is full; make room and try again",
}


_IN_ASCII = "swarm_tui_in_ascii"


def _write_in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for signs that cannot be written: those that the room has for them with --ascii."""
    from swarm_tui.model.states import MARKS

    assert isinstance(error, UnicodeEncodeError)
    known = {mark.glyph: mark.ascii_glyph for mark in MARKS.values()} | {"…": "..."}
    return "".join(known.get(sign, "?") for sign in error.object[error.start : error.end]), error.end


codecs.register_error(_IN_ASCII, _write_in_ascii)


class CommandModule(Protocol):
    """What every module of a command offers."""

    DESCRIPTION: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


class CommandParser(argparse.ArgumentParser):
    """Reports errors in one sentence; argparse would print all options before it."""

    def format_help(self) -> str:
        return as_called(super().format_help())

    def error(self, message: str) -> NoReturn:
        hint = f"`{self.prog} --help` tells more"
        if message.startswith("unrecognized") and any(action.metavar == "PYTEST_ARG" for action in self._actions):
            hint += "; pytest's own options go after --"
        raise UsageError(message, hint)


def _join_moment(words: Sequence[str]) -> list[str]:
    """Return the words of a command with `--at -10m` as one word: alone, `-10m` would be taken for an option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--at" and word[:1] == "-" and word[1:2].isdigit():
            joined[-1] = f"--at={word}"
        else:
            joined.append(word)
    return joined


def run_command_line(words: Sequence[str]) -> int:
    """Run the command that the words name and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Where there is no UTF-8, a sign that cannot be written is no reason to say nothing.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_IN_ASCII)
    try:
        code = _dispatch(list(words))
        if sys.stdout is not None:
            # Flushed here and not at exit, so that a failed write is reported like any other error.
            sys.stdout.flush()
        return code
    except SwarmError as error:
        _print_error(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _print_error("interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe (`swarm-tui status | head`).
        _discard_output()
        return 1
    except OSError as error:
        _discard_output()
        place = f"{error.filename}: " if error.filename else ""
        if isinstance(error, FileNotFoundError) and not place:
            _print_error("the folder that you are in is gone: `cd` into one that exists")
            return 1
        way_out = _WAYS_OUT.get(error.errno or 0, "")
        _print_error(f"{place}{error.strerror or error}{way_out}")
        return 1


def _print_error(text: str) -> None:
    # If stderr cannot be written, the exit code still reports the error.
    with contextlib.suppress(OSError):
        print(as_called(f"swarm-tui: {text}"), file=sys.stderr, flush=True)


def _discard_output() -> None:
    """Redirect stdout to /dev/null: when Python exits, it would try again to write what it could not write."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str]) -> int:
    if words and words[0] in ("-h", "--help", "help") and len(words) == 1:
        print(as_called(overview()))
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
        import difflib

        near = difflib.get_close_matches(name, COMMAND_BY_NAME, n=1)
        meant = f"did you mean `swarm-tui {near[0]}`?" if near else "`swarm-tui --help` lists the commands"
        if name[:1].isdigit() or "/" in name:
            meant = f"`swarm-tui open {name}` opens that sweep"
        raise UsageError(f"there is no command {name!r}", meant)
    module = cast(CommandModule, importlib.import_module(command.module))
    parser = build_parser(name, module)
    try:
        arguments = parser.parse_args(_join_moment(rest))
    except SystemExit as exit_request:
        # After --help, which argparse prints itself.
        return int(exit_request.code or 0)
    return module.run(arguments)


def build_parser(name: str, module: CommandModule) -> argparse.ArgumentParser:
    """Return the parser of one command's words."""
    parser = CommandParser(
        prog=f"swarm-tui {name}",
        description=module.DESCRIPTION,
        epilog=f"examples:\n{module.EXAMPLES.rstrip()}" if module.EXAMPLES else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    for verb, below in subcommands(parser).items():
        below.formatter_class = argparse.RawDescriptionHelpFormatter
        below.epilog = f"examples:\n{_examples_of(f'swarm-tui {name} {verb}', module.EXAMPLES)}"
    return parser


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of a command's own commands, such as `check` of `tutorial`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _examples_of(words: str, examples: str) -> str:
    """Return those examples that call a command with these words, each with the line that continues it."""
    lines, is_wanted = [], False
    for line in examples.splitlines():
        is_continued = line.startswith("   ")
        is_wanted = is_wanted if is_continued else f"{line.strip()} ".startswith(f"{words} ")
        if is_wanted:
            lines.append(line)
    return "\n".join(lines)


def overview() -> str:
    """Return the text of `swarm-tui --help`."""
    width = max((len(command.name) for command in COMMANDS), default=0)
    rows = "\n".join(f"  {command.name:{width}}  {command.summary}" for command in COMMANDS)
    return (
        "usage: swarm-tui [COMMAND] [OPTIONS]\n\n"
        "One coding agent on every test, one room to watch them, one verdict for each fix.\n\n"
        f"commands (`swarm-tui COMMAND --help` tells more):\n{rows}\n\n"
        "Without a command the room opens on the newest sweep of this repository.\n"
        "exit codes: 0 well, 1 something failed, 2 misuse, 130 interrupted"
    )

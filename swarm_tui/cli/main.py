"""Table of commands."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import errno
import importlib
import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn, Protocol, cast

from swarm_tui import __version__
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.files import read_regular


class Command(NamedTuple):
    """A command of the command line."""

    name: str
    summary: str
    group: str
    """The heading in the help; "" for commands that only other programs call."""

    @property
    def module(self) -> str:
        return f"swarm_tui.cli.{self.name.replace('-', '_')}"


# In the order of `swarm-tui --help`.
COMMANDS: Final[tuple[Command, ...]] = (
    Command("demo", "run a sweep on a sample project, without a model", "sweeps"),
    Command("run", "start a sweep: one agent for each test", "sweeps"),
    Command("open", "open the room on a sweep (the default command)", "sweeps"),
    Command("status", "print the state of each test of a sweep", "sweeps"),
    Command("list", "list the sweeps of this repository", "sweeps"),
    Command("stop", "stop a sweep; you can resume it", "sweeps"),
    Command("resume", "resume a sweep after a stop, a crash or a reboot", "sweeps"),
    Command("request", "change a running sweep: slots, budget, retry, hold, message", "sweeps"),
    Command("integrate", "create the integrated branch of a sweep again", "sweeps"),
    Command("clean", "remove the agents, copies and refs of a sweep", "sweeps"),
    Command("fixes", "review the fixes of a sweep: keep or revert each one", "review"),
    Command("compare", "compare the results of two sweeps", "review"),
    Command("report", "write the results of a sweep as static HTML", "review"),
    Command("pending", "list everything in a sweep that needs you, most urgent first", "agents"),
    Command("answer", "answer a question of an agent, or a group of questions", "agents"),
    Command("attach", "attach this terminal to an agent", "agents"),
    Command("watch", "show all agents of mngr, including those of no sweep", "agents"),
    Command("wait", "wait until a sweep is done, asks or fails", "scripts"),
    Command("events", "print the events of a sweep as lines", "scripts"),
    Command("doctor", "check this machine for missing programs", "tools"),
    Command("hosts", "add, list, check and remove hosts for agents", "tools"),
    Command("tutorial", "check that tests cite a tutorial; have agents write both", "tools"),
    Command("simulate", "open the room on a simulated sweep; no agent or test runs", "tools"),
    Command("completion", "print the completion script of a shell", "tools"),
    Command("record-connect", "attach to an agent and record the terminal (called by mngr)", ""),
)

COMMAND_BY_NAME: Final = {command.name: command for command in COMMANDS}


VARIABLE: Final = "SWARM_CALLED_AS"
# Removed from the environment, so that child processes do not inherit it.
_NAME: Final = os.environ.pop(VARIABLE, "swarm-tui")
_COMMAND: Final = re.compile(
    rf"swarm-tui(?=`|: | \[COMMAND| (?:COMMAND|--help|{'|'.join(command.name for command in COMMANDS)})\b)"
)


def as_called(text: str, name: str = _NAME) -> str:
    """Return the text with `swarm-tui` replaced by the name that the user typed."""
    return _COMMAND.sub(name, text)


EXIT_INTERRUPTED = 130
_HINTS = {
    errno.EMFILE: "raise the limit of open files in this shell: `ulimit -n 1024`",
    errno.ENFILE: "close other programs: this machine has reached its limit of open files",
    errno.ENOLCK: "use another disk: some network file systems do not support locks",
    errno.EROFS: "use another disk: this one is mounted read-only",
    errno.ENOSPC: "free some disk space and try again",
}
_RENAMED_OPTIONS = {
    "--alike": "--pattern",
    "--alone": "--serial",
    "--breaker": "--hold-similar",
    "--no-teeth": "--no-strength",
    "--no-trial": "--no-preflight",
    "--own-home": "--empty-home",
    "--teeth": "--strength",
}
_ASCII_FALLBACK = "swarm_tui_ascii"


def _ascii_text(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII for characters that cannot be encoded: the glyphs that the room uses with --ascii, or "?"."""
    from swarm_tui.model.results import MARKS

    assert isinstance(error, UnicodeEncodeError)
    ascii_of = {mark.glyph: mark.ascii_glyph for mark in MARKS.values()} | {"…": "..."}
    return "".join(ascii_of.get(character, "?") for character in error.object[error.start : error.end]), error.end


codecs.register_error(_ASCII_FALLBACK, _ascii_text)


class CommandModule(Protocol):
    """The interface of each command's module."""

    DESCRIPTION: str
    EXAMPLES: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace) -> int: ...


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError, without the usage text that argparse prints before an error."""

    def format_help(self) -> str:
        return as_called(super().format_help())

    def error(self, message: str) -> NoReturn:
        renamed = self._renamed_option(message)
        if renamed is not None:
            raise UsageError(f"{renamed[0]} was renamed", f"use {renamed[1]}")
        hint = f"run `{self.prog} --help`"
        if message.startswith("unrecognized") and any(action.metavar == "PYTEST_ARG" for action in self._actions):
            hint += "; give options of pytest after --"
        raise UsageError(message, hint)

    def _renamed_option(self, message: str) -> tuple[str, str] | None:
        """Return the old and the new name of a renamed option in argparse's message about unrecognized arguments."""
        if not message.startswith("unrecognized"):
            return None
        options = {option for parser in (self, *subcommands(self).values()) for option in parser._option_string_actions}
        for argument in message.split():
            old = argument.partition("=")[0]
            if _RENAMED_OPTIONS.get(old) in options:
                return old, _RENAMED_OPTIONS[old]
        return None


def _join_moment(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `--at -10m` as `--at=-10m`: argparse would read `-10m` as an option."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] == "--at" and argument[:1] == "-" and argument[1:2].isdigit():
            joined[-1] = f"--at={argument}"
        else:
            joined.append(argument)
    return joined


def run_command_line(words: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_ASCII_FALLBACK)
    try:
        code = _dispatch(list(words))
        if sys.stdout is not None:
            # Flushed here and not at exit, so that a failed write is reported like any other error.
            sys.stdout.flush()
        return code
    except SwarmError as error:
        _print_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        _print_error(SwarmError("interrupted"))
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (`swarm-tui status | head`).
        _discard_output()
        return 1
    except OSError as error:
        _discard_output()
        place = f"{error.filename}: " if error.filename else ""
        if isinstance(error, FileNotFoundError) and not place:
            _print_error(SwarmError("the current folder no longer exists", "`cd` to another folder"))
            return 1
        _print_error(SwarmError(f"{place}{error.strerror or error}", _HINTS.get(error.errno or 0, "")))
        return 1


def _print_error(error: SwarmError) -> None:
    # If stderr cannot be written, the exit code still reports the error.
    with contextlib.suppress(OSError):
        print(as_called(f"swarm-tui: {error.report}"), file=sys.stderr, flush=True)


def _discard_output() -> None:
    """Redirect stdout to /dev/null, so that Python does not repeat the failed write when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str]) -> int:
    if words and words[0] in ("-h", "--help", "help") and len(words) == 1:
        print(as_called(overview()))
        return 0
    if words and words[0] in ("-V", "--version"):
        print(f"swarm-tui {__version__}")
        return 0
    if words == ["--skill"]:
        print(as_called(read_regular(Path(__file__).with_name("skill.md")).decode().rstrip()))
        return 0
    if words and words[0] == "help":
        words = [words[1], "--help"]
    if not words:
        words = ["open"]
    name, *rest = words
    command = COMMAND_BY_NAME.get(name)
    if command is None:
        import difflib

        similar = difflib.get_close_matches(name, COMMAND_BY_NAME, n=1)
        hint = f"did you mean `swarm-tui {similar[0]}`?" if similar else "run `swarm-tui --help` to list the commands"
        if name[:1].isdigit() or "/" in name:
            hint = f"to open this sweep, run `swarm-tui open {name}`"
        raise UsageError(f"unknown command: {name!r}", hint)
    module = cast(CommandModule, importlib.import_module(command.module))
    parser = build_parser(name, module)
    try:
        arguments = parser.parse_args(_join_moment(rest))
    except SystemExit as exit_request:
        # argparse exits after it has printed the help.
        return int(exit_request.code or 0)
    return module.run(arguments)


def build_parser(name: str, module: CommandModule) -> argparse.ArgumentParser:
    """Return the argument parser of a command."""
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
    """Return the parsers of a command's subcommands, such as `check` of `tutorial`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _examples_of(command: str, examples: str) -> str:
    """Return the examples that begin with this command, each with its continuation lines."""
    lines, is_selected = [], False
    for line in examples.splitlines():
        if not line.startswith("   "):
            is_selected = f"{line.strip()} ".startswith(f"{command} ")
        if is_selected:
            lines.append(line)
    return "\n".join(lines)


def overview() -> str:
    """Return the text of `swarm-tui --help`."""
    width = max(len(command.name) for command in COMMANDS)
    groups: dict[str, list[str]] = {}
    for command in COMMANDS:
        if command.group:
            groups.setdefault(command.group, []).append(f"  {command.name:{width}}  {command.summary}")
    listed = "\n\n".join("\n".join([f"{title}:", *rows]) for title, rows in groups.items())
    return (
        "usage: swarm-tui [COMMAND] [OPTIONS]\n\n"
        "Run one coding agent for each pytest test, watch the agents, and review their fixes.\n\n"
        f"{listed}\n\n"
        "Without a command, swarm-tui opens the room on the newest sweep of this repository.\n"
        "`swarm-tui COMMAND --help` lists options and examples; `swarm-tui --skill` is a page for coding agents.\n"
        "exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted"
    )

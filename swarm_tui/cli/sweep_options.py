"""The options that the commands share which begin a sweep, and how they show it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from swarm_tui.model.options import AGENTS, OPTIONS, Option, RunOptions

if TYPE_CHECKING:
    from swarm_tui.engine.order import Order
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.journal.open import OpenedSweep


def add_options(parser: argparse.ArgumentParser, command: str) -> dict[str, argparse._ArgumentGroup]:
    """Declare the options of a command that begins a sweep; return the argument groups by title."""
    groups: dict[str, argparse._ArgumentGroup] = {}
    for option in OPTIONS:
        if command in option.flag.commands:
            title = option.flag.group
            if title not in groups:
                groups[title] = parser.add_argument_group(title)
            add_option(groups[title], option.field)
    add_mngr_option(groups[AGENTS])
    return groups


def add_option(parser: argparse._ActionsContainer, field: str, **changed: Any) -> None:
    """Declare one option by the name of its field; `changed` replaces settings of argparse."""
    option = next(option for option in OPTIONS if option.field == field)
    flag, origin = option.flag, get_origin(option.type)
    settings: dict[str, Any] = {"dest": field, "default": option.default, "help": flag.help}
    if option.type is bool:
        settings["action"] = argparse.BooleanOptionalAction if option.default else "store_true"
    elif choices := _choices_of(option.type):
        settings["choices"] = choices
    else:
        settings |= {"type": _parser_of(option), "metavar": flag.metavar}
        if flag.bare is not None:
            settings |= {"nargs": "?", "const": flag.bare}
        if origin in (tuple, Mapping):
            settings |= {"action": "append", "default": []}
    settings |= changed
    # Some versions of argparse add "(default: True)" to the help of `--this, --no-this`.
    parser.add_argument(flag.name, **settings).help = settings["help"]


def _choices_of(declared: Any) -> list[str]:
    for part in (declared, *get_args(declared)):
        if get_origin(part) is Literal:
            return list(get_args(part))
    return []


def _parser_of(option: Option) -> Callable[[str], Any]:
    parse = option.flag.parse
    if parse is None:
        return next((kind for kind in (int, float) if kind in (option.type, *get_args(option.type))), str)
    return parsed_by(parse)


def parsed_by(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser of words whose ValueError argparse shows."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def add_mngr_option(parser: argparse._ActionsContainer) -> None:
    """Declare --mngr, which depends on the machine and is not kept with the sweep."""
    parser.add_argument("--mngr", metavar="PATH", help="the mngr to use (default: SWARM_MNGR, PATH, our own)")


def add_display_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--headless", action="store_true", help="progress on stderr instead of the room")
    parser.add_argument("--json", action="store_true", help="with --headless: the end state as JSON on stdout")


def order_of(arguments: argparse.Namespace, **besides: Any) -> Order:
    """Return the order that the options describe; `besides` are fields that only one command has."""
    from swarm_tui.engine.order import Order

    given = {field.name: getattr(arguments, field.name) for field in fields(RunOptions) if field.name in arguments}
    given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    if "labels" in given:
        given["labels"] = dict(given["labels"])
    return Order(folder=Path.cwd(), mngr=arguments.mngr, **given | besides)


def show_sweep(folder: SweepFolder, arguments: argparse.Namespace, known: OpenedSweep | None = None) -> int:
    """Show a running sweep: in the room, or without a terminal as progress until its end."""
    from swarm_tui.cli.open import has_terminal, show_room

    if has_terminal() and not arguments.headless:
        return show_room(folder)
    from swarm_tui.cli.progress import follow_sweep

    return follow_sweep(folder, is_json=arguments.json, known=known)

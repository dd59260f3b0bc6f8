"""Options of commands that begin a sweep."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from swarm_tui.agents.prices import read_prices
from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.cli.ci_output import NO_CI_OUTPUT, CiOutput
from swarm_tui.cli.open import has_terminal, show_room
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.folder import SweepFolder, list_sweeps
from swarm_tui.journal.open import OpenedSweep, open_sweep
from swarm_tui.journal.user_files import config_file
from swarm_tui.model.options import AGENTS, OPTIONS, Option, RunOptions
from swarm_tui.model.spec import SweepSpec
from swarm_tui.money.events import limit_text
from swarm_tui.money.forecast import PastSweep, estimate_cost
from swarm_tui.money.prices import find_price

SWEEPS_READ: Final = 5
"""The number of earlier sweeps that an estimate uses."""


def say_cost(spec: SweepSpec, tests: Sequence[str], say: Callable[[str], None]) -> SweepSpec:
    """Report the expected cost of a sweep and whether its budget can be enforced; return it with the estimate."""
    agent_type = agent_type_of_sweep(spec)
    if not agent_type.has_model:
        if spec.has_budget:
            say("the budget has no effect: these agents cost nothing")
        return spec
    past = islice(past_sweeps(spec), SWEEPS_READ)
    estimate = estimate_cost(tests, past, has_integrator=spec.integrator == "agent")
    model = agent_type.model(spec.agent_arguments)
    if model and find_price(read_prices(), model) is None:
        say(f"the price of {model} is unknown, so its cost is shown as ?; add it to [prices] in {config_file()}:")
        say(f'  "{model}" = {{ input = 2, output = 8 }}  # dollars for a million tokens')
        if spec.has_budget:
            say("the budget cannot be enforced without this price")
    elif spec.has_budget and not agent_type.says_cost:
        say(f"{agent_type.title or spec.agent_type} may not report its cost; the budget is not enforced then")
    if estimate is None:
        say("cost: unknown (no earlier sweep here reported it)")
        return spec
    say(f"cost: {estimate.text}{' imputed' if spec.is_cost_imputed else ''}")
    if spec.budget is not None and estimate.dollars > spec.budget:
        say(f"the budget of {limit_text(spec.budget)} is probably too small to launch all tests")
    return dataclasses.replace(spec, estimated_cost=(estimate.dollars, estimate.low, estimate.high))


def past_sweeps(spec: SweepSpec) -> Iterator[PastSweep]:
    """Return the cost of earlier sweeps of this repository with the same agent type, newest first."""
    for folder in reversed(list_sweeps(Path(spec.repository))):
        try:
            earlier = folder.read_spec()
            if (earlier.agent_type, earlier.kind) != (spec.agent_type, spec.kind):
                continue
            state = open_sweep(folder).state
        except SwarmError:
            continue
        integrator = state.integrator.spending if state.integrator is not None else None
        tests = {
            record.test: record.spending.dollars
            for record in state.tests()
            # The cost of running and stopped agents is incomplete.
            if record.result is not None and record.spending.priced and not record.spending.unpriced
        }
        if tests:
            yield PastSweep(tests, integrator.known_dollars if integrator is not None else None)


def add_options(parser: argparse.ArgumentParser, command: str) -> dict[str, argparse._ArgumentGroup]:
    """Declare the options of a command that starts a sweep; return the argument groups by title."""
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
    return argument_parser(option.flag.name, parse)


def argument_parser(flag: str, parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return the parser of an option's value; errors name the option, as those of argparse do."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
        except UsageError as error:
            raise UsageError(f"argument {flag}: {error.message}", error.hint) from error

    return read


def add_mngr_option(parser: argparse._ActionsContainer) -> None:
    """Declare --mngr, which is not saved with the sweep because it depends on the machine."""
    parser.add_argument(
        "--mngr", metavar="PATH", help="use this mngr (default: SWARM_MNGR, then PATH, then the private one)"
    )


def add_display_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--headless", action="store_true", help="print progress on stderr instead of opening the room")
    parser.add_argument("--json", action="store_true", help="with --headless: print the final state as JSON on stdout")
    parser.add_argument(
        "--junit", type=Path, metavar="FILE", help="with --headless: write the integrated branch's results as JUnit XML"
    )
    parser.add_argument(
        "--github", action="store_true", help="with --headless: write GitHub's step summary, outputs and annotations"
    )


def checked_ci_output(arguments: argparse.Namespace) -> CiOutput:
    """Return the files for a CI system; raise UsageError, before anything is launched, if one cannot be written."""
    if (arguments.junit or arguments.github) and not arguments.headless:
        raise UsageError("--junit and --github require --headless", "add --headless")
    output = CiOutput(arguments.junit, arguments.github)
    output.check()
    return output


def read_options(arguments: argparse.Namespace) -> RunOptions:
    """Return the options of a command that starts a sweep."""
    given = {field.name: getattr(arguments, field.name) for field in fields(RunOptions) if field.name in arguments}
    given |= {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    if "labels" in given:
        given["labels"] = dict(given["labels"])
    return RunOptions(**given)


def show_sweep(
    folder: SweepFolder,
    arguments: argparse.Namespace,
    known: OpenedSweep | None = None,
    output: CiOutput = NO_CI_OUTPUT,
) -> int:
    """Show a running sweep in the room, or without a terminal as progress until its end."""
    if has_terminal() and not arguments.headless:
        return show_room(folder)
    from swarm_tui.cli.follow import follow_sweep

    return follow_sweep(folder, is_json=arguments.json, known=known, at_end=output.write)

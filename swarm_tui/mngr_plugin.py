"""`mngr swarm`: the commands of swarm-tui as a plugin of mngr.

mngr imports this module by its entry point each time it starts, so it imports as little of swarm-tui as possible.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import click
from imbue.mngr import hookimpl
from imbue.mngr.config.data_types import PluginConfig
from imbue.mngr.config.plugin_registry import register_plugin_config
from pydantic import Field

from swarm_tui.adapters.processes.foreground import run_in_foreground
from swarm_tui.cli.main import COMMANDS, VARIABLE

NAME: Final = "swarm"
PASSED_ON: Final = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


class SwarmPluginConfig(PluginConfig):
    """The table `[plugins.swarm]` in the settings of mngr."""

    options: Mapping[str, Sequence[str]] = Field(
        default_factory=dict,
        description='Default arguments of a command: options.run = ["--slots", "8"]',
    )


register_plugin_config(NAME, SwarmPluginConfig)


@hookimpl
def register_cli_commands() -> Sequence[click.Command]:
    """Return the commands to add to mngr."""
    swarm = click.Group(
        NAME,
        help="Run one coding agent for each pytest test, watch the agents, and review their fixes (swarm-tui).\n\n"
        "Without a command, mngr swarm opens the room on the newest sweep of this repository.",
        short_help="Run one coding agent for each pytest test, watch the agents, and review their fixes",
        invoke_without_command=True,
        callback=_open,
    )
    for command in COMMANDS:
        words = click.Argument(["words"], nargs=-1, type=click.UNPROCESSED)
        run = click.pass_context(partial(_run, command.name))
        swarm.add_command(
            click.Command(command.name, context_settings=PASSED_ON, params=[words], callback=run, help=command.summary)
        )
    return [swarm]


@click.pass_context
def _open(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        _run("open", context, ())


def _run(name: str, context: click.Context, words: Sequence[str]) -> None:
    """Run a command of swarm-tui with this mngr in a separate process, and exit with its code."""
    configured = [*_options_of(context).get(name, ())] if "--help" not in words else []
    mngr = Path(sys.executable).with_name("mngr")
    environment = {**os.environ, VARIABLE: f"mngr {NAME}", **({"SWARM_MNGR": str(mngr)} if mngr.exists() else {})}
    command = [sys.executable, "-m", "swarm_tui", name, *configured, *words]
    context.exit(run_in_foreground(command, cwd=None, environment=environment))


def _options_of(context: click.Context) -> Mapping[str, Sequence[str]]:
    """Return the default arguments of `[plugins.swarm]`, by command."""
    from imbue.concurrency_group.concurrency_group import ConcurrencyGroup
    from imbue.mngr.config.loader import load_config

    with ConcurrencyGroup(name="mngr swarm") as group:
        config = load_config(context.find_root().obj, group, is_interactive=False)
        options: Mapping[str, Sequence[str]] = config.get_plugin_config(NAME, SwarmPluginConfig).options
    return options

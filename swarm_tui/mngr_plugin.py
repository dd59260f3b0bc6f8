"""`mngr swarm`: the commands of swarm-tui as mngr's own, where both are installed in one environment.

mngr finds this module by its entry point and imports it each time it starts: nothing else of ours is imported before a
command is called.
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

from swarm_tui.cli.commands import COMMANDS

NAME: Final = "swarm"
PASSED_ON: Final = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


class SwarmPluginConfig(PluginConfig):
    """The table `[plugins.swarm]` of mngr's settings."""

    options: Mapping[str, Sequence[str]] = Field(
        default_factory=dict,
        description='Words that a command gets before those of the command line: options.run = ["--slots", "8"]',
    )


register_plugin_config(NAME, SwarmPluginConfig)


@hookimpl
def register_cli_commands() -> Sequence[click.Command]:
    """Return the commands that mngr is to have."""
    swarm = click.Group(
        NAME,
        help="Run a coding agent on every test, watch all agents, keep or revert each fix (swarm-tui).\n\n"
        "Without a command the room opens on the newest sweep of this repository.",
        short_help="Run a coding agent on every test, watch all agents, keep or revert each fix",
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
    """Run one command of swarm-tui with this mngr, in a process of its own, and end as it does."""
    from swarm_tui.adapters.foreground import run_in_foreground
    from swarm_tui.cli.called_as import VARIABLE

    configured = [*_options_of(context).get(name, ())] if "--help" not in words else []
    mngr = Path(sys.executable).with_name("mngr")
    environment = {**os.environ, VARIABLE: f"mngr {NAME}", **({"SWARM_MNGR": str(mngr)} if mngr.exists() else {})}
    command = [sys.executable, "-m", "swarm_tui", name, *configured, *words]
    context.exit(run_in_foreground(command, cwd=None, environment=environment))


def _options_of(context: click.Context) -> Mapping[str, Sequence[str]]:
    """Return what mngr's settings say under `plugins.swarm`."""
    from imbue.concurrency_group.concurrency_group import ConcurrencyGroup
    from imbue.mngr.config.loader import load_config

    with ConcurrencyGroup(name="mngr swarm") as group:
        config = load_config(context.find_root().obj, group, is_interactive=False)
        options: Mapping[str, Sequence[str]] = config.get_plugin_config(NAME, SwarmPluginConfig).options
    return options

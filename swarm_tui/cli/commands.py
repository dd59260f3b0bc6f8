"""The table of commands: name, module, one line of help. A module is imported only when its command is called."""

from __future__ import annotations

from typing import Final, NamedTuple


class Command(NamedTuple):
    """One command of the command line."""

    name: str
    module: str
    summary: str


# In the order in which a person meets them.
COMMANDS: Final[tuple[Command, ...]] = (
    Command("fixes", "swarm_tui.cli.fixes", "keep or revert each fix of a sweep or branch, without the screen"),
    Command("attach", "swarm_tui.cli.attach", "put this terminal in front of one agent"),
    Command("completion", "swarm_tui.cli.completion", "print the completion script of a shell"),
)

COMMAND_BY_NAME: Final = {command.name: command for command in COMMANDS}

"""How this program was called: `swarm-tui`, or `mngr swarm` where mngr has it as a plugin."""

from __future__ import annotations

import os
import re
from typing import Final

from swarm_tui.cli.commands import COMMANDS

VARIABLE: Final = "SWARM_CALLED_AS"
# Not passed on: what we start calls itself as it likes.
_NAME: Final = os.environ.pop(VARIABLE, "swarm-tui")
_COMMAND: Final = re.compile(
    rf"swarm-tui(?=`|: | \[COMMAND| (?:COMMAND|--help|{'|'.join(command.name for command in COMMANDS)})\b)"
)


def as_called(text: str, name: str = _NAME) -> str:
    """Return a text of ours in which commands begin as the person has begun theirs."""
    return _COMMAND.sub(name, text)

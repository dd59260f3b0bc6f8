"""Our own tutorial covers every command."""

from __future__ import annotations

import re
from pathlib import Path

from swarm_tui.cli.main import COMMANDS
from swarm_tui.tutorial.read import read_blocks

TUTORIAL = Path(__file__).resolve().parents[2] / "tutorial" / "tutorial.sh"


def test_every_command_has_a_block() -> None:
    lines = [line for block in read_blocks(TUTORIAL) for line in block.commands]
    taught = {match[1] for line in lines for match in re.finditer(r"\bswarm-tui ([a-z-]+)", line)}
    assert {command.name for command in COMMANDS} <= taught


def test_every_tutorial_action_has_a_block() -> None:
    lines = [line for block in read_blocks(TUTORIAL) for line in block.commands]
    taught = {match[1] for line in lines for match in re.finditer(r"\bswarm-tui tutorial ([a-z-]+)", line)}
    assert {"blocks", "check", "fill", "sync", "install-command"} <= taught

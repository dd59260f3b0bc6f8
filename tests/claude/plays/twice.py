"""Two commands, one after the other, that the project's own settings require dialogs for."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Request, Turn, bash


def turns(task: Task, request: Request) -> Sequence[Turn]:
    commands = ("curl -s http://127.0.0.1:9/prices", "curl -s http://127.0.0.1:9/stock")
    return fix(task, [Turn("I look it up.", [bash(command, "look it up")]) for command in commands])

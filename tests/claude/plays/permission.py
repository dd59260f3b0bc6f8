"""A command that the project's own settings require a dialog for, even if everything else is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Request, Turn, bash


def turns(task: Task, request: Request) -> Sequence[Turn]:
    return fix(task, [Turn("I look it up.", [bash("curl -s http://127.0.0.1:9/prices", "look up the prices")])])

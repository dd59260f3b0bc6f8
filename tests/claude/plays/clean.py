"""The test passes and is already good."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, outcome
from tests.claude.scripted_model import Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    return [task.run_test(), *task.hand_in(outcome())]

"""A fix with a long delay before each turn, so that the model serves most of its agents at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Request, Turn

SECONDS = 10.0


def turns(task: Task, request: Request) -> Sequence[Turn]:
    return [replace(turn, seconds=SECONDS) for turn in fix(task)]

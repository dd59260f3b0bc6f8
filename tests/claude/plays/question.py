"""A turn that ends with a question; the next message is the answer."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    return fix(task, [Turn("May stock be negative on purpose, for orders that are late?")])

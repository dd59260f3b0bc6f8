"""The program is wrong: an edit, a commit, a submission."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    return fix(task)

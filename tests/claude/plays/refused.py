"""The key is refused in the middle, for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Refusal, Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    first, *others = fix(task)
    return [replace(first, before=[Refusal(403, "Your account has no access any more")] * 99), *others]

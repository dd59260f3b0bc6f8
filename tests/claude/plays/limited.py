"""A rate limit in the middle: three refusals with a time to retry, then the work continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Refusal, Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    limit = Refusal(429, "This request would exceed your rate limit", {"retry-after": "3"})
    first, *others = fix(task)
    return [replace(first, before=[limit] * 3), *others]

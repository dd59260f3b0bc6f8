"""The conversation becomes too long: Claude Code asks for a summary, continues with it, and the work goes ahead."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Request, Turn, bash

# Near the end of a context window of 200,000 tokens.
TOKENS = 190_000


def turns(task: Task, request: Request) -> Sequence[Turn]:
    if request.is_continued:
        return fix(task)
    return fix(task, [Turn("This is much to read.", [bash("git log -1")], usage={"input_tokens": TOKENS})])

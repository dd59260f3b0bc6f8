"""A question with options, with Claude Code's own tool."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Call, Request, Turn

QUESTION = {
    "question": "Which rate is right?",
    "header": "Rate",
    "multiSelect": False,
    "options": [
        {"label": "19 percent", "description": "today's"},
        {"label": "16 percent", "description": "the one of 2020"},
    ],
}


def turns(task: Task, request: Request) -> Sequence[Turn]:
    return fix(task, [Turn("I have to ask.", [Call("AskUserQuestion", {"questions": [QUESTION]})])])

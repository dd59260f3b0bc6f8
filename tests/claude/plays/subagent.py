"""A subagent does part of the work: its messages and tokens also belong to the agent."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Call, Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    asked = {
        "description": "count lines",
        "prompt": "Say how many lines shop.py has.",
        "subagent_type": "general-purpose",
    }
    return fix(task, [Turn("A subagent counts.", [Call("Agent", asked)])])

"""Plays: what the scripted model says to each agent; `test_vat_fixed` plays `fixed.py`, by its last word."""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence

from tests.claude.plays.task import Task, find_task
from tests.claude.scripted_model import Call, Request, Turn, bash

PROMPT_PATH = re.compile(r"Read (\S+) and do")
# Long enough for the engine to see what Claude Code is doing meanwhile.
SUMMARY_SECONDS = 5.0


def play(request: Request) -> Sequence[Turn]:
    """Return the turns of the agent that a request comes from: it reads its prompt, then plays what that asks for."""
    named = PROMPT_PATH.search(request.user_texts[0]) if request.user_texts else None
    if named is None:
        return [Turn("There is nothing to do.")]
    if "detailed summary" in request.user_texts[-1]:
        summary = Turn(f"<summary>\nThe task: {named[0]} everything it says.\n</summary>", seconds=SUMMARY_SECONDS)
        return [summary] * (request.turns_taken + 1)
    opening = [Turn("I read the task.", [Call("Read", {"file_path": named[1]})]), Turn(calls=[bash("pwd")])]
    if request.is_continued:
        # Claude Code keeps the last turn beside the summary, and its Read tool does not repeat what it has read.
        opening = [Turn(), Turn("I read the task again.", [bash(f"cat {named[1]}")]), opening[1]]
    task = find_task(request.tool_results)
    return [*opening, *turns_of(task, request)] if task else opening


def turns_of(task: Task, request: Request) -> Sequence[Turn]:
    """Return what follows the reading of the prompt."""
    module = importlib.import_module(f"tests.claude.plays.{task.play}")
    turns: Sequence[Turn] = module.turns(task, request)
    return turns

"""Plays: the turns of the scripted model for each agent. The last word of `test_vat_fixed` selects `fixed.py`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence

from tests.claude.plays.task import Task, find_task
from tests.claude.scripted_model import Call, Request, Turn, bash

PROMPT_PATH = re.compile(r"Read (\S+) and follow")
# Long enough for the engine to observe Claude Code meanwhile.
SUMMARY_SECONDS = 5.0


def turns_of(task: Task, request: Request) -> Sequence[Turn]:
    """Return the turns after the prompt was read."""
    module = importlib.import_module(f"tests.claude.plays.{task.play}")
    turns: Sequence[Turn] = module.turns(task, request)
    return turns


def play(request: Request, turns: Callable[[Task, Request], Sequence[Turn]] = turns_of) -> Sequence[Turn]:
    """Return the turns of a request's agent: it reads its prompt, then does the turns from `turns`."""
    named = PROMPT_PATH.search(request.user_texts[0]) if request.user_texts else None
    if named is None:
        return [Turn("There is nothing to do.")]
    if "detailed summary" in request.user_texts[-1]:
        summary = Turn(f"<summary>\nThe task: {named[0]} all of it.\n</summary>", seconds=SUMMARY_SECONDS)
        return [summary] * (request.turns_taken + 1)
    opening = [Turn("I read the task.", [Call("Read", {"file_path": named[1]})]), Turn(calls=[bash("pwd")])]
    if request.is_continued:
        # Claude Code keeps the last turn in addition to the summary, and its Read tool does not repeat earlier output.
        opening = [Turn(), Turn("I read the task again.", [bash(f"cat {named[1]}")]), opening[1]]
    task = find_task(request.tool_results)
    return [*opening, *turns(task, request)] if task else opening

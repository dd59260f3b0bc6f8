"""Writes the missing command of a tutorial's comment."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.claude.plays.task import Task, outcome
from tests.claude.scripted_model import Request, Turn, bash


def turns(task: Task, request: Request) -> Sequence[Turn]:
    file = re.search(r"`([^`]+)` teaches a program", task.prompt)
    comment = re.search(r"(?m)^```\n(# .*)$", task.prompt)
    assert file, "the prompt names the tutorial"
    assert comment, "the prompt quotes the comment"
    title = comment[1].lstrip("# ")
    return [
        Turn("I try it.", [bash('cd "$(mktemp -d)" && HOME=$PWD git init notes', "try it")]),
        Turn("I look at the tutorial.", task.read(file[1]).calls),
        task.edit(file[1], comment[1], f"{comment[1]}\ngit init notes", "It works."),
        Turn("I check it.", [bash(task.line_after("Check your work, and commit it:"), "check")]),
        Turn(calls=[bash(f'git commit -qam "[FIX_TUTORIAL] {title}"', "commit")]),
        *task.hand_in(outcome("FIX_TUTORIAL", "One block.", needs_no_command=[])),
    ]

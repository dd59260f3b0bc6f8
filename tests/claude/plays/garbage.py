"""A confused model: a tool that does not exist, endless text, a broken stream; then it works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Call, HangUp, Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    first, *others = fix(task)
    return [
        Turn("I use what is not there.", [Call("Teleport", {"to": "\x1b]0;owned\x07"})]),
        Turn(
            "word " * 50_000 + "\n[red]and markup[/red] \x1b[2J", [Call("Read", {"file_path": f"{task.top}/shop.py"})]
        ),
        replace(first, before=[HangUp(4)]),
        *others,
    ]

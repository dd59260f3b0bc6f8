"""Fetches a page with a tool that is not allowed."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Call, Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    page = {"url": "http://127.0.0.1:9/rates", "prompt": "What is the rate?"}
    return fix(task, [Turn("I look at the page.", [Call("WebFetch", page)])])

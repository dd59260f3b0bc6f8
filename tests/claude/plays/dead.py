"""Connections that are closed without a response: Claude Code retries ten times within three minutes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import HangUp, Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    first, *others = fix(task)
    return [replace(first, before=[HangUp()] * 99), *others]

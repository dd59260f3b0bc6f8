"""Tokens of every kind in several turns, for the totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.claude.plays.task import Task, outcome
from tests.claude.scripted_model import Request, Turn


def turns(task: Task, request: Request) -> Sequence[Turn]:
    usage = {"input_tokens": 1_200, "cache_creation_input_tokens": 30_000, "cache_read_input_tokens": 60_000}
    everything = [task.run_test(), *task.hand_in(outcome())]
    return [replace(turn, usage=usage | {"output_tokens": 700 + number}) for number, turn in enumerate(everything)]

"""Uses tokens for more than a dollar, and submits only after the message that the budget is used up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from tests.claude.plays.task import Task, outcome
from tests.claude.scripted_model import Request, Turn, bash

NOT_YET = "I was not told to submit."


def turns(task: Task, request: Request) -> Sequence[Turn]:
    said = json.dumps(request.messages)
    costly = replace(task.run_test(), usage={"input_tokens": 50_000, "output_tokens": 60_000})
    begun = [costly, Turn("I continue.", [bash("sleep 12")]), *([Turn(NOT_YET)] if NOT_YET in said else [])]
    is_told = "used up your budget of $1" in said
    return [*begun, *task.hand_in(outcome())] if is_told else [*begun, Turn(NOT_YET)]

"""The program is wrong; when its fix is sent back, it is made as the person says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.claude.plays.task import Task, fix, outcome
from tests.claude.scripted_model import Request, Turn, bash


def turns(task: Task, request: Request) -> Sequence[Turn]:
    said = re.search(r"the person says:\s+> ([^\n]+)", task.prompt)
    if said is None:
        return fix(task)
    title = f"Take today's VAT: {said[1]}"
    return [
        Turn("I look at what I made.", [bash("git log -p -1")]),
        task.read("shop.py"),
        task.edit("shop.py", "price * 1.19", "price * 119 / 100", "Then in whole numbers."),
        task.run_test("I run it again."),
        task.commit("FIX_IMPL", title),
        *task.hand_in(outcome("FIX_IMPL", title)),
    ]

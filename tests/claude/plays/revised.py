"""The program is wrong. If the fix is sent back, it is changed as the comment requires."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.claude.plays.task import Task, fix, outcome
from tests.claude.scripted_model import Request, Turn, bash


def turns(task: Task, request: Request) -> Sequence[Turn]:
    comment = re.search(r"comment on your fix \*\*.*\*\*:\s+> ([^\n]+)", task.prompt)
    if comment is None:
        return fix(task)
    title = f"Take today's VAT: {comment[1]}"
    return [
        Turn("I look at my commit.", [bash("git log -p -1")]),
        task.read("shop.py"),
        task.edit("shop.py", "price * 1.19", "price * 119 / 100", "Then in whole numbers."),
        task.run_test("I run it again."),
        task.commit("FIX_IMPL", title),
        *task.hand_in(outcome("FIX_IMPL", title)),
    ]

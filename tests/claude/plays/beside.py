"""Opens a permission dialog while another call of the same turn finishes, which removes mngr's mark of the dialog."""

from __future__ import annotations

from collections.abc import Sequence

from tests.claude.plays.task import Task, fix
from tests.claude.scripted_model import Call, Request, Turn, bash


def turns(task: Task, request: Request) -> Sequence[Turn]:
    calls = [bash("curl -s http://127.0.0.1:9/prices"), Call("Read", {"file_path": f"{task.top}/shop.py"})]
    return fix(task, [Turn("I look at two things at once.", calls)])

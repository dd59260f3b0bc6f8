"""Writes a test that cites a tutorial's block."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from tests.claude.plays.task import Task, outcome
from tests.claude.scripted_model import Call, Request, Turn, bash

TEST = '''\
from swarm_tui.e2e import E2eSession, expect


def test_the_block(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
{block}
    """)
    expect(e2e.run("{command}", comment="as the block says")).to_succeed()
'''


def turns(task: Task, request: Request) -> Sequence[Turn]:
    file = re.search(r"Write its tests in a new file, `([^`]+)`", task.prompt)
    block = re.search(r"(?ms)^```\n(# .*?)\n```$", task.prompt)
    assert file, "the prompt names the file"
    assert block, "the prompt quotes the block"
    title, *commands = block[1].splitlines()
    test = TEST.format(block=textwrap.indent(block[1], "        "), command=commands[-1])
    message = f"[IMPROVE_TEST] {title.lstrip('# ')}"
    return [
        Turn("I try it.", [bash(commands[-1], "try it")]),
        Turn("It works.", [Call("Write", {"file_path": f"{task.top}/{file[1]}", "content": test})]),
        Turn("I check it.", [bash(task.line_after("Check your work, and commit it:"), "check")]),
        Turn(calls=[bash(f'git add "{file[1]}" && git commit -qm "{message}"', "commit")]),
        *task.hand_in(outcome("IMPROVE_TEST", "One test.", needs_no_command=[])),
    ]

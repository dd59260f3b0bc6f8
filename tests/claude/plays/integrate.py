"""An integrator that cherry-picks each fix and submits the branch."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.claude.plays.task import Task
from tests.claude.scripted_model import Request, Turn, bash


def turns(task: Task, request: Request) -> Sequence[Turn]:
    branches = re.findall(r"\| `([^`]+)` \| `git log (\w+)\.\.(\w+)` \| `([^`]+)` \|", task.prompt)
    picks = "".join(
        f'git cherry-pick {base}..{tip} && git commit -q --amend -m "$(git log -1 --format=%B)" '
        f'--trailer "Agent: {branch.rpartition("/")[2]}" --trailer "Test: {test}" '
        f"&& echo PICK {branch} $(git rev-parse HEAD)\n"
        for branch, base, tip, test in branches
    )
    picked = dict(re.findall(r"PICK (\S+) (\w{40})", "\n".join(request.tool_results)))
    reported: dict[str, object] = {
        "squashed_branches": [],
        "squashed_commit_hash": None,
        "impl_priority": list(picked),
        "impl_commit_hashes": picked,
        "failed": [],
        "normalizations": [],
        "escalations": [],
    }
    return [
        Turn(
            "I fetch the agents' work.",
            [bash(task.line_after("Fetch the agents' commits:"), "fetch the branches")],
        ),
        Turn("One commit for each fix.", [bash(picks or "true", "cherry-pick the fixes")]),
        *task.hand_in(reported),
    ]

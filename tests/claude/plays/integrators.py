"""Integrators with faults: each is a function from the task to the turns of the model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial

from tests.claude.plays import play
from tests.claude.plays.task import Task
from tests.claude.scripted_model import Play, Request, Turn, bash

Report = dict[str, object]


def playing(mode: str) -> Play:
    """Return the play of a model whose integrator works in this mode."""
    return partial(play, turns=MODES[mode])


def _branches(task: Task) -> list[tuple[str, str, str]]:
    """Return branch, base and tip of each agent."""
    return re.findall(r"\| `([^`]+)` \| `git log (\w+)\.\.(\w+)` \|", task.prompt)


def _picks(task: Task) -> Turn:
    picks = [
        f"git cherry-pick {base}..{tip} && echo PICK {branch} $(git rev-parse HEAD)"
        for branch, base, tip in _branches(task)
    ]
    return Turn("One commit for each fix.", [bash("\n".join(picks), "cherry-pick the fixes")])


def _fetch(task: Task) -> Turn:
    return Turn("I fetch the work.", [bash(task.line_after("Fetch the agents' commits:"), "fetch the branches")])


def _report(request: Request) -> Report:
    picked = dict(re.findall(r"PICK (\S+) (\w{40})", "\n".join(request.tool_results)))
    return {"impl_priority": list(picked), "impl_commit_hashes": picked, "failed": []}


def _honest(task: Task, request: Request) -> Sequence[Turn]:
    return [_fetch(task), _picks(task), *task.hand_in(_report(request))]


def _undo(task: Task, request: Request) -> Sequence[Turn]:
    undoing = f'git checkout {_branches(task)[0][1]} -- shop.py && git commit -qm "[FIX_IMPL] Tidy up"'
    last = Turn("One more thing.", [bash(undoing, "one more commit")])
    return [_fetch(task), _picks(task), last, *task.hand_in(_report(request))]


def _lie(task: Task, request: Request) -> Sequence[Turn]:
    report = _report(request)
    named = dict(re.findall(r"PICK (\S+) (\w{40})", "\n".join(request.tool_results)))
    every = [test for test in re.findall(r"`(tests/\S+::\w+)`", task.prompt)]
    report["impl_commit_hashes"] = dict(zip(named, reversed(list(named.values())), strict=True))
    report["ranking"] = [
        {"rank": 1, "commit": commit, "turned_green": every, "is_measured": True, "why": "turns 40 tests green"}
        for commit in named.values()
    ]
    report |= {"final_run": {"passed": 4_000, "failed": []}, "by": "builtin", "problems": []}
    return [_fetch(task), _picks(task), *task.hand_in(report)]


def _no_report(task: Task, request: Request) -> Sequence[Turn]:
    *_, last_step, end = task.hand_in({})
    return [_fetch(task), _picks(task), last_step, end]


def _garbage(task: Task, request: Request) -> Sequence[Turn]:
    text = json.dumps(_report(request))[:-20]
    written = Turn("I write the outcome.", [bash(f"cat > {task.outcome} <<'END'\n{text}\nEND", "write the outcome")])
    *_, last_step, end = task.hand_in({})
    return [_fetch(task), _picks(task), written, last_step, end]


MODES: dict[str, Callable[[Task, Request], Sequence[Turn]]] = {
    "honest": _honest,
    "undo": _undo,
    "lie": _lie,
    "no report": _no_report,
    "garbage report": _garbage,
}

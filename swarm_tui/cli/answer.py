"""`swarm-tui answer`: answers what an agent asks, or what a group of agents ask alike."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from swarm_tui.insight.inbox import Item, ItemGroup

DESCRIPTION = """Answers what `swarm-tui pending` lists, by its id. The answer reaches the very thing that was listed,
once; when that is gone or has changed meanwhile, nothing is answered. A permission takes `yes`, `no`, or a reason for
a no; a question an option's number or words, and where there are several questions one answer for each."""
EXAMPLES = """\
  swarm-tui answer mfrggzdf yes
  swarm-tui answer mfrggzdf no, use the cache      the agent gets the words
  swarm-tui answer nbswy3dp 2                      the second option
  swarm-tui answer nbswy3dp 1,3                    two options, where several may be chosen
  swarm-tui answer nbswy3dp 2 'a.py only'          two questions
  swarm-tui answer --group orsxg5a yes             all of a group: one first, the others when that has worked
Exit codes: 0 answered, 1 refused, not all answered, or gone, 2 misuse, 3 no engine works on the sweep."""


NO_ENGINE: Final = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", metavar="ID", help="answer all members of this group")
    parser.add_argument("--sweep", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument(
        "words", nargs="+", metavar="[ID] ANSWER", help="the id, unless --group has one; and the answer"
    )


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.engine_requests import send_request
    from swarm_tui.cli.pending import pending_groups
    from swarm_tui.cli.progress import print_progress
    from swarm_tui.cli.sweeps import opened_sweep
    from swarm_tui.errors import NoEngine, SwarmError, UsageError
    from swarm_tui.model.asks import answer_problem
    from swarm_tui.model.formatting import counted
    from swarm_tui.model.requests import RequestKind

    words = list(arguments.words)
    wanted = arguments.group or words.pop(0)
    if not words:
        raise UsageError("what is the answer?", f"`swarm-tui answer {wanted} yes`, for example")
    opened = opened_sweep(arguments.sweep, Path.cwd())
    items = _chosen(pending_groups(opened), wanted, is_group=bool(arguments.group))
    several = items[0].ask is not None and len(items[0].ask.questions) > 1
    text = ("\n" if several else " ").join(words)
    problem = next((item.problem for item in items if item.problem), "")
    problem = problem or next((answer_problem(item.ask, text) for item in items if item.ask is not None), "")
    if problem:
        raise SwarmError(problem)
    try:
        detail = send_request(opened, RequestKind.ANSWER, text=text, items=[item.id for item in items])
    except NoEngine as error:
        print_progress(f"swarm-tui: {error}")
        return NO_ENGINE
    print_progress(detail or f"{counted(len(items), 'agent')} answered")
    return 0


def _chosen(groups: list[ItemGroup], wanted: str, *, is_group: bool) -> list[Item]:
    from swarm_tui.errors import SwarmError, UsageError
    from swarm_tui.insight.waits import GONE
    from swarm_tui.model.text import plain

    if is_group:
        found = [item for group in groups if group.id == wanted for item in group.answerable]
    else:
        found = [item for group in groups for item in group.items if item.id == wanted]
    if not found and not is_group and any(group.id == wanted for group in groups):
        raise UsageError(f"{wanted} is a group", f"`swarm-tui answer --group {wanted} ...` answers all of it")
    if not found:
        what = "group" if is_group else "item"
        raise SwarmError(f"there is no {what} {plain(wanted, 80)!r} that can be answered: {GONE}")
    return found

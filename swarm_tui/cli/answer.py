"""`swarm-tui answer`: answer a question of an agent, or a group of identical questions."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from swarm_tui.cli.engine_requests import send_request
from swarm_tui.cli.pending import pending_groups
from swarm_tui.cli.progress import opened_sweep, print_progress
from swarm_tui.errors import NoEngine, SwarmError, UsageError
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import answer_problem
from swarm_tui.model.text import plain
from swarm_tui.questions.groups import GONE
from swarm_tui.questions.inbox import Item, ItemGroup

DESCRIPTION = """Answer a question that `swarm-tui pending` lists. Each answer is delivered once, and only if the
question is still open and has not changed.

  permission   yes, no, or the reason for a no
  question     the number of an option, or text; one answer for each of several questions
  form         a value for each field, or `decline` for the whole form"""
EXAMPLES = """\
  swarm-tui answer mfrggzdf yes
  swarm-tui answer mfrggzdf no, use the cache      refuse, with a reason for the agent
  swarm-tui answer nbswy3dp 2                      the second option
  swarm-tui answer nbswy3dp 1,3                    two options, if several are allowed
  swarm-tui answer nbswy3dp 2 'a.py only'          answers to two questions
  swarm-tui answer --group orsxg5a yes             answer the whole group: one question first, then the others
Exit codes: 0 answered, 1 refused, closed or not all answered, 2 usage error, 3 no engine is running."""


NO_ENGINE: Final = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", metavar="ID", help="answer all questions of this group")
    parser.add_argument("--sweep", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("words", nargs="+", metavar="[ID] ANSWER", help="the id (not with --group) and the answer")


def run(arguments: argparse.Namespace) -> int:
    words = list(arguments.words)
    chosen_id = arguments.group or words.pop(0)
    if not words:
        raise UsageError("missing answer", f"for example `swarm-tui answer {chosen_id} yes`")
    opened = opened_sweep(arguments.sweep, Path.cwd())
    items = _chosen(pending_groups(opened), chosen_id, is_group=bool(arguments.group))
    several = items[0].question is not None and len(items[0].question.parts) > 1
    text = ("\n" if several else " ").join(words)
    problem = next((item.problem for item in items if item.problem), "")
    problem = problem or next((answer_problem(item.question, text) for item in items if item.question is not None), "")
    if problem:
        raise SwarmError(problem)
    try:
        detail = send_request(opened, RequestKind.ANSWER, text=text, items=[item.id for item in items])
    except NoEngine as error:
        print_progress(f"swarm-tui: {error.report}")
        return NO_ENGINE
    print_progress(detail or f"{counted(len(items), 'agent')} answered")
    return 0


def _chosen(groups: list[ItemGroup], chosen_id: str, *, is_group: bool) -> list[Item]:
    if is_group:
        found = [item for group in groups if group.id == chosen_id for item in group.answerable]
    else:
        found = [item for group in groups for item in group.items if item.id == chosen_id]
    if not found and not is_group and any(group.id == chosen_id for group in groups):
        raise UsageError(
            f"{chosen_id} is a group", f"to answer all its questions, use `swarm-tui answer --group {chosen_id} ANSWER`"
        )
    if not found:
        what = "group" if is_group else "question"
        raise SwarmError(f"no open {what} {plain(chosen_id, 80)!r}: {GONE}")
    return found

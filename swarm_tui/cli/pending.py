"""`swarm-tui pending`: everything in a sweep that needs a person."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.insight.inbox import Item, ItemGroup
    from swarm_tui.journal.open import OpenedSweep
    from swarm_tui.model.asks import AskedQuestion
    from swarm_tui.model.shapes import ShownInbox, ShownItem, ShownQuestion

DESCRIPTION = """Lists what needs a person, most urgent first: what agents ask, dialogs, what is stuck, blocked or
failed, and fixes to review. What is alike is one group. `swarm-tui answer` answers what has an id in
front of its agent."""
EXAMPLES = """\
  swarm-tui pending                    the newest sweep of this repository
  swarm-tui pending --json             for a script
  swarm-tui answer mfrggzdf yes        one of them, by the id in front of it
  swarm-tui answer --group nbswy3dp no   all of a group that ask the very same
Exit codes: 0 listed, also when it is nothing; 1 the sweep cannot be read, 2 misuse."""

MEMBERS_SHOWN: Final = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--all", action="store_true", help="all members of each group")


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.sweeps import opened_sweep

    opened = opened_sweep(arguments.sweep, Path.cwd())
    groups = pending_groups(opened)
    if arguments.json:
        print(json.dumps(_described(opened, groups), indent=1))
    else:
        print("\n".join(_lines(opened, groups, MEMBERS_SHOWN if not arguments.all else len(opened.state.records))))
    return 0


def pending_groups(opened: OpenedSweep) -> list[ItemGroup]:
    """Return what needs a person now; where no engine works on the sweep, nothing waits for an answer."""
    import time

    from swarm_tui.insight.inbox import find_groups
    from swarm_tui.journal.put_off import PutOff
    from swarm_tui.triage.store import count_decided, review_of_sweep

    now = time.time() if opened.has_running_engine else opened.state.last_at
    decided = count_decided(review_of_sweep(opened.folder.root)) if opened.state.integration.fixes else 0
    return find_groups(opened.state, now, PutOff(opened.folder).items(), decided)


def _described(opened: OpenedSweep, groups: Iterable[ItemGroup]) -> ShownInbox:
    return {
        "sweep": opened.folder.name,
        "has_engine": opened.has_running_engine,
        "groups": [
            {
                "group": group.id,
                "kind": group.kind.value,
                "title": group.title,
                "is_later": group.is_later,
                "items": [_described_item(item) for item in group.items],
            }
            for group in groups
        ],
        "rules": [
            {**rule.model_dump(), "uses": opened.state.rule_uses[rule.id]} for rule in opened.state.rules.values()
        ],
    }


def _described_item(item: Item) -> ShownItem:
    ask = item.ask
    return {
        "id": item.id,
        "test": item.test,
        "agent": item.agent,
        "since": item.since,
        "title": item.title,
        "text": item.text,
        "is_answerable": not item.problem,
        "problem": item.problem,
        "tool": ask.tool if ask is not None else "",
        "subject": ask.subject if ask is not None else "",
        "options": list(item.options),
        "questions": [_described_question(question) for question in ask.questions] if ask is not None else [],
    }


def _described_question(question: AskedQuestion) -> ShownQuestion:
    return {
        "key": question.key,
        "text": question.text,
        "options": list(question.options),
        "is_many": question.is_many,
    }


def _lines(opened: OpenedSweep, groups: list[ItemGroup], shown: int) -> Iterable[str]:
    number = sum(len(group.items) for group in groups if not group.is_later)
    yield (
        f"{opened.folder.name}  {number} need{'s' if number == 1 else ''} a person"
        if number
        else (f"{opened.folder.name}  nothing needs a person")
    )
    if groups and not opened.has_running_engine:
        before = f"nothing here can be answered before `swarm-tui resume {opened.folder.name}`"
        yield f"no engine works on it: {opened.spec.why_not_continued or before}"
    for group in groups:
        later = "  (later)" if group.is_later else ""
        yield f"{group.id}  {len(group.items):>3}  {group.kind.value:11} {plain(group.title, 200)}{later}"
        for item in group.items[:shown]:
            if item.test:
                yield f"    {item.id if not item.problem else '-':8}  {plain(item.agent or item.test, 100)}" + (
                    f"  {plain(item.title, 200)}" if item.title != group.title else ""
                )
        options = "  ".join(f"{number} {plain(name, 60)}" for number, name in enumerate(group.items[0].options, 1))
        if options:
            yield f"    answers: {options}"
        if len(group.items) > shown:
            yield f"    … and {len(group.items) - shown:,} more: --all lists them"
    for rule in opened.state.rules.values():
        uses = opened.state.rule_uses[rule.id]
        yield f"rule {rule.id}: {plain(rule.answer, 60)} to {plain(rule.words, 300)} (used {uses} times)"

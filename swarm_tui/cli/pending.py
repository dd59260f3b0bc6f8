"""`swarm-tui pending`: list everything in a sweep that needs you."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from swarm_tui.cli.progress import opened_sweep
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.model.formatting import counted
from swarm_tui.model.questions import QuestionKind, QuestionPart
from swarm_tui.model.text import plain
from swarm_tui.questions.deferred import DeferredItems
from swarm_tui.questions.inbox import Item, ItemGroup, find_groups

if TYPE_CHECKING:
    from swarm_tui.model.shapes import InboxJson, ItemJson, QuestionPartJson

DESCRIPTION = """List everything that needs you, most urgent first: questions and dialogs of agents, stuck agents,
blocked tests, errors, and fixes to review. Similar items are grouped. Answer items with `swarm-tui answer`."""
EXAMPLES = """\
  swarm-tui pending                    the newest sweep of this repository
  swarm-tui pending --json             print JSON for a script
  swarm-tui answer mfrggzdf yes        answer one item, by its id
  swarm-tui answer --group nbswy3dp no   answer all questions of a group
Exit codes: 0 success, even if nothing is pending, 1 the sweep is unreadable, 2 usage error."""

MEMBERS_SHOWN: Final = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--all", action="store_true", help="list all items of each group")


def run(arguments: argparse.Namespace) -> int:
    opened = opened_sweep(arguments.sweep, Path.cwd())
    groups = pending_groups(opened)
    if arguments.json:
        print(json.dumps(_described(opened, groups), indent=1))
    else:
        print("\n".join(_lines(opened, groups, MEMBERS_SHOWN if not arguments.all else len(opened.state.records))))
    return 0


def pending_groups(opened: OpenedSweep) -> list[ItemGroup]:
    """Return the items that need the user; without a running engine, as of its last event."""
    from swarm_tui.review.verdicts import count_decided, review_of_sweep

    now = time.time() if opened.has_running_engine else opened.state.last_at
    decided = count_decided(review_of_sweep(opened.folder.root)) if opened.state.integration.fixes else 0
    return find_groups(opened.state, now, DeferredItems(opened.folder).items(), decided)


def _described(opened: OpenedSweep, groups: Iterable[ItemGroup]) -> InboxJson:
    return {
        "sweep": opened.folder.name,
        "has_engine": opened.has_running_engine,
        "groups": [
            {
                "group": group.id,
                "kind": group.kind.value,
                "title": group.title,
                "is_deferred": group.is_deferred,
                "items": [_described_item(item) for item in group.items],
            }
            for group in groups
        ],
        "rules": [
            {**msgspec.to_builtins(rule), "uses": opened.state.rule_uses[rule.id]}
            for rule in opened.state.rules.values()
        ],
    }


def _described_item(item: Item) -> ItemJson:
    question = item.question
    return {
        "id": item.id,
        "test": item.test,
        "agent": item.agent,
        "since": item.since,
        "title": item.title,
        "text": item.text,
        "is_answerable": not item.problem,
        "problem": item.problem,
        "tool": question.tool if question is not None else "",
        "subject": question.subject if question is not None else "",
        "options": list(item.options),
        "parts": [_described_part(part) for part in question.parts] if question is not None else [],
    }


def _described_part(part: QuestionPart) -> QuestionPartJson:
    return {
        "key": part.key,
        "text": part.text,
        "options": list(part.options),
        "descriptions": list(part.descriptions),
        "is_many": part.is_many,
        "field": part.field,
        "is_needed": part.is_needed,
        "format": part.format,
        "least": part.least,
        "most": part.most,
        "hint": part.hint,
    }


def _lines(opened: OpenedSweep, groups: list[ItemGroup], shown: int) -> Iterable[str]:
    number = sum(len(group.items) for group in groups if not group.is_deferred)
    yield (
        f"{opened.folder.name}  {counted(number, 'item')} need{'s' if number == 1 else ''} you"
        if number
        else f"{opened.folder.name}  nothing needs you"
    )
    if groups and not opened.has_running_engine:
        yield f"no engine is running; to answer, first run `swarm-tui resume {opened.folder.name}`"
    for group in groups:
        later = "  (later)" if group.is_deferred else ""
        yield f"{group.id}  {len(group.items):>3}  {group.kind.value:11} {plain(group.title, 200)}{later}"
        for item in group.items[:shown]:
            if item.test:
                yield f"    {item.id if not item.problem else '-':8}  {plain(item.agent or item.test, 100)}" + (
                    f"  {plain(item.title, 200)}" if item.title != group.title else ""
                )
        yield from _question_lines(group)
        if len(group.items) > shown:
            yield f"    … and {len(group.items) - shown:,} more (list all with --all)"
    for rule in opened.state.rules.values():
        uses = opened.state.rule_uses[rule.id]
        yield f"rule {rule.id}: {plain(rule.answer, 60)} to {plain(rule.words, 300)} (used {uses} times)"


def _question_lines(group: ItemGroup) -> Iterable[str]:
    """Return the lines of a group's question that its title does not show."""
    item, is_one = group.items[0], len(group.different) == 1
    if item.question is None:
        return
    is_plain = item.question.kind is QuestionKind.PERMISSION and not (item.question.detail or item.question.is_inexact)
    has_more = not is_plain or plain(group.title, 200) != group.title
    if is_one and has_more:
        yield from (f"    {plain(line, 1_000)}".rstrip() for line in item.text.split("\n"))
    if not item.question.parts:
        yield "    options: yes, no, or a reason for a no"

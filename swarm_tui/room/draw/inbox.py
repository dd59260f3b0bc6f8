"""The inbox: its rows, and in full what one of them is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from swarm_tui.insight.inbox import Item, ItemGroup, ItemKind
from swarm_tui.model.formatting import counted, duration
from swarm_tui.model.node_ids import name_of_test
from swarm_tui.model.rules import AnswerRule
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.room.draw.parts import Line, Part, cut_line, cut_middle, spread, wrap_text

ROLES: Final = {
    ItemKind.LOGIN: "error",
    ItemKind.BUDGET: "error",
    ItemKind.PERMISSION: "waiting",
    ItemKind.PLAN: "waiting",
    ItemKind.QUESTION: "waiting",
    ItemKind.INPUT: "waiting",
    ItemKind.TURN: "waiting",
    ItemKind.DIALOG: "waiting",
    ItemKind.STUCK: "warning",
    ItemKind.BLOCKED: "blocked",
    ItemKind.FAILED: "failed",
    ItemKind.UNRESOLVED: "unresolved",
    ItemKind.REVIEW: "good",
    ItemKind.SHARED: "impl_fix",
    ItemKind.DECISION: "waiting",
    ItemKind.BUG: "impl_fix",
    ItemKind.REPORTED: "accent",
    ItemKind.HARD_TO_USE: "accent",
}
KIND_WIDTH: Final = 12
AGENT_WIDTH: Final = 34
TEXT_LINES: Final = 60
DIFFERENT_SHOWN: Final = 12


def draw_group_row(group: ItemGroup, width: int, now: float, *, is_answering: bool) -> Line:
    """Return the row of a group: how many, what kind, what it is about, and since when."""
    since = duration(now - min(item.since for item in group.items)) if group.items[0].since else ""
    state = "later" if group.is_later else "answering" if is_answering else since
    head = [
        Part(f"{len(group.items):>4,} ", "strong"),
        Part(f"{group.kind.value:{KIND_WIDTH}}", "dim" if group.is_later else ROLES[group.kind]),
        Part(group.title, "dim" if group.is_later else ""),
    ]
    return spread(head, [Part(f"  {state}", "pending" if is_answering else "faint")], width)


def draw_item_row(item: Item, group: ItemGroup, width: int, *, is_answering: bool) -> Line:
    """Return the row of one member of a group that is open."""
    name = plain(name_of_test(item.test) or item.agent or item.title, 300)
    parts = [Part(cut_middle(name, min(AGENT_WIDTH, width)), "strong")]
    if item.title != group.title:
        parts.append(Part(f"  {item.title}"))
    if item.problem and any(not member.problem for member in group.items):
        parts.append(Part(f"  {item.problem}", "warning"))
    right = [Part("  answering", "pending")] if is_answering else []
    return spread(parts, right, width)


def draw_rule_row(rule: AnswerRule, uses: int, width: int) -> Line:
    """Return the row of a rule that answers by itself."""
    head = [
        Part("     "),
        Part(f"{'rule ' + plain(rule.id, 8):{KIND_WIDTH}}", "accent"),
        Part(f"{plain(rule.answer, 40)} to {plain(rule.words, 300)}"),
    ]
    return spread(head, [Part(f"  {counted(uses, 'answer')}", "faint")], width)


def draw_rule_detail(rule: AnswerRule, uses: int, width: int) -> list[Line]:
    """Return what a rule does, and how it is taken back."""
    text = f"Answers {plain(rule.answer, 200)} by itself to: {plain(rule.words, 2_500)}"
    lines: list[Line] = [[Part(line, "strong")] for line in wrap_text(text, width, 20)]
    made = f"made by {plain(rule.by, 80) or 'someone'}, has answered {counted(uses, 'time')}"
    lines += [(), cut_line([Part(made, "dim")], width), ()]
    return [*lines, [Part("u", "key"), Part(" takes it back")]]


def draw_item_detail(group: ItemGroup, item: Item, width: int, now: float, why_not: str) -> list[Line]:
    """Return what one item is about, and what can be answered; of a group also what its members differ in."""
    lines: list[Line] = []
    if item.test:
        who = plain(item.test, 1_000)
        lines.append([Part(cut_middle(who, width), "dim")])
        since = f"for {duration(now - item.since)}" if item.since else ""
        lines.append(
            cut_line([Part(" · ".join(word for word in (plain(item.agent, 200), since) if word), "faint")], width)
        )
    lines += [[Part(line, "strong")] for line in wrap_text(plain_lines(item.text), width, TEXT_LINES)]
    lines += [(), *_answers(item, width, why_not)]
    if len(group.different) > 1:
        head = f"asked for by these {len(group.items):,}, in {len(group.different):,} ways:"
        lines += [(), cut_line([Part(head, "heading")], width)]
        lines += draw_different(group, width)
    return lines


def draw_different(group: ItemGroup, width: int, shown: int = DIFFERENT_SHOWN) -> list[Line]:
    """Return the different things that the members of a group ask for, the most frequent first."""
    counts = sorted(group.different.items(), key=lambda entry: (-entry[1], entry[0]))
    lines: list[Line] = [
        cut_line([Part(f"{count:>4} ", "strong"), Part(title)], width) for title, count in counts[:shown]
    ]
    if len(counts) > shown:
        more = f"     … and {len(counts) - shown:,} more: Enter shows all members"
        lines.append(cut_line([Part(more, "dim")], width))
    return lines


def _answers(item: Item, width: int, why_not: str) -> Iterable[Line]:
    """Return the lines about what can be answered, or why nothing can."""
    problem = item.problem or why_not
    if problem:
        yield from ([Part(line, "warning")] for line in wrap_text(problem, width, 4))
        return
    yield from draw_options(item.options, width)
    if not item.options:
        ask = item.ask
        several = ask is not None and len(ask.questions) > 1
        words = " writes the answer" + (", a line for each question" if several else "")
        yield cut_line([Part("m", "key"), Part(words)], width)


def draw_options(options: Sequence[str], width: int) -> list[Line]:
    """Return the options of an ask with their digits."""
    return [
        cut_line([Part(f"{number} ", "key"), Part(plain(option, 300))], width)
        for number, option in enumerate(options, 1)
    ]


def draw_transcript_end(lines: Sequence[str], width: int, height: int) -> list[Line]:
    """Return the end of the representative's transcript, as much as there is room for."""
    if not lines or height < 4:
        return []
    shown = lines[-(height - 2) :]
    return [
        (),
        [Part("the end of its transcript", "heading")],
        *(cut_line([Part(line, "dim")], width) for line in shown),
    ]

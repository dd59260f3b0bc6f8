"""Draws the Inbox screen: its rows, and the details of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from swarm_tui.model.formatting import counted, duration
from swarm_tui.model.questions import NO, YES, AnswerRule, Question, QuestionPart, closing_hints, described_options
from swarm_tui.model.spec import name_of_test
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.questions.danger import risk_of
from swarm_tui.questions.inbox import NOT_ALL, Item, ItemGroup, ItemKind
from swarm_tui.room.draw.spans import Line, Span, cut_line, cut_middle, spread, wrap_text

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
    ItemKind.ERROR: "error",
    ItemKind.CLAIMED: "running",
    ItemKind.UNRESOLVED: "unresolved",
    ItemKind.COMMITS: "warning",
    ItemKind.CHECKOUT: "warning",
    ItemKind.REVIEW: "good",
    ItemKind.SHARED: "impl_fix",
    ItemKind.DECISION: "waiting",
    ItemKind.BUG: "impl_fix",
    ItemKind.REPORTED: "accent",
    ItemKind.HARD_TO_USE: "accent",
}
KIND_WIDTH: Final = 12
AGENT_WIDTH: Final = 34
DIFFERENT_SHOWN: Final = 12


def draw_group_row(group: ItemGroup, width: int, now: float, *, is_answering: bool) -> Line:
    """Return the row of a group: number of items, kind, title and age."""
    since = duration(now - min(item.since for item in group.items)) if group.items[0].since else ""
    state = "later" if group.is_deferred else "answering" if is_answering else since
    head = [
        Span(f"{len(group.items):>4,} ", "strong"),
        Span(f"{group.kind.value:{KIND_WIDTH}}", "dim" if group.is_deferred else ROLES[group.kind]),
        *([Span("! ", "error")] if any(risk_of(item.question) for item in group.items) else []),
        Span(group.title, "dim" if group.is_deferred else ""),
    ]
    return spread(head, [Span(f"  {state}", "pending" if is_answering else "faint")], width)


def draw_item_row(item: Item, group: ItemGroup, width: int, *, is_answering: bool) -> Line:
    """Return the row of one item of an open group."""
    name = plain(name_of_test(item.test) or item.agent or item.title, 300)
    parts = [Span(cut_middle(name, min(AGENT_WIDTH, width)), "strong")]
    if item.title != group.title:
        parts.append(Span(f"  {item.title}"))
    if item.problem and any(not member.problem for member in group.items):
        parts.append(Span(f"  {item.problem}", "warning"))
    right = [Span("  answering", "pending")] if is_answering else []
    return spread(parts, right, width)


def draw_rule_row(rule: AnswerRule, uses: int, width: int) -> Line:
    """Return the row of a rule that answers automatically."""
    head = [
        Span("     "),
        Span(f"{'rule ' + plain(rule.id, 8):{KIND_WIDTH}}", "accent"),
        Span(f"{plain(rule.answer, 40)} to {plain(rule.words, 300)}"),
    ]
    return spread(head, [Span(f"  {counted(uses, 'answer')}", "faint")], width)


def draw_rule_detail(rule: AnswerRule, uses: int, width: int) -> list[Line]:
    """Return the details of a rule, and the key to remove it."""
    text = f"Answers {plain(rule.answer, 200)} automatically to: {plain(rule.words, 2_500)}"
    lines: list[Line] = [[Span(line, "strong")] for line in wrap_text(text, width, 20)]
    use = f"added by {plain(rule.by, 80) or 'unknown'}, used {counted(uses, 'time')}"
    lines += [(), cut_line([Span(use, "dim")], width), ()]
    return [*lines, [Span("u", "key"), Span(" remove this rule")]]


def draw_item_detail(
    group: ItemGroup, item: Item, width: int, now: float, why_not: str, *, is_open: bool
) -> list[Line]:
    """Return the details of an item and the keys to answer it. For a group, the different requests are listed too.

    Digits choose an option only in an open group. Elsewhere they switch screens.
    """
    lines: list[Line] = []
    if item.test:
        who = plain(item.test, 1_000)
        lines.append([Span(cut_middle(who, width), "dim")])
        since = f"for {duration(now - item.since)}" if item.since else ""
        lines.append(
            cut_line([Span(" · ".join(word for word in (plain(item.agent, 200), since) if word), "faint")], width)
        )
    can_answer = not (item.problem or why_not)
    if item.question is not None and item.question.parts:
        lines += draw_question(item.question, width, are_keys=is_open and can_answer and has_digits(item))
        extra = "\n".join(filter(None, (NOT_ALL if item.question.is_inexact else "", item.question.detail)))
        lines += [[Span(line)] for line in wrap_text(extra, width)] if extra else []
    else:
        lines += [[Span(line, "strong")] for line in wrap_text(plain_lines(item.text), width)]
    if risk := risk_of(item.question):
        lines.append(cut_line([Span(f"! {risk}", "error")], width))
    lines += [(), *_answers(item, width, why_not, is_open=is_open)]
    if len(group.different) > 1:
        head = f"{len(group.different):,} different requests of {len(group.items):,} agents:"
        lines += [(), cut_line([Span(head, "heading")], width)]
        lines += draw_different(group, width)
    return lines


def draw_different(group: ItemGroup, width: int, shown: int = DIFFERENT_SHOWN) -> list[Line]:
    """Return the different requests of a group, most frequent first."""
    counts = sorted(group.different.items(), key=lambda entry: (-entry[1], entry[0]))
    lines: list[Line] = [
        cut_line([Span(f"{count:>4} ", "strong"), Span(title)], width) for title, count in counts[:shown]
    ]
    if len(counts) > shown:
        more = f"     … and {len(counts) - shown:,} more: press Enter to show all"
        lines.append(cut_line([Span(more, "dim")], width))
    return lines


def _answers(item: Item, width: int, why_not: str, *, is_open: bool) -> Iterable[Line]:
    """Return the keys that answer an item, or why it cannot be answered."""
    problem = item.problem or why_not
    if problem:
        yield from ([Span(line, "warning")] for line in wrap_text(problem, width, 4))
        return
    entries: list[tuple[str, str]] = []
    if item.options == (YES, NO):
        entries += [("y", "yes"), ("n", "no")]
    elif has_digits(item) and is_open:
        entries += [(f"1-{min(9, len(item.options))}", "choose")]
    elif has_digits(item):
        entries += [("Enter", "then choose by number")]
    words = "in words" if item.question is None or item.question.parts else "no, with a reason"
    entries.append(("m", words if entries else "write an answer"))
    yield cut_line([part for key, word in entries for part in (Span(key, "key"), Span(f" {word}   "))], width)


def has_digits(item: Item) -> bool:
    """Return whether one digit answers the item completely."""
    return bool(item.options) and not (item.question is not None and any(one.is_many for one in item.question.parts))


def draw_question(question: Question, width: int, *, are_keys: bool) -> list[Line]:
    """Return all questions, each with its options, their descriptions and a hint."""
    heading = wrap_text(plain_lines(question.heading), width) if question.heading else []
    lines: list[Line] = [[Span(row, "strong")] for row in heading]
    number = len(question.parts)
    for place, part in enumerate(question.parts, 1):
        text = f"{place} of {number}: {part.text}" if number > 1 else part.text
        lines += [[Span(row, "strong")] for row in wrap_text(plain_lines(text), width)]
        lines += draw_options(part, width, are_keys=are_keys and number == 1)
        lines += [[Span(f"  {row}", "dim")] for row in wrap_text(part.hint, width - 2)]
    return lines + [[Span(row, "dim")] for hint in closing_hints(question) for row in wrap_text(hint, width)]


def draw_options(part: QuestionPart, width: int, *, are_keys: bool) -> list[Line]:
    """Return the options of a question with their numbers and descriptions."""
    lines: list[Line] = []
    for number, (option, description) in enumerate(described_options(part), 1):
        mark, space = f"  {number} ", " " * (len(str(number)) + 3)
        rows = wrap_text(
            plain(option, 300) + (f": {plain(description, 300)}" if description else ""), width - len(mark)
        )
        lines.append([Span(mark, "key" if are_keys else "dim"), Span(rows[0])])
        lines += [[Span(f"{space}{row}")] for row in rows[1:]]
    return lines


def draw_transcript_end(lines: Sequence[str], width: int, height: int) -> list[Line]:
    """Return the last lines of the first agent's transcript that fit."""
    if not lines or height < 4:
        return []
    shown = lines[-(height - 2) :]
    return [
        (),
        [Span("end of its transcript", "heading")],
        *(cut_line([Span(line, "dim")], width) for line in shown),
    ]

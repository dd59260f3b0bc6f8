"""The inbox: everything that needs a person, most urgent first, and alike things as one group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from swarm_tui.insight.ask_groups import likeness_of
from swarm_tui.insight.causes import cause_of_text
from swarm_tui.insight.patterns import cause_of, raw_cause
from swarm_tui.insight.waits import is_turn_over, item_of_turn
from swarm_tui.journal.fold import SweepState
from swarm_tui.model.asks import Ask, AskKind, OpenAsk, identity
from swarm_tui.model.budget import limit_text
from swarm_tui.model.formatting import counted
from swarm_tui.model.outcome import EscalationKind
from swarm_tui.model.rules import common_subject
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import Result, State
from swarm_tui.model.sweep import INTEGRATOR_KEY
from swarm_tui.model.text import plain, plain_lines

NOT_TAKEN_AFTER: Final = 10.0
"""An answer that a hook has not taken for so many seconds is not taken at all."""
TEXT_LIMIT: Final = 4_000


class ItemKind(StrEnum):
    """Why a person is needed. In the order in which equally urgent ones are listed."""

    LOGIN = "login"
    BUDGET = "budget"
    PERMISSION = "permission"
    PLAN = "plan"
    QUESTION = "question"
    INPUT = "input"
    TURN = "waits"
    DIALOG = "dialog"
    DECISION = "decide"
    STUCK = "stuck"
    BLOCKED = "blocked"
    FAILED = "failed"
    UNRESOLVED = "unresolved"
    REVIEW = "review"
    SHARED = "pattern"
    BUG = "uncaught bug"
    REPORTED = "reported"
    HARD_TO_USE = "hard to use"


_ASKS: Final = {
    AskKind.PERMISSION: ItemKind.PERMISSION,
    AskKind.PLAN: ItemKind.PLAN,
    AskKind.QUESTION: ItemKind.QUESTION,
    AskKind.INPUT: ItemKind.INPUT,
}
WAITING_KINDS: Final = frozenset({*_ASKS.values(), ItemKind.TURN, ItemKind.DIALOG})
"""Somebody waits, and keeps a slot: these come first."""
_URGENCY: Final = {
    ItemKind.LOGIN: 0,
    ItemKind.BUDGET: 0,
    **dict.fromkeys(WAITING_KINDS, 1),
    ItemKind.STUCK: 2,
    ItemKind.DECISION: 3,
    ItemKind.BLOCKED: 3,
    ItemKind.FAILED: 4,
    ItemKind.UNRESOLVED: 5,
    ItemKind.REVIEW: 6,
    ItemKind.SHARED: 7,
    ItemKind.BUG: 7,
    ItemKind.REPORTED: 7,
    ItemKind.HARD_TO_USE: 8,
}
_ESCALATIONS: Final[Mapping[str, ItemKind]] = {
    EscalationKind.UNCAUGHT_BUG: ItemKind.BUG,
    EscalationKind.FIX_DIRECTION_AMBIGUOUS: ItemKind.DECISION,
    EscalationKind.HARNESS_DEFECT: ItemKind.BLOCKED,
    EscalationKind.SUITE_DUPLICATION: ItemKind.SHARED,
    EscalationKind.BLOCKER: ItemKind.BLOCKED,
    EscalationKind.SHARED_PATTERN: ItemKind.SHARED,
    EscalationKind.HARD_TO_USE: ItemKind.HARD_TO_USE,
}


class Item(NamedTuple):
    """One thing that needs a person."""

    id: str
    kind: ItemKind
    title: str
    """In one line."""
    likeness: str
    """Equal for items that are one group."""
    group_title: str
    text: str = ""
    """All that is known of it, in lines."""
    test: str = ""
    agent: str = ""
    since: float = 0.0
    asked: OpenAsk | None = None
    problem: str = ""
    """Why it cannot be answered from here; empty where it can."""

    @property
    def ask(self) -> Ask | None:
        return self.asked.ask if self.asked is not None else None

    @property
    def options(self) -> tuple[str, ...]:
        """The answers that can be chosen by their numbers."""
        return self.asked.ask.options if self.asked is not None else ()


class ItemGroup(NamedTuple):
    """Items that are alike; most are alone."""

    id: str
    """It stays as long as what is asked for does; further agents that ask the very same do not change it."""
    key: str
    """It stays also when other commands of the same kind join."""
    kind: ItemKind
    title: str
    items: tuple[Item, ...]
    is_later: bool = False

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.test for item in self.items if item.test))

    @property
    def answerable(self) -> tuple[Item, ...]:
        """The items that an answer of words can reach."""
        return tuple(item for item in self.items if not item.problem)

    @property
    def different(self) -> Mapping[str, int]:
        """Return the different things that the members ask for, with the number of those that do."""
        counts: dict[str, int] = {}
        for item in self.items:
            counts[item.title] = counts.get(item.title, 0) + 1
        return counts


RecordSource = Callable[[TestRecord, float], Iterable[Item]]
SweepSource = Callable[[SweepState], Iterable[Item]]


def find_items(state: SweepState, records: Iterable[TestRecord], now: float) -> list[Item]:
    """Return all items of a sweep; `records` may be only those that can have some."""
    items = [item for record in records for item in items_of(record, now)]
    if state.integrator is not None and not state.integrator.is_finished:
        items += items_of(state.integrator, now)
    return items + [item for source in SWEEP_SOURCES for item in source(state)]


def items_of(record: TestRecord, now: float) -> list[Item]:
    """Return the items of one test."""
    return [item for source in RECORD_SOURCES for item in source(record, now)]


def may_change_with_time(record: TestRecord) -> bool:
    """Return whether the items of a record may be others later, though the record is the same."""
    return any(asked.answered_at is not None for asked in record.asks)


class InboxIndex:
    """The items of a sweep's records, which are made anew only for records that have changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TestRecord, list[Item]]] = {}

    def items(self, state: SweepState, records: Iterable[TestRecord], now: float) -> list[Item]:
        """Return what `find_items` returns."""
        known, self._known = self._known, {}
        items: list[Item] = []
        for record in records:
            kept = known.get(record.test)
            is_same = kept is not None and kept[0] is record and not may_change_with_time(record)
            made = kept[1] if kept is not None and is_same else items_of(record, now)
            self._known[record.test] = record, made
            items += made
        return items + find_items(state, (), now)


def group_items(items: Iterable[Item], later: frozenset[str] = frozenset()) -> list[ItemGroup]:
    """Return the items in groups of alike ones, most urgent first; those that were put off (`later`) at the end."""
    found: dict[tuple[bool, ItemKind, str], list[Item]] = {}
    for item in items:
        found.setdefault((item.id in later, item.kind, item.likeness), []).append(item)
    groups = [
        _group(kind, likeness, members, is_later=is_later) for (is_later, kind, likeness), members in found.items()
    ]
    return sorted(groups, key=_order)


def inbox_as_markdown(groups: Iterable[ItemGroup], sweep: str) -> str:
    """Return the inbox as a Markdown document, to hand to someone."""
    lines = [f"# What the sweep {plain(sweep, 100)} needs", ""]
    for group in groups:
        lines.append(f"## {group.title} ({group.kind.value}, {len(group.items)})")
        detail = max((item.text for item in group.items), key=len)
        if detail != group.title:
            lines += ["", detail]
        lines += ["", *(f"- `{plain(test, 500)}`" for test in group.tests), ""]
    return "\n".join(lines)


def find_groups(
    state: SweepState, now: float, later: frozenset[str] = frozenset(), decided: int = 0
) -> list[ItemGroup]:
    """Return the groups of a whole sweep, of whose fixes so many are decided."""
    items = with_open_reviews(find_items(state, state.tests(), now), state.integration.fixes - decided)
    return group_items(items, later)


def _order(group: ItemGroup) -> tuple[object, ...]:
    kinds = list(ItemKind)
    oldest = min(item.since for item in group.items)
    urgency = _URGENCY[group.kind]
    return group.is_later, urgency, -len(group.items), oldest, kinds.index(group.kind), group.title, group.key


def _group(kind: ItemKind, likeness: str, members: list[Item], *, is_later: bool) -> ItemGroup:
    members.sort(key=lambda item: (item.since, item.test, item.id))
    titles = sorted({item.title for item in members})
    title = titles[0] if len(titles) == 1 else members[0].group_title
    group = identity(kind.value, likeness, *titles)
    return ItemGroup(group, f"{kind.value}\n{likeness}\n{is_later}", kind, title, tuple(members), is_later)


# What needs a person, one function for each reason. A further reason is a further function in one of the two tables.


def _asks(record: TestRecord, now: float) -> Iterable[Item]:
    for asked in record.asks:
        if asked.answered_at is not None and now - asked.answered_at < NOT_TAKEN_AFTER:
            continue
        ask = asked.ask
        likeness = likeness_of(ask, record.own_places)
        subject = plain(common_subject(ask, record.own_places), 300)
        title = f"{ask.tool} `{subject}`" if ask.kind is AskKind.PERMISSION and subject else likeness.title
        not_taken = f"{asked.answered_by or 'somebody'} has answered, but its hook has not taken it"
        yield _item(
            record,
            _ASKS[ask.kind],
            title,
            item=asked.item,
            likeness=likeness.key,
            group_title=likeness.title,
            text=_text_of(ask),
            since=ask.at or record.since,
            asked=asked,
            problem=f"{not_taken}: answer it in its terminal" if asked.answered_at is not None else "",
        )


def _text_of(ask: Ask) -> str:
    lines = [ask.text]
    if ask.is_inexact:
        lines.append("! This is not all of it: it is longer, or has signs that are not shown. Look in its terminal.")
    if len(ask.questions) == 1 and ask.questions[0].is_many:
        lines.append("Several may be chosen, as 1,3.")
    if len(ask.questions) > 1:
        for question in ask.questions:
            options = "  ".join(f"{number} {option}" for number, option in enumerate(question.options, 1))
            lines.append(f"· {question.text}  {options}".rstrip())
    return "\n".join([*lines, ask.detail] if ask.detail else lines)


def _turn(record: TestRecord, now: float) -> Iterable[Item]:
    if is_turn_over(record):
        text = plain_lines(record.question[:TEXT_LIMIT]).strip() or "it waits, and no question was seen"
        yield _item(record, ItemKind.TURN, plain(text, 300), item=item_of_turn(record), text=text)


def _dialog(record: TestRecord, now: float) -> Iterable[Item]:
    if record.state is State.WAITING and record.needs_terminal and not record.asks:
        title = plain(record.question or "a dialog is open in its terminal", 300)
        yield _item(record, ItemKind.DIALOG, title, problem="answer it in its terminal: no hook knows of it")


def _escalations(record: TestRecord, now: float) -> Iterable[Item]:
    for escalation in record.harvest.escalations:
        title = escalation.title or record.reason or "(no title)"
        kind = _ESCALATIONS.get(escalation.kind, ItemKind.REPORTED)
        if kind is ItemKind.REPORTED:
            title = f"{escalation.kind_in_words}: {title}"
        places = "\n".join(str(location) for location in escalation.locations)
        text = "\n\n".join(filter(None, (escalation.detail_markdown, places)))
        yield _cause(record, kind, title, text)


def _result(record: TestRecord, now: float) -> Iterable[Item]:
    if record.state is not State.DONE:
        return
    if record.result is Result.BLOCKED and not record.harvest.escalations:
        title = record.reason or record.harvest.summary or "(no reason given)"
        yield _cause(record, ItemKind.BLOCKED, title, record.harvest.summary)
    elif record.result is Result.FAILED:
        yield _cause(record, ItemKind.FAILED, raw_cause(record), record.reason, likeness=cause_of(record))
    elif record.result is Result.UNRESOLVED:
        summary = record.harvest.summary
        yield _cause(record, ItemKind.UNRESOLVED, raw_cause(record), summary, likeness=cause_of(record))


def _stuck(record: TestRecord, now: float) -> Iterable[Item]:
    if record.state is State.RUNNING and record.stuck:
        yield _cause(record, ItemKind.STUCK, record.stuck, record.last_line)


def _login(state: SweepState) -> Iterable[Item]:
    if state.access.lost and not state.is_over:
        words, reason = state.access.lost_words, plain(state.access.lost_reason, 300)
        title = f"{words}: nothing is launched" + (f" ({reason})" if reason else "")
        item = identity("login", state.access.lost, reason)
        yield Item(item, ItemKind.LOGIN, title, "", title, problem="log in, then L on screen 1 goes on")


def _budget(state: SweepState) -> Iterable[Item]:
    if state.budget.is_used_up and not state.is_over:
        limit = limit_text(state.budget.total)
        title = f"the budget of {limit} is spent: nothing further is launched until it is raised"
        item = identity("budget", limit)
        raised = "`swarm-tui request budget` raises it"
        yield Item(item, ItemKind.BUDGET, title, "", title, text=f"{title}\n{raised}", problem=raised)


def _review(state: SweepState) -> Iterable[Item]:
    done = state.integration
    if done.state == "done" and done.fixes:
        title = _review_title(done.fixes)
        yield Item(
            identity("review", done.tip, str(done.fixes)),
            ItemKind.REVIEW,
            title,
            "",
            title,
            since=done.at or 0.0,
            problem="each fix has a verdict of its own: 3",
        )


def _review_title(fixes: int) -> str:
    return f"{counted(fixes, 'fix is', 'fixes are')} ready to be reviewed"


def with_open_reviews(items: Iterable[Item], fixes: int) -> list[Item]:
    """Return the items with the number of fixes that have no verdict yet; without a review where all have one."""
    title = _review_title(fixes)
    return [
        item._replace(title=title, group_title=title) if item.kind is ItemKind.REVIEW else item
        for item in items
        if fixes > 0 or item.kind is not ItemKind.REVIEW
    ]


def _item(
    record: TestRecord,
    kind: ItemKind,
    title: str,
    *,
    item: str = "",
    likeness: str = "",
    group_title: str = "",
    text: str = "",
    since: float | None = None,
    asked: OpenAsk | None = None,
    problem: str = "",
) -> Item:
    is_integrator = record.test == INTEGRATOR_KEY
    return Item(
        id=item or identity(record.test, kind.value, title, str(record.attempt)),
        kind=kind,
        title=title,
        likeness=likeness or title.casefold(),
        group_title=group_title or title,
        text=text or title,
        test=record.test,
        agent="the integrator" if is_integrator else record.agent,
        since=record.since if since is None else since,
        asked=asked,
        problem=problem,
    )


def _cause(record: TestRecord, kind: ItemKind, title: str, detail: str, *, likeness: str = "") -> Item:
    shown, more = plain(title, 300), plain_lines(detail[:TEXT_LIMIT]).strip()
    return _item(
        record,
        kind,
        shown,
        likeness=(likeness or cause_of_text(title)).casefold(),
        text=f"{shown}\n{more}" if more and more != shown else shown,
        problem="words do not help here: x has what can be done",
    )


RECORD_SOURCES: Final[tuple[RecordSource, ...]] = (_asks, _turn, _dialog, _escalations, _result, _stuck)
SWEEP_SOURCES: Final[tuple[SweepSource, ...]] = (_login, _budget, _review)

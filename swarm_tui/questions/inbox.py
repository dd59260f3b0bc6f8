"""Inbox: what needs the user, most urgent first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from math import inf
from typing import Final, NamedTuple

from swarm_tui.failures.causes import cause_of_text
from swarm_tui.failures.patterns import cause_of, last_failure, raw_cause
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import INTEGRATOR_KEY
from swarm_tui.model.formatting import counted
from swarm_tui.model.pulled import EscalationKind
from swarm_tui.model.questions import OpenQuestion, Question, QuestionKind, common_subject, identity, question_lines
from swarm_tui.model.results import Result, State
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.money.events import limit_text
from swarm_tui.questions.groups import group_key, is_turn_over, item_of_turn


def needs_person(record: TestRecord) -> bool:
    """Return whether the key `w` visits a test."""
    return attention_order(record)[0] < _RUNNING


def attention_order(record: TestRecord) -> tuple[int, float]:
    """Return a sort key: the most urgent class first, then the longest in its state."""
    if record.state is State.WAITING:
        return _WAITING, record.since
    if record.state is State.DONE and record.result in _CLASS_OF_RESULT and is_left_to_a_person(record):
        return _CLASS_OF_RESULT[record.result], record.since
    if record.stuck:
        return _STUCK, record.since
    if record.state is State.DONE:
        return _DONE, record.since
    return (_RUNNING if record.state is State.RUNNING else _NOT_RUNNING), record.since


def is_left_to_a_person(record: TestRecord) -> bool:
    """Return whether only the user can continue: swarm-tui has no check of a claim left to run."""
    check = record.pulled.check
    return record.result is not Result.CLAIMED or check is None or check.verdict != "pending"


def attention_class(record: TestRecord) -> int:
    """Return 0 for a test that waits for an answer, 1 for a blocked test, and 2 for others."""
    return min(attention_order(record)[0], 2)


_CLASS_OF_RESULT: Final[dict[Result | None, int]] = {
    Result.BLOCKED: 1,
    Result.ERROR: 2,
    Result.UNRESOLVED: 3,
    Result.CLAIMED: 3,
}
_WAITING, _STUCK, _RUNNING, _NOT_RUNNING, _DONE = 0, 4, 5, 6, 8

NOT_TAKEN_AFTER: Final = 10.0
"""After this many seconds, an answer that a hook has not read counts as not delivered."""
TEXT_LIMIT: Final = 4_000
NOT_ALL: Final = "! Shown incompletely: it is longer or contains hidden characters. See the agent's terminal."


class ItemKind(StrEnum):
    """Why the user is needed, in the order of equally urgent items."""

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
    ERROR = "error"
    CLAIMED = "claimed"
    UNRESOLVED = "unresolved"
    COMMITS = "commits"
    CHECKOUT = "checkout"
    REVIEW = "review"
    SHARED = "pattern"
    BUG = "uncaught bug"
    REPORTED = "reported"
    HARD_TO_USE = "hard to use"


_ITEM_KINDS: Final = {
    QuestionKind.PERMISSION: ItemKind.PERMISSION,
    QuestionKind.PLAN: ItemKind.PLAN,
    QuestionKind.QUESTION: ItemKind.QUESTION,
    QuestionKind.INPUT: ItemKind.INPUT,
}
WAITING_KINDS: Final = frozenset({*_ITEM_KINDS.values(), ItemKind.TURN, ItemKind.DIALOG})
"""An agent is waiting and uses a slot, so these come first."""
_URGENCY: Final = {
    ItemKind.LOGIN: 0,
    ItemKind.BUDGET: 0,
    **dict.fromkeys(WAITING_KINDS, 1),
    ItemKind.STUCK: 2,
    ItemKind.DECISION: 3,
    ItemKind.BLOCKED: 3,
    ItemKind.ERROR: 4,
    ItemKind.CLAIMED: 5,
    ItemKind.UNRESOLVED: 5,
    ItemKind.COMMITS: 5,
    ItemKind.CHECKOUT: 5,
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
    EscalationKind.UNFINISHED_BLOCK: ItemKind.UNRESOLVED,
    EscalationKind.BLOCKER: ItemKind.BLOCKED,
    EscalationKind.SHARED_PATTERN: ItemKind.SHARED,
    EscalationKind.HARD_TO_USE: ItemKind.HARD_TO_USE,
}


_OPEN_RESULTS: Final[Mapping[Result | None, ItemKind]] = {
    Result.ERROR: ItemKind.ERROR,
    Result.UNRESOLVED: ItemKind.UNRESOLVED,
}


class Item(NamedTuple):
    """One item that needs the user."""

    id: str
    kind: ItemKind
    title: str
    """One line."""
    likeness: str
    """A key that is equal for all items of a group."""
    group_title: str
    text: str = ""
    """All details, in lines."""
    test: str = ""
    agent: str = ""
    since: float = 0.0
    open_question: OpenQuestion | None = None
    problem: str = ""
    """Why it cannot be answered in swarm-tui, or what to do instead; empty if it can."""

    @property
    def question(self) -> Question | None:
        return self.open_question.question if self.open_question is not None else None

    @property
    def options(self) -> tuple[str, ...]:
        """The answers that the user can choose by number."""
        return self.open_question.question.options if self.open_question is not None else ()


class ItemGroup(NamedTuple):
    """Similar items. Most groups have one."""

    id: str
    """Depends on the titles in the group: it does not change if more agents ask exactly the same."""
    key: str
    """Stable even if other commands of the same kind are added."""
    kind: ItemKind
    title: str
    items: tuple[Item, ...]
    is_deferred: bool = False

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(item.test for item in self.items if item.test))

    @property
    def answerable(self) -> tuple[Item, ...]:
        """The items that can be answered with text."""
        return tuple(item for item in self.items if not item.problem)

    @property
    def different(self) -> Mapping[str, int]:
        """The different titles in the group, with the number of items of each."""
        counts: dict[str, int] = {}
        for item in self.items:
            counts[item.title] = counts.get(item.title, 0) + 1
        return counts


RecordSource = Callable[[TestRecord, float], Iterable[Item]]
SweepSource = Callable[[SweepState], Iterable[Item]]


def find_items(state: SweepState, records: Iterable[TestRecord], now: float) -> list[Item]:
    """Return all items of a sweep; `records` may omit records that cannot have items."""
    items = [item for record in records for item in items_of(record, now)]
    if state.integrator is not None and not state.integrator.is_finished:
        items += items_of(state.integrator, now)
    return items + [item for source in SWEEP_SOURCES for item in source(state)]


def items_of(record: TestRecord, now: float) -> list[Item]:
    """Return the items of one test."""
    return [item for source in RECORD_SOURCES for item in source(record, now)]


def can_have_items(record: TestRecord) -> bool:
    """Return whether a test has items, will have some without a new event, or is visited by the key `w`."""
    return bool(record.open_questions) or needs_person(record) or bool(items_of(record, inf))


def may_change_with_time(record: TestRecord) -> bool:
    """Return whether the items of an unchanged record may change later."""
    return any(each.answered_at is not None for each in record.open_questions)


class InboxIndex:
    """A cache for `find_items` that only recomputes the items of changed records."""

    def __init__(self) -> None:
        self._cache: dict[str, tuple[TestRecord, list[Item]]] = {}

    def items(self, state: SweepState, records: Iterable[TestRecord], now: float) -> list[Item]:
        """Return the same as `find_items`."""
        old, self._cache = self._cache, {}
        items: list[Item] = []
        for record in records:
            entry = old.get(record.test)
            is_same = entry is not None and entry[0] is record and not may_change_with_time(record)
            own = entry[1] if entry is not None and is_same else items_of(record, now)
            self._cache[record.test] = record, own
            items += own
        return items + find_items(state, (), now)


def group_items(items: Iterable[Item], later: frozenset[str] = frozenset()) -> list[ItemGroup]:
    """Return the items in groups of similar ones, most urgent first, with deferred items (`later`) at the end."""
    grouped: dict[tuple[bool, ItemKind, str], list[Item]] = {}
    for item in items:
        grouped.setdefault((item.id in later, item.kind, item.likeness), []).append(item)
    groups = [
        _group(kind, likeness, members, is_deferred=is_deferred)
        for (is_deferred, kind, likeness), members in grouped.items()
    ]
    return sorted(groups, key=_order)


def inbox_as_markdown(groups: Iterable[ItemGroup], sweep: str) -> str:
    """Return the inbox as a Markdown document."""
    lines = [f"# Inbox of the sweep {plain(sweep, 100)}", ""]
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
    """Return the groups of a whole sweep; `decided` is the number of fixes with a verdict."""
    items = with_open_reviews(find_items(state, state.tests(), now), state.integration.fixes - decided)
    return group_items(items, later)


def _order(group: ItemGroup) -> tuple[object, ...]:
    kinds = list(ItemKind)
    oldest = min(item.since for item in group.items)
    urgency = _URGENCY[group.kind]
    return group.is_deferred, urgency, -len(group.items), oldest, kinds.index(group.kind), group.title, group.key


def _group(kind: ItemKind, likeness: str, members: list[Item], *, is_deferred: bool) -> ItemGroup:
    members.sort(key=lambda item: (item.since, item.test, item.id))
    titles = sorted({item.title for item in members})
    title = titles[0] if len(titles) == 1 else members[0].group_title
    group = identity(kind.value, likeness, *titles)
    return ItemGroup(group, f"{kind.value}\n{likeness}\n{is_deferred}", kind, title, tuple(members), is_deferred)


# One function for each source of items. They are listed in two tables at the end.


def _asks(record: TestRecord, now: float) -> Iterable[Item]:
    for open_question in record.open_questions:
        if open_question.answered_at is not None and now - open_question.answered_at < NOT_TAKEN_AFTER:
            continue
        question = open_question.question
        likeness = group_key(question, record.own_places)
        subject = plain(common_subject(question, record.own_places), 300)
        title = (
            f"{question.tool} `{subject}`" if question.kind is QuestionKind.PERMISSION and subject else likeness.title
        )
        not_taken = f"the hook did not read the answer of {open_question.answered_by or 'a user'}"
        yield _item(
            record,
            _ITEM_KINDS[question.kind],
            title,
            item=open_question.item,
            likeness=likeness.key,
            group_title=likeness.title,
            text=_text_of(question),
            since=question.at or record.since,
            open_question=open_question,
            problem=f"{not_taken}; answer in the agent's terminal" if open_question.answered_at is not None else "",
        )


def _text_of(question: Question) -> str:
    lines = question_lines(question)
    if question.is_inexact:
        lines.append(NOT_ALL)
    return "\n".join([*lines, question.detail] if question.detail else lines)


def _turn(record: TestRecord, now: float) -> Iterable[Item]:
    if is_turn_over(record):
        text = plain_lines(record.question[:TEXT_LIMIT]).strip() or "waiting for an answer to an unknown question"
        yield _item(record, ItemKind.TURN, plain(text, 300), item=item_of_turn(record), text=text)


def _dialog(record: TestRecord, now: float) -> Iterable[Item]:
    if record.state is State.WAITING and record.needs_terminal and not record.open_questions:
        title = plain(record.question or "a dialog is open in its terminal", 300)
        yield _item(
            record, ItemKind.DIALOG, title, problem="answer in the agent's terminal; its hook does not report it"
        )


def _escalations(record: TestRecord, now: float) -> Iterable[Item]:
    for escalation in record.pulled.escalations:
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
    if record.result is Result.BLOCKED and not record.pulled.escalations:
        title = record.reason or record.pulled.summary or "(no reason given)"
        yield _cause(record, ItemKind.BLOCKED, title, record.pulled.summary)
    elif record.result in _OPEN_RESULTS:
        # The title is the text of `status`. The failure from pytest is part of the details.
        title, failure, summary = record.reason or raw_cause(record), last_failure(record), record.pulled.summary
        lines = [line for line in (failure, summary) if line and line not in title]
        likeness = "" if record.reason else cause_of(record)
        yield _cause(record, _OPEN_RESULTS[record.result], title, "\n".join(lines), likeness=likeness)
    elif record.result is Result.CLAIMED and is_left_to_a_person(record):
        is_impossible = record.pulled.check is not None and record.pulled.check.verdict == "impossible"
        what = "`swarm-tui resume` runs the test again" if is_impossible else "look at the agent's commits"
        yield _cause(record, ItemKind.CLAIMED, record.reason, what, likeness=cause_of_text(record.reason))


def _commits_elsewhere(record: TestRecord, now: float) -> Iterable[Item]:
    """Yield commits that are not on the agent's branch and therefore not on the integrated branch."""
    pulled = record.pulled
    for left in pulled.elsewhere:
        count = counted(left.commits, "commit") if left.commits else "commits"
        lines = [f"{left.words}. They are not part of the integrated branch."]
        if left.ref:
            commits = left.ref if left.commits == 1 else f"{left.ref}~{left.commits}..{left.ref}"
            lines += [f"show: `git log -p {left.ref}`", f"apply: `git cherry-pick {commits}`"]
        yield _cause(record, ItemKind.COMMITS, f"the agent left {count} on {left.where}", "\n".join(lines))
    if pulled.copy_problem and not pulled.tip:
        kept = "The changes are saved as uncommitted.patch in the agent's folder of the sweep."
        text = "The agent's commits are lost. Its files are kept until `swarm-tui clean` or a retry."
        text += f"\n{kept}" if pulled.has_uncommitted else ""
        yield _cause(record, ItemKind.COMMITS, pulled.copy_problem, text)


def _stuck(record: TestRecord, now: float) -> Iterable[Item]:
    if record.state is State.RUNNING and record.stuck:
        yield _cause(record, ItemKind.STUCK, record.stuck, record.last_line)


def _login(state: SweepState) -> Iterable[Item]:
    if state.access.lost and not state.is_over:
        reason = plain(state.access.lost_reason, 300)
        title = f"{state.access.lost_words}: nothing is launched" + (f" ({reason})" if reason else "")
        words = ("login", state.access.lost, reason)
        yield _sweep_item(ItemKind.LOGIN, title, words, problem="log in, then press L on screen 1")


def _budget(state: SweepState) -> Iterable[Item]:
    if state.budget.is_used_up and not state.is_over:
        limit = limit_text(state.budget.total)
        title = f"the budget of {limit} is spent, so nothing is launched"
        hint = "raise it with `swarm-tui request budget`"
        yield _sweep_item(ItemKind.BUDGET, title, ("budget", limit), text=f"{title}\n{hint}", problem=hint)


def _checkout(state: SweepState) -> Iterable[Item]:
    changes = state.checkout_changes
    if changes:
        title = f"your repository has changed: {changes[0]}" + (f" and {len(changes) - 1} more" if changes[1:] else "")
        text = "\n".join(("Changes in your repository since launch:", *changes))
        problem = "check it with git; swarm-tui did not change it"
        yield _sweep_item(ItemKind.CHECKOUT, title, ("checkout", *changes), text=text, problem=problem)


def _problems(state: SweepState) -> Iterable[Item]:
    done = state.integration
    for problem in done.problems if done.state == "done" else ():
        title, words = plain(problem, 300), ("integrated", done.tip, problem)
        where = "see screen 3 for the fix that breaks each test, and press R there for the integrator's report"
        yield _sweep_item(ItemKind.ERROR, title, words, text=title, since=done.at or 0.0, problem=where)


def _review(state: SweepState) -> Iterable[Item]:
    done = state.integration
    if done.state == "done" and done.fixes:
        title, words = _review_title(done.fixes), ("review", done.tip, str(done.fixes))
        problem = "press 3 to review the fixes"
        yield _sweep_item(ItemKind.REVIEW, title, words, since=done.at or 0.0, problem=problem)


def _review_title(fixes: int) -> str:
    return f"{counted(fixes, 'fix is', 'fixes are')} ready to review"


def with_open_reviews(items: Iterable[Item], fixes: int) -> list[Item]:
    """Return the items with the number of fixes without a verdict. The review item is removed if there are none."""
    title = _review_title(fixes)
    return [
        item._replace(title=title, group_title=title) if item.kind is ItemKind.REVIEW else item
        for item in items
        if fixes > 0 or item.kind is not ItemKind.REVIEW
    ]


def _sweep_item(
    kind: ItemKind, title: str, words: Iterable[str], *, text: str = "", since: float = 0.0, problem: str
) -> Item:
    """Return an item about the sweep as a whole; `words` distinguish it from earlier ones of its kind."""
    return Item(identity(*words), kind, title, "", title, text, since=since, problem=problem)


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
    open_question: OpenQuestion | None = None,
    problem: str = "",
) -> Item:
    is_integrator = record.test == INTEGRATOR_KEY
    return Item(
        id=item or identity(record.test, kind.value, title, str(record.launch)),
        kind=kind,
        title=title,
        likeness=likeness or title.casefold(),
        group_title=group_title or title,
        text=text or title,
        test=record.test,
        agent="the integrator" if is_integrator else record.agent,
        since=record.since if since is None else since,
        open_question=open_question,
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
        problem="cannot be answered directly; press x for actions, such as retry with a note",
    )


RECORD_SOURCES: Final[tuple[RecordSource, ...]] = (
    _asks,
    _turn,
    _dialog,
    _escalations,
    _result,
    _commits_elsewhere,
    _stuck,
)
SWEEP_SOURCES: Final[tuple[SweepSource, ...]] = (_login, _budget, _checkout, _problems, _review)

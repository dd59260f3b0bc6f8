"""Header, open work and next step of a sweep, and the sweep as plain lines. Without Textual."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.limits.events import throttle_text
from swarm_tui.model.formatting import age, clock, counted, duration, wall_clock
from swarm_tui.model.spec import SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.money.budget import cost_text
from swarm_tui.money.events import WARNED_AT, Budget
from swarm_tui.questions.inbox import WAITING_KINDS, Item, ItemKind
from swarm_tui.room.actions import SCREENS, ScreenEntry
from swarm_tui.room.draw.frame import NextFacts, ScreenFacts, draw_bar, draw_next
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill, word_of
from swarm_tui.room.draw.spans import Line, Span, cut_line, spread, text_of, whole_entries, width_of
from swarm_tui.room.grid.draw import changes_of, last_words
from swarm_tui.room.grid.draw_layout import GridOptions, arrange
from swarm_tui.room.store import NO_AGENTS, EngineState, Store

if TYPE_CHECKING:
    from swarm_tui.room.fixes.session import ReviewSession

ONE_DAY: Final = 86_400.0


def draw_header(
    store: Store, width: int, height: int = 2, *, screen: str = "", shown_pills: Collection[str] = ()
) -> list[Line]:
    """Return the header: facts about the sweep, and the bar of states with the pills that filter highlighted."""
    return [_facts_line(store, screen, width), _bar_line(store.state.counts, shown_pills, width)][: max(1, height)]


def _facts_line(store: Store, screen: str, width: int) -> Line:
    state, spec = store.state, store.opened.spec
    left = [Span(" "), Span(plain(spec.sweep, 60), "strong")]
    if screen:
        left += [Span(" · ", "faint"), Span(screen, "accent")]
    status, role = _status(store, "1 " if screen else "")
    elapsed, rest = _elapsed(store), _seconds_left(store)
    facts = [
        (status, role),
        ("not verified" if spec.why_not_verified else "", "warning"),
        (f"{age(store.live_clock() - store.past.at)} · ] later" if store.past is not None else "", role),
        (clock(elapsed) if elapsed is not None else "", ""),
        (f"~{clock(rest)} left" if rest is not None else "", "dim"),
    ]
    entries: list[list[Span]] = [[Span(text, style)] for text, style in facts if text]
    if not store.is_watch:
        throttle = (
            throttle_text(state.access.throttle, state.slots, store.clock())
            if store.engine is EngineState.RUNNING
            else ""
        )
        words = throttle or f"{state.slots_in_use}/{state.slots}"
        slots = [Span("slots ", "dim"), Span(words, "warning" if throttle else "")]
        if store.wanted_slots != state.slots:
            slots.append(Span(f"→{store.wanted_slots}", "pending"))
        # On a narrow terminal, the reason for the throttle has priority over the time.
        entries.insert(len(entries) if not throttle else bool(status), slots)
    if cost := cost_text(state, is_imputed=spec.is_cost_imputed):
        # So has a budget that is nearly used up.
        cost_role = _cost_role(state.budget)
        entries.insert(bool(status) if cost_role else len(entries), [Span(cost, cost_role)])
    right = [*whole_entries(entries, max(0, width - width_of(left) - 3), 3), Span(" ")]
    about = " · ".join(filter(None, (plain(spec.title, 60), _place(spec) if not store.is_watch else "")))
    if about and width_of(left) + len(about) + width_of(right) + 4 <= width:
        left += [Span("  "), Span(about, "dim")]
    return spread(left, right, width)


def _elapsed(store: Store) -> float | None:
    """Return the duration of the sweep in seconds, or None if it has not started."""
    state = store.state
    is_moving = store.engine in (EngineState.RUNNING, EngineState.PAST) and state.ended_at is None
    end = store.clock() if is_moving else state.ended_at or state.last_at
    return end - state.started_at if state.started_at is not None and not store.is_watch else None


def _seconds_left(store: Store) -> float | None:
    integrating = store.integration_progress()
    return store.seconds_left() if integrating is None else integrating.seconds_left


def _bar_line(counts: Mapping[str, int], shown_pills: Collection[str], width: int) -> Line:
    total = sum(counts.values())
    pills = []
    for pill, marks in PILLS.items():
        number = sum(counts.get(mark, 0) for mark in marks)
        if number or pill in shown_pills:
            mark = mark_of_pill(pill)
            role = mark.role if not shown_pills or pill in shown_pills else "faint"
            role += " underline" if pill in shown_pills else ""
            pills.append([Span(f"{mark.glyph}{number:,}", role, f"pill:{pill}")])
    pills_line = whole_entries([*pills, [Span(f"{total:,}", "dim")]], max(10, width - 2), 1)
    room = width - width_of(pills_line) - 4
    if room < 12 or not total:
        return cut_line([Span(" "), *pills_line], width)
    return [Span(" "), *draw_bar(counts, room), Span("  "), *pills_line, Span(" ")]


def _cost_role(budget: Budget) -> str:
    if budget.is_used_up:
        return "error"
    return "warning" if budget.is_blind or budget.percent >= WARNED_AT else ""


def _place(spec: SweepSpec) -> str:
    """Return the commit that the agents started from, and their permissions."""
    commit = plain(spec.base, 60)[:7]
    words = [f"{plain(spec.base_name, 30)}@{commit}" if spec.base_name else commit]
    if agent_type_of_sweep(spec).permission(spec.permissions, spec.agent_arguments).sentence:
        words.append(f"permissions {spec.permissions}")
    return " · ".join(words)


def _status(store: Store, keys_before: str) -> tuple[str, str]:
    """Return the status and its role; `keys_before` are the keys that open the screen of its action."""
    state = store.state
    if store.past is not None:
        at, now = store.past.at, store.live_clock()
        day = "" if now - at < ONE_DAY else f"{datetime.fromtimestamp(at):%Y-%m-%d} "
        return f"{day}{wall_clock(at)} · Esc now", "accent"
    if store.problem:
        return "folder gone" if store.problem.startswith("folder not found") else "cannot be read", "error"
    if not store.is_loaded:
        return "reading", "dim"
    if state.foreign_lines:
        return "journal altered · 6 log", "error"
    if store.engine is EngineState.GONE and store.is_watch:
        return "not watched any more", "error"
    if store.engine is EngineState.GONE:
        return f"engine gone {age(store.clock() - state.last_at)} · {keys_before}R resumes", "error"
    if store.engine is EngineState.ELSEWHERE:
        return "from another machine", "dim"
    if state.access.lost:
        return f"{state.access.lost_words} · {keys_before}L resumes", "error"
    if state.is_held:
        return "queue held", "warning"
    if state.budget.is_used_up and not state.is_over:
        return f"budget reached · {keys_before}$ raises it", "error"
    if state.integration.state == "integrating":
        progress = store.integration_progress()
        part = progress.part if progress is not None else None
        return f"integrating {part:.0%}" if part is not None else "integrating", "running"
    if store.engine is EngineState.ENDED and state.ended_why is not None:
        role = {"finished": "good", "stopped": "warning"}.get(state.ended_why, "error")
        return ("engine failed" if state.ended_why == "failed" else state.ended_why), role
    silent = sum(host.lost_since is not None for host in state.hosts.values())
    if silent and store.engine is EngineState.RUNNING:
        return f"{silent} of {counted(len(state.hosts), 'host')} silent", "warning"
    if state.stale_reason:
        return "stale", "warning"
    if store.is_from_newer_version:
        return "from a newer swarm-tui", "warning"
    return "", ""


def open_items(store: Store) -> list[Item]:
    """Return the items of the inbox that are not deferred."""
    return [item for group in store.inbox() if not group.is_deferred for item in group.items]


def screen_facts(store: Store, review: ReviewSession | None, here: str) -> list[ScreenFacts]:
    """Return the screens with their number of open items. The Hosts screen is left out if the sweep has no hosts."""
    numbers = {
        "fixes": open_fix_count(store, review),
        "patterns": len(store.patterns()),
        "inbox": len(open_items(store)),
        "hosts": sum(host.lost_since is not None for host in store.state.hosts.values()),
    }
    return [
        ScreenFacts(entry.key, entry.name, _title(entry, store), numbers.get(entry.name, 0), entry.name == here)
        for entry in SCREENS
        if (entry.name != "hosts" or store.state.hosts or here == "hosts")
        and (entry.is_for_watch or not store.is_watch)
    ]


def _title(entry: ScreenEntry, store: Store) -> str:
    return entry.watch_title or entry.title if store.is_watch else entry.title


def open_fix_count(store: Store, review: ReviewSession | None) -> int:
    """Return the number of fixes without a verdict. Before the review is open, use the saved verdicts."""
    if store.past is not None and store.state.integration.state != "done":
        return 0
    if review is not None:
        return len(review.review.open_fixes)
    integration = store.state.integration
    return max(0, integration.fixes - store.decided_fixes()) if integration.state == "done" else 0


def next_facts(store: Store, review: ReviewSession | None) -> NextFacts | None:
    """Return the next steps after the sweep; None while its engine is running."""
    state = store.state
    if store.engine is not EngineState.ENDED or state.ended_why is None or not state.records:
        return None
    items = open_items(store)
    questions = sum(item.kind in WAITING_KINDS for item in items)
    reviews = sum(item.kind is ItemKind.REVIEW for item in items)
    fixes = open_fix_count(store, review)
    return NextFacts(
        fixes=fixes,
        decided=state.integration.fixes - fixes,
        applied=review.applied if review is not None else store.applied_branch(),
        questions=questions,
        others=len(items) - questions - reviews,
        can_resume=state.ended_why != "finished",
        is_integration_failed=state.integration.state == "failed",
    )


WIDE = 10_000


def plain_lines_of(store: Store) -> Iterator[str]:
    """Return the sweep as lines: the counts, the inbox, the patterns, and every test."""
    yield from _sweep(store)
    groups = [group for group in store.inbox() if not group.is_deferred]
    yield ""
    yield f"Inbox: {counted(sum(len(group.items) for group in groups), 'item')}"
    for group in groups:
        many = f"{len(group.items)} times " if len(group.items) > 1 else ""
        yield f"- {many}{group.kind.value}: {plain(group.title)}"
    yield ""
    if not store.is_watch:
        patterns = store.patterns()
        yield f"Patterns: {len(patterns)}"
        for pattern in patterns:
            yield f"- {counted(len(pattern.tests), 'test')} {pattern.kind}: {plain(pattern.cause)}"
        yield ""
    if store.is_watch and not store.state.records:
        yield NO_AGENTS
        return
    yield f"{store.noun.capitalize()}s: {len(store.state.records)}"
    options = GridOptions(group="project") if store.is_watch else GridOptions()
    for shown in arrange(store.state.records, options, store.clock()):
        yield f"{shown.label}: {counted(len(shown.tests), store.noun)}"
        for record in store.records_of(shown.tests):
            yield f"- {_test(record, store.now)}"


def _sweep(store: Store) -> Iterator[str]:
    spec, state = store.opened.spec, store.state
    status = f"at {wall_clock(store.past.at)}" if store.past is not None else _status(store, "")[0]
    status = status or ("running" if state.ended_why is None else state.ended_why)
    caveat = ", not verified" if spec.why_not_verified else ""
    yield f"Sweep {plain(spec.sweep, 60)}: {status}{caveat}" if not store.is_watch else "Agents of mngr"
    counts = []
    for pill, marks in PILLS.items():
        if number := sum(state.counts.get(mark, 0) for mark in marks):
            counts.append(f"{number:,} {mark_of_pill(pill).word}")
    yield ", ".join(counts)
    numbers = [f"slots {state.slots_in_use} of {state.slots}"] if not store.is_watch else []
    if (elapsed := _elapsed(store)) is not None:
        numbers.append(f"for {duration(elapsed)}")
    if (left := _seconds_left(store)) is not None:
        numbers.append(f"about {duration(left)} left")
    cost = cost_text(state, is_imputed=spec.is_cost_imputed)
    numbers += [f"cost {cost}"] if cost else []
    yield from [", ".join(numbers)] if numbers else []
    integrating = store.integration_progress()
    if integrating is not None:
        yield f"integrating: {integrating.words}"
    if fixes := open_fix_count(store, None):
        yield f"{counted(fixes, 'fix is', 'fixes are')} ready for review"
    comes_next = next_facts(store, None)
    if comes_next is not None:
        yield text_of(draw_next(comes_next, WIDE)).strip()


def _test(record: TestRecord, now: float) -> str:
    words = [f"{word_of(record)}: {plain(record.test)}"]
    if record.launched_at is not None:
        words.append(f"for {duration((record.ended_at or now) - record.launched_at)}")
    if record.tries:
        words.append("tries " + " ".join(try_.word for try_ in record.tries))
    words += [part for part in (changes_of(record), record.spending.text) if part]
    output = last_words(record)
    return "; ".join([*words, f"output {plain(output)}"] if output else words)

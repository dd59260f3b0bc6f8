"""Prints the contents of the room as plain lines without glyphs, frames and colours."""

from __future__ import annotations

from collections.abc import Iterator

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted, duration, wall_clock
from swarm_tui.model.text import plain
from swarm_tui.room.draw.frame import draw_next
from swarm_tui.room.draw.glyphs import PILLS, mark_of_pill, word_of
from swarm_tui.room.draw.spans import text_of
from swarm_tui.room.grid.draw import changes_of, last_words
from swarm_tui.room.grid.draw_layout import GridOptions, arrange
from swarm_tui.room.store import NO_AGENTS, Store
from swarm_tui.room.view import header_facts, next_facts, open_fix_count

WIDE = 10_000


def plain_lines_of(store: Store) -> Iterator[str]:
    """Return the sweep as lines: the counts, the inbox, the patterns, and every test."""
    yield from _sweep(store)
    groups = [group for group in store.inbox() if not group.is_later]
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
    facts = header_facts(store)
    state = f"at {wall_clock(store.past.at)}" if store.past is not None else facts.status
    state = state or ("running" if store.state.ended_why is None else store.state.ended_why)
    if facts.caveat:
        state = f"{state}, {facts.caveat}"
    yield f"Sweep {facts.sweep}: {state}" if not store.is_watch else "Agents of mngr"
    counts = []
    for pill, marks in PILLS.items():
        if number := sum(facts.counts.get(mark, 0) for mark in marks):
            counts.append(f"{number:,} {mark_of_pill(pill).word}")
    yield ", ".join(counts)
    numbers = [f"slots {facts.active} of {facts.slots}"] if facts.has_slots else []
    if facts.elapsed is not None:
        numbers.append(f"for {duration(facts.elapsed)}")
    if facts.left is not None:
        numbers.append(f"about {duration(facts.left)} left")
    numbers += [f"cost {facts.cost}"] if facts.cost else []
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

"""What waits for somebody in a sweep, in numbers: for the line of screens, and for what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from swarm_tui.insight.inbox import WAITING_KINDS, Item, ItemKind
from swarm_tui.room.actions import SCREENS, ScreenEntry
from swarm_tui.room.draw.screen_line import NextFacts, ScreenFacts
from swarm_tui.room.store import EngineState, Store

if TYPE_CHECKING:
    from swarm_tui.room.review_state import ReviewState


def open_items(store: Store) -> list[Item]:
    """Return what is in the inbox and was not put off."""
    return [item for group in store.inbox() if not group.is_later for item in group.items]


def screen_facts(store: Store, review: ReviewState | None, here: str) -> list[ScreenFacts]:
    """Return the screens with what is open on each; the hosts only where a sweep has some."""
    numbers = {
        "fixes": open_fixes(store, review),
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


def open_fixes(store: Store, review: ReviewState | None) -> int:
    """Return how many fixes have no verdict; before the review was opened, by the verdicts that were written."""
    if store.past is not None and store.state.integration.state != "done":
        return 0
    if review is not None:
        return len(review.review.open_fixes)
    integration = store.state.integration
    return max(0, integration.fixes - store.decided_fixes()) if integration.state == "done" else 0


def next_facts(store: Store, review: ReviewState | None) -> NextFacts | None:
    """Return what is to be done after the sweep; None while its engine works."""
    state = store.state
    if store.engine is not EngineState.ENDED or state.ended_why is None or not state.records:
        return None
    items = open_items(store)
    questions = sum(item.kind in WAITING_KINDS for item in items)
    reviews = sum(item.kind is ItemKind.REVIEW for item in items)
    fixes = open_fixes(store, review)
    return NextFacts(
        fixes=fixes,
        decided=state.integration.fixes - fixes,
        questions=questions,
        others=len(items) - questions - reviews,
        can_resume=state.ended_why != "finished",
        is_integration_failed=state.integration.state == "failed",
    )

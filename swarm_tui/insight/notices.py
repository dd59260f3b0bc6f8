"""Which events a person who is away is told of, and how several of them are told at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from swarm_tui.insight.since import Changes, change_words
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.log_lines import log_line_of
from swarm_tui.model import events as happened
from swarm_tui.model.masking import mask_secrets
from swarm_tui.model.states import Result, State
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.model.shapes import ShownNotice

NAMED: Final = 20
"""How many events are told one by one; the others are counted."""


class Notice(NamedTuple):
    """One event that a person is told of."""

    kind: str
    """`asks`, `failed`, ...: a word of `model/conditions.py`."""
    seq: int
    at: float
    test: str
    text: str


def notice_of(event: happened.Event) -> Notice | None:
    """Return the notice of an event; None for one that can wait until the person comes back."""
    kind = _kind_of(event)
    if kind is None:
        return None
    line = log_line_of(event)
    test = plain(event.test, 300) if isinstance(event, happened.TestEvent) else ""
    # It may go to another machine.
    return Notice(kind, event.seq, event.at, test, mask_secrets(plain(line.text, 300)) if line is not None else "")


def _kind_of(event: happened.Event) -> str | None:
    match event:
        case happened.Seen(state=State.WAITING):
            return "asks"
        case happened.Harvested(result=Result.FAILED) | happened.IntegrationFailed():
            return "failed"
        case happened.Harvested(result=Result.BLOCKED):
            return "blocked"
        case happened.PatternRaised():
            return "alert"
        case happened.Stuck() if event.reason:
            return "stuck"
        case happened.LoginLost():
            return "login-lost"
        case happened.HostLost():
            return "host-lost"
        case happened.BudgetSpent() | happened.BudgetBlind() | happened.OverBudget():
            return "over-budget"
        case happened.Integrated() if event.fixes:
            return "fixes"
        case happened.EngineEnded(why="finished"):
            return "done"
        case happened.EngineEnded():
            return "ended"
    return None


def is_still_news(notice: Notice, state: SweepState) -> bool:
    """Return whether a notice is worth sending now: a question may have been answered since."""
    if notice.kind not in ("asks", "stuck"):
        return True
    record = state.records.get(notice.test) or state.integrator
    if record is None:
        return False
    return record.state is State.WAITING if notice.kind == "asks" else bool(record.stuck)


def message_of(notices: Sequence[Notice], changes: Changes) -> str:
    """Return what has happened as one line; what a person is told of comes first."""
    words = change_words(changes)
    kinds = Counter(notice.kind for notice in notices)
    # The changes count most kinds; what they do not know is said in the words of the event.
    told = [notice.text for notice in notices if notice.kind in _SAID_IN_FULL]
    said = list(dict.fromkeys(told))[:3]
    return plain(", ".join([*said, *words]) or ", ".join(f"{number} {kind}" for kind, number in kinds.items()), 500)


_SAID_IN_FULL: Final = frozenset({"alert", "stuck", "login-lost", "host-lost"})


def describe_notices(spec: SweepSpec, state: SweepState, notices: Iterable[Notice], text: str) -> ShownNotice:
    """Return a message as data for a command or a webhook."""
    told = list(notices)
    return {
        "sweep": spec.sweep,
        "title": plain(spec.title, 200),
        "repository": spec.repository,
        "text": text,
        "kinds": dict(Counter(notice.kind for notice in told)),
        "events": [{"kind": each.kind, "at": each.at, "test": each.test, "text": each.text} for each in told[:NAMED]],
        "counts": {mark: count for mark, count in state.counts.items() if count},
        "dollars": state.spending.known_dollars,
        "ended": state.ended_why,
    }

"""Decides how many agents may run at the same time: a pure function of the throttle and the observed API errors.

When the model or this machine is overloaded, the number is halved once for each burst of API errors. Each minute
without errors adds one agent, up to the number that the user has set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from swarm_tui.adapters.machine import MachineState
from swarm_tui.limits.events import ApiError, ApiErrorKind, DialTurned, Throttle

BURST: Final = 60.0
"""Seconds after a halving in which further API errors belong to the same burst."""
QUIET: Final = 60.0
"""Seconds without API errors after which one more agent may run."""
FRESH: Final = 5.0
TOO_MANY_HOLDS: Final = 1_800.0
"""Seconds in which a number of agents that overloaded the model is not reached again."""


@dataclass(frozen=True, slots=True)
class ThrottleInputs:
    """The observations that decide about the throttle."""

    now: float
    wanted: int
    """The slots that the user has set."""
    active: int
    """Agents that have a slot."""
    given_up: int = 0
    """Active agents that wait for permission to continue."""
    troubles: tuple[ApiError, ...] = ()
    """The troubles that agents are in and that time will end."""
    hindered_at: float = 0.0
    """When an agent was last seen in such a trouble."""
    machine: MachineState | None = None


def throttled_slots(dial: Throttle, situation: ThrottleInputs) -> DialTurned | None:
    """Return the next change of the throttle, or None."""
    slots = situation.wanted if dial.slots is None else min(dial.slots, situation.wanted)
    is_in_effect = situation.active - situation.given_up <= slots
    cause, detail = _cause_to_halve(dial, situation)
    if cause and is_in_effect:
        in_use = max(1, min(slots, situation.active))
        until = _latest_end(situation)
        # Where one alone is refused, it is not for the number of agents.
        is_too_many = cause == ApiErrorKind.LIMITED and until is None and situation.active - situation.given_up > 1
        turned = DialTurned(
            slots=max(1, in_use // 2),
            cause=cause,
            detail=detail,
            until=until,
            is_halved=True,
            too_many=in_use if is_too_many else None,
        )
        if not _is_as_before(turned, dial):
            return turned
    return _later_end(dial, situation) or _rise(dial, situation)


def _is_as_before(turned: DialTurned, dial: Throttle) -> bool:
    """Return whether one agent was left already, for the same reason: there is nothing to halve, and nothing to say."""
    said = (turned.slots, turned.cause, turned.until, turned.too_many)
    return said == (dial.slots, dial.cause, dial.until, dial.too_many)


def _cause_to_halve(dial: Throttle, situation: ThrottleInputs) -> tuple[str, str]:
    now = situation.now
    is_new = situation.hindered_at > dial.halved_at + BURST and now - situation.hindered_at <= FRESH
    if is_new and situation.troubles:
        # A limit says more than an overloaded server, which a limited agent meets as well.
        kinds = {trouble.kind for trouble in situation.troubles}
        return min(kinds, key=list(ApiErrorKind).index).value, ""
    if situation.machine is not None and now - dial.halved_at >= BURST and situation.active > 1:
        return situation.machine.strain
    return "", ""


def _latest_end(situation: ThrottleInputs) -> float | None:
    ends = [trouble.until for trouble in situation.troubles if trouble.until is not None]
    return max((end for end in ends if end > situation.now), default=None)


def _later_end(dial: Throttle, situation: ThrottleInputs) -> DialTurned | None:
    """Return the dial with the time at which the limit is over, where that has become known since."""
    until = _latest_end(situation)
    if dial.slots is None or until is None or until <= (dial.until or 0.0):
        return None
    return DialTurned(slots=dial.slots, cause=ApiErrorKind.LIMITED, until=until, too_many=dial.too_many)


def _rise(dial: Throttle, situation: ThrottleInputs) -> DialTurned | None:
    now = situation.now
    is_tried_in_vain = any(not trouble.has_given_up for trouble in situation.troubles)
    if dial.slots is None or is_tried_in_vain or now < (dial.until or 0.0):
        return None
    if now - max(dial.changed_at, situation.hindered_at) < QUIET or not _has_room(dial, situation.machine):
        return None
    slots = dial.slots + 1
    if dial.too_many is not None and slots >= dial.too_many and now - dial.halved_at < TOO_MANY_HOLDS:
        return None
    if slots >= situation.wanted:
        return DialTurned(cause=dial.cause)
    return DialTurned(slots=slots, cause=dial.cause, detail=dial.detail, too_many=dial.too_many)


def _has_room(dial: Throttle, machine: MachineState | None) -> bool:
    if machine is None:
        return True
    is_by_machine = dial.cause not in set(ApiErrorKind)
    return machine.is_relaxed if is_by_machine else not any(machine.strain)

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
    """The number of agents that use a slot."""
    given_up: int = 0
    """Active agents that wait for permission to continue."""
    troubles: tuple[ApiError, ...] = ()
    """The API errors of agents that end without the user."""
    hindered_at: float = 0.0
    """When an agent last had such an error."""
    machine: MachineState | None = None


def throttled_slots(dial: Throttle, inputs: ThrottleInputs) -> DialTurned | None:
    """Return the next change of the throttle, or None."""
    slots = inputs.wanted if dial.slots is None else min(dial.slots, inputs.wanted)
    is_in_effect = inputs.active - inputs.given_up <= slots
    cause, detail = _cause_to_halve(dial, inputs)
    if cause and is_in_effect:
        in_use = max(1, min(slots, inputs.active))
        until = _latest_end(inputs)
        # If a single agent is refused, the number of agents is not the reason.
        is_too_many = cause == ApiErrorKind.LIMITED and until is None and inputs.active - inputs.given_up > 1
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
    return _later_end(dial, inputs) or _rise(dial, inputs)


def _is_as_before(turned: DialTurned, dial: Throttle) -> bool:
    """Return whether the throttle already has these values, because only one agent was left."""
    said = (turned.slots, turned.cause, turned.until, turned.too_many)
    return said == (dial.slots, dial.cause, dial.until, dial.too_many)


def _cause_to_halve(dial: Throttle, inputs: ThrottleInputs) -> tuple[str, str]:
    now = inputs.now
    is_new = inputs.hindered_at > dial.halved_at + BURST and now - inputs.hindered_at <= FRESH
    if is_new and inputs.troubles:
        # A limit is more specific than an overloaded server, which a limited agent also reports.
        kinds = {trouble.kind for trouble in inputs.troubles}
        return min(kinds, key=list(ApiErrorKind).index).value, ""
    if inputs.machine is not None and now - dial.halved_at >= BURST and inputs.active > 1:
        return inputs.machine.strain
    return "", ""


def _latest_end(inputs: ThrottleInputs) -> float | None:
    ends = [trouble.until for trouble in inputs.troubles if trouble.until is not None]
    return max((end for end in ends if end > inputs.now), default=None)


def _later_end(dial: Throttle, inputs: ThrottleInputs) -> DialTurned | None:
    """Return the throttle with the end of the limit, if that is newly known."""
    until = _latest_end(inputs)
    if dial.slots is None or until is None or until <= (dial.until or 0.0):
        return None
    return DialTurned(slots=dial.slots, cause=ApiErrorKind.LIMITED, until=until, too_many=dial.too_many)


def _rise(dial: Throttle, inputs: ThrottleInputs) -> DialTurned | None:
    now = inputs.now
    has_retries = any(not trouble.has_given_up for trouble in inputs.troubles)
    if dial.slots is None or has_retries or now < (dial.until or 0.0):
        return None
    if now - max(dial.changed_at, inputs.hindered_at) < QUIET or not _has_room(dial, inputs.machine):
        return None
    slots = dial.slots + 1
    if dial.too_many is not None and slots >= dial.too_many and now - dial.halved_at < TOO_MANY_HOLDS:
        return None
    if slots >= inputs.wanted:
        return DialTurned(cause=dial.cause)
    return DialTurned(slots=slots, cause=dial.cause, detail=dial.detail, too_many=dial.too_many)


def _has_room(dial: Throttle, machine: MachineState | None) -> bool:
    if machine is None:
        return True
    is_by_machine = dial.cause not in set(ApiErrorKind)
    return machine.is_relaxed if is_by_machine else not any(machine.strain)

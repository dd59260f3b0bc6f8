"""Sends a request to the running engine of a sweep and waits for its answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Unpack

from swarm_tui.errors import NoEngine, SwarmError

if TYPE_CHECKING:
    from swarm_tui.journal.open import OpenedSweep
    from swarm_tui.model.requests import RequestDetails, RequestKind

ANSWER_DEADLINE: Final = 60.0
END_DEADLINE: Final = 600.0
RELEASE_DEADLINE: Final = 30.0
SILENCE: Final = 1.0
_INTERVAL: Final = 0.1


def send_request(
    opened: OpenedSweep,
    kind: RequestKind,
    *,
    begin_again: Callable[[], object] | None = None,
    **details: Unpack[RequestDetails],
) -> str:
    """Append a request, wait until it is carried out, and return the detail of the answer; else raise SwarmError.

    An engine that ends before it has answered is begun again, once, by `begin_again`: the next one answers.
    """
    from swarm_tui.journal.requests import append_request

    name = opened.folder.name
    if opened.spec.why_not_continued:
        raise NoEngine(f"{name} has no engine", opened.spec.why_not_continued)
    if not opened.has_running_engine:
        if opened.state.ended_why == "finished":
            hint = f"it is finished; `swarm-tui run --only-failed-of {name}` begins a sweep of what is still red"
        else:
            hint = f"`swarm-tui resume {name}` takes it up again"
        raise NoEngine(f"no engine works on {name}", hint)
    request = append_request(opened.folder, kind, **details)
    asked = time.monotonic()
    while time.monotonic() - asked < ANSWER_DEADLINE:
        is_running = opened.has_running_engine
        opened.read_new_events()
        answer = opened.state.answers.get(request.id)
        if answer is not None and not answer.is_done:
            raise SwarmError(answer.detail or "the engine could not do it")
        if answer is not None:
            return answer.detail
        if not is_running:
            if begin_again is None:
                raise SwarmError("the engine ended before it answered")
            begin_again()
            begin_again = None
        if time.monotonic() - asked > SILENCE:
            _check_not_stopped(opened)
        time.sleep(_INTERVAL)
    raise SwarmError("the engine has not answered yet", "it will, when it is not busy any more")


def wait_for_release(opened: OpenedSweep, pause: Callable[[float], object] = time.sleep) -> None:
    """Wait while the engine of a sweep that is over lets go of it, which it does a moment after its last event.

    Whoever is told that a sweep is done may begin the next thing at once.
    """
    deadline = time.monotonic() + RELEASE_DEADLINE
    while opened.state.is_over and opened.has_running_engine and time.monotonic() < deadline:
        pause(_INTERVAL)
        opened.read_new_events()


def wait_for_end(opened: OpenedSweep) -> None:
    """Wait until no engine works on the sweep any more."""
    deadline = time.monotonic() + END_DEADLINE
    while opened.has_running_engine:
        if time.monotonic() > deadline:
            raise SwarmError("the engine has not ended yet", "`swarm-tui status` shows what it waits for")
        _check_not_stopped(opened)
        time.sleep(_INTERVAL)


def _check_not_stopped(opened: OpenedSweep) -> None:
    if why := opened.why_engine_is_silent:
        raise SwarmError(why, "what was asked is done then")

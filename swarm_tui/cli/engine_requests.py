"""Send requests to the engine of a sweep and wait for the results."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Unpack

from swarm_tui.errors import NoEngine, SwarmError
from swarm_tui.journal.requests import RequestDetails, RequestKind, append_request

if TYPE_CHECKING:
    from swarm_tui.journal.open import OpenedSweep

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
    """Send a request, wait for its result, and return the detail; raise SwarmError if it was refused or failed.

    If the engine exits before it answers, `begin_again` starts a new one, once.
    """
    name = opened.folder.name
    if not opened.has_running_engine:
        if opened.state.ended_why == "finished":
            hint = f"the sweep is finished; for a new sweep of its failures: `swarm-tui run --only-failed-of {name}`"
        else:
            hint = f"resume the sweep: `swarm-tui resume {name}`"
        raise NoEngine(f"no engine is running for {name}", hint)
    request = append_request(opened.folder, kind, **details)
    asked = time.monotonic()
    while time.monotonic() - asked < ANSWER_DEADLINE:
        is_running = opened.has_running_engine
        opened.read_new_events()
        answer = opened.state.answers.get(request.id)
        if answer is not None and not answer.is_done:
            raise SwarmError(answer.detail or "the engine refused the request")
        if answer is not None:
            return answer.detail
        if not is_running:
            if begin_again is None:
                raise SwarmError("the engine exited before it answered")
            begin_again()
            begin_again = None
        if time.monotonic() - asked > SILENCE:
            _check_not_stopped(opened)
        time.sleep(_INTERVAL)
    raise SwarmError(
        f"no answer from the engine within {ANSWER_DEADLINE:g} s", "it may be busy: the request stays in its queue"
    )


def wait_for_release(opened: OpenedSweep, pause: Callable[[float], object] = time.sleep) -> None:
    """Wait until the engine of a finished sweep releases its lock, which happens shortly after its last event."""
    deadline = time.monotonic() + RELEASE_DEADLINE
    while opened.state.is_over and opened.has_running_engine and time.monotonic() < deadline:
        pause(_INTERVAL)
        opened.read_new_events()


def wait_for_end(opened: OpenedSweep) -> None:
    """Wait until the engine has exited."""
    deadline = time.monotonic() + END_DEADLINE
    while opened.has_running_engine:
        if time.monotonic() > deadline:
            raise SwarmError(
                f"the engine is still running after {END_DEADLINE:g} s", "run `swarm-tui status` to see why"
            )
        _check_not_stopped(opened)
        time.sleep(_INTERVAL)


def _check_not_stopped(opened: OpenedSweep) -> None:
    if why := opened.why_engine_is_silent:
        raise SwarmError(why, "the request is carried out when the engine continues")

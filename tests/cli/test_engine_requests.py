"""A request is answered by the engine that works, or by the next one where that ends before."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from swarm_tui.cli.engine_requests import send_request
from swarm_tui.engine.context import EngineContext
from swarm_tui.errors import SwarmError
from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.requests import RequestFollower
from swarm_tui.model.events import RequestAnswered
from swarm_tui.model.requests import Request, RequestKind
from tests.engine.rehearsal import QuickMngr, rehearse
from tests.waiting import until


@pytest.fixture
def context(tmp_path: Path) -> EngineContext:
    return rehearse(tmp_path, 1, QuickMngr(tmp_path / "mngr"))


def end_when_asked(context: EngineContext, lock: EngineLock) -> Request:
    """End as an engine that reads no requests any more; return what it was asked."""
    follower = RequestFollower(context.folder)
    asked = until(lambda: follower.read()[0], "a request")
    lock.release()
    return asked[0]


def test_an_engine_that_ends_before_it_answers_is_begun_again(context: EngineContext) -> None:
    begun: list[EngineLock] = []
    requests: list[Request] = []

    def begin_again() -> None:
        begun.append(EngineLock(context.folder.lock))
        begun[-1].acquire()
        ending.join()
        context.record(RequestAnswered(request=requests[0].id, is_done=True, detail="it is asked"))

    lock = EngineLock(context.folder.lock)
    lock.acquire()
    ending = threading.Thread(target=lambda: requests.append(end_when_asked(context, lock)))
    ending.start()
    opened = open_sweep(context.folder)
    assert send_request(opened, RequestKind.REVISE, text="again", begin_again=begin_again) == "it is asked"
    assert len(begun) == 1
    begun[0].release()


def test_without_another_engine_it_is_said(context: EngineContext) -> None:
    lock = EngineLock(context.folder.lock)
    lock.acquire()
    ending = threading.Thread(target=end_when_asked, args=(context, lock))
    ending.start()
    with pytest.raises(SwarmError, match="the engine ended before it answered"):
        send_request(open_sweep(context.folder), RequestKind.RETRY)
    ending.join()

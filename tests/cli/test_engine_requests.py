"""A request is answered by the engine that works, or by the next one where that ends before."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from swarm_tui.cli.engine_requests import send_request, wait_for_release
from swarm_tui.cli.main import run_command_line
from swarm_tui.errors import SwarmError
from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.events import EngineEnded, EngineStarted, RequestAnswered
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.requests import Request, RequestFollower, RequestKind
from swarm_tui.sweep.context import SweepContext
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep
from tests.waiting import until


@pytest.fixture
def context(tmp_path: Path) -> SweepContext:
    return scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"))


def end_when_asked(context: SweepContext, lock: EngineLock) -> Request:
    """End as an engine that reads no requests any more; return what it was asked."""
    follower = RequestFollower(context.folder)
    asked = until(lambda: follower.read()[0], "a request")
    lock.release()
    return asked[0]


def test_an_engine_that_ends_before_it_answers_is_begun_again(context: SweepContext) -> None:
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
    assert send_request(opened, RequestKind.SEND_BACK, text="again", begin_again=begin_again) == "it is asked"
    assert len(begun) == 1
    begun[0].release()


def test_without_another_engine_it_is_said(context: SweepContext) -> None:
    lock = EngineLock(context.folder.lock)
    lock.acquire()
    ending = threading.Thread(target=end_when_asked, args=(context, lock))
    ending.start()
    with pytest.raises(SwarmError, match="the engine exited before it answered"):
        send_request(open_sweep(context.folder), RequestKind.RETRY)
    ending.join()


def test_a_sweep_that_is_over_is_waited_for_until_its_engine_lets_go(context: SweepContext) -> None:
    lock = EngineLock(context.folder.lock)
    lock.acquire()
    opened = open_sweep(context.folder)
    pauses: list[float] = []
    wait_for_release(opened, pauses.append)
    assert pauses == [], "it is not over"

    def let_go(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            lock.release()

    context.record(EngineEnded(why="finished"))
    opened.read_new_events()
    wait_for_release(opened, let_go)
    assert len(pauses) == 3


def test_the_next_engine_is_not_waited_for(context: SweepContext) -> None:
    context.record(EngineEnded(why="stopped"))
    lock = EngineLock(context.folder.lock)
    lock.acquire()
    opened = open_sweep(context.folder)
    wait_for_release(opened, lambda _: context.record(EngineStarted(pid=2, is_resumed=True)))
    assert not opened.state.is_over
    lock.release()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["integrate", "--json"], "integrating sweep"),
        (["stop"], "nothing to stop"),
        (["clean", "--yes"], "nothing to clean in"),
    ],
    ids=["integrate", "stop", "clean"],
)
def test_what_comes_right_after_the_last_event_is_done(
    context: SweepContext,
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(context.spec.repository)
    context.record(EngineEnded(why="finished"))
    lock = EngineLock(context.folder.lock)
    lock.acquire()
    releasing = threading.Timer(0.3, lock.release)
    releasing.start()
    run_command_line(words)
    releasing.join()
    assert said in capsys.readouterr().err

"""Commands of the room, tested without a room: they need only the protocol of a screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.requests import RequestFollower, RequestKind
from swarm_tui.room.engine_requests import EngineRequests
from swarm_tui.room.grid.screen import SweepCommands
from swarm_tui.room.store import Store, SweepChanged
from swarm_tui.simulate.feeder import main as feed
from tests.room.scenes import NOW, open_store

if TYPE_CHECKING:
    from swarm_tui.room.app import RoomApp


class ScreenOfNothing:
    """A screen with only a store. It records messages and changes."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.room = cast("RoomApp", None)
        self.messages: list[tuple[str, str]] = []
        self.changes: list[SweepChanged] = []

    def current_tests(self) -> tuple[str, ...]:
        return ()

    def current_record(self) -> TestRecord | None:
        return None

    def show_message(self, text: str, level: str = "info") -> None:
        self.messages.append((text, level))

    def apply_change(self, change: SweepChanged) -> None:
        self.changes.append(change)


def test_sweep_commands_send_requests_or_show_reason(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path / "s")
    feed([str(folder.root), "--tests", "20", "--ahead", "0.5", "--seconds", "0", "--at", str(NOW)])
    store = open_store(folder)
    store.check_engine()
    screen = ScreenOfNothing(store)
    commands = SweepCommands(screen, EngineRequests(screen))
    actions = {action.id: action for action in commands.actions()}
    gone = "the engine of this sweep is not running: press R to resume it"
    assert {name: action.why_not() for name, action in actions.items()} == {
        "sweep.fewer_slots": gone,
        "sweep.more_slots": gone,
        "sweep.budget": gone,
        "sweep.hold_queue": gone,
        "sweep.release_queue": gone,
        "sweep.stop_sweep": gone,
        "sweep.resume": "",
    }
    actions["sweep.hold_queue"].handler()
    assert screen.messages == [(gone, "warning")]
    lock = EngineLock(folder.lock)
    lock.acquire()
    try:
        screen.store.check_engine()
        assert actions["sweep.resume"].why_not() == "its engine is running"
        assert actions["sweep.release_queue"].why_not() == "the queue is not held"
        actions["sweep.more_slots"].handler()
        ((request,), _) = RequestFollower(folder).read()
        assert (request.kind, request.slots) == (RequestKind.SLOTS, screen.store.state.slots + 1)
        assert screen.changes == [SweepChanged()]
    finally:
        lock.release()

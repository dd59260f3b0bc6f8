"""Fixed views of the room, for tests and pictures."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rich.cells import cell_len
from textual.app import App
from textual.pilot import Pilot

from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.review.verdicts import Verdict
from swarm_tui.room.app import RoomApp
from swarm_tui.room.settings import Settings
from swarm_tui.room.store import Store
from swarm_tui.simulate.feeder import main as feed
from tests.room.larder import begin_larder
from tests.waiting import eventually

SWEEP: Final = "20261118-061200"
NOW: Final = 1_795_000_000.0


class Scene(NamedTuple):
    """A view: the keys to press, and the size of the terminal."""

    name: str
    keys: tuple[str, ...] = ()
    width: int = 120
    height: int = 36
    theme: str = "textual-dark"
    is_ascii: bool = False
    tests: int = 125
    is_integrated: bool = False
    """Use a sweep of the demo's sample project with real commits instead of a simulated one."""
    config_keys: Mapping[str, tuple[str, ...]] = MappingProxyType({})


@contextmanager
def fixed_sweep(tests: int = 125) -> Iterator[SweepFolder]:
    """Return a reproducible simulated sweep with a running engine."""
    with tempfile.TemporaryDirectory(prefix="swarm-scenes-") as place:
        folder = SweepFolder(Path(place) / SWEEP)
        feed([str(folder.root), "--tests", str(tests), "--ahead", "0.62", "--seconds", "0", "--at", str(NOW)])
        lock = EngineLock(folder.lock)
        lock.acquire()
        try:
            yield folder
        finally:
            lock.release()


@contextmanager
def integrated_sweep() -> Iterator[SweepFolder]:
    """Return a reproducible integrated sweep of the demo's sample project, with verdicts on some fixes."""
    with tempfile.TemporaryDirectory(prefix="swarm-scenes-") as place:
        sweep = begin_larder(Path(place) / "larder")
        sweep.work()
        sweep.integrate()
        sweep.decide({1: Verdict.KEEP, 2: Verdict.KEEP, 8: Verdict.REVERT})
        yield sweep.folder


def sweep_of(scene: Scene) -> AbstractContextManager[SweepFolder]:
    """Return the sweep of a scene."""
    return integrated_sweep() if scene.is_integrated else fixed_sweep(scene.tests)


def open_store(folder: SweepFolder) -> Store:
    """Return the store of a sweep, completely read, with a fixed clock."""
    store = Store(folder, clock=lambda: NOW + 3.0)
    while store.read_new_events():
        pass
    return store


@asynccontextmanager
async def room_on(folder: SweepFolder, scene: Scene) -> AsyncIterator[tuple[RoomApp, Pilot[str]]]:
    """Return the room on a sweep after pressing the scene's keys."""
    app = RoomApp(
        open_store(folder), Settings(theme=scene.theme, notify="none", keys=scene.config_keys), is_ascii=scene.is_ascii
    )
    async with app.run_test(size=(scene.width, scene.height)) as pilot:
        await pilot.pause()
        for key in scene.keys:
            await pilot.press(key)
            await until_computed(app, pilot)
        await pilot.pause()
        yield app, pilot


async def press(pilot: Pilot[str], *keys: str) -> None:
    """Press keys and wait until the room has handled them."""
    await pilot.press(*keys)
    await until_handled(pilot)


async def until_handled(pilot: Pilot[str]) -> None:
    """Wait until the room has handled all keys."""
    app = pilot.app
    assert isinstance(app, RoomApp)
    await eventually(lambda: app.key_queue.is_idle or not app.is_running, "the keys to be handled")
    await pilot.pause()


async def resize(pilot: Pilot[str], width: int, height: int) -> None:
    """Resize the terminal and wait for the new layout, which Textual computes later."""
    await pilot.resize_terminal(width, height)
    await eventually(
        lambda: pilot.app.screen._compositor.size == (width, height), f"the screen to be laid out for {width}x{height}"
    )
    await pilot.pause()


async def shows(pilot: Pilot[str], *words: str) -> str:
    """Wait until all of these words are on the screen. Return its text."""
    await eventually(
        lambda: all(word in text_on_screen(pilot.app) for word in words),
        f"{words} on the screen",
        describe=lambda: text_on_screen(pilot.app),
    )
    return text_on_screen(pilot.app)


async def until_computed(app: RoomApp, pilot: Pilot[str]) -> None:
    """Wait until the Fixes screen has computed its previews, or shows a dialog, which its worker waits for."""
    await eventually(
        lambda: (
            app.screen.is_modal or all(worker.is_finished for worker in app.workers if worker.group.startswith("fixes"))
        ),
        "the Fixes screen to be computed",
    )


def text_on_screen(app: App[Any]) -> str:
    """Return the text of the screen."""
    # The terminal may already have a new size while the screen still has the layout of the old one.
    width, height = app.screen._compositor.size
    lines = [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)
    return "\n".join(lines) + "\n"

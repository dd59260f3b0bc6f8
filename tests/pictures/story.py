"""The story of the moving picture: a sweep of the demo's sample, from its first agent to the branch that is applied."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rich.segment import Segment
from textual.pilot import Pilot
from textual.widgets import TextArea

from swarm_tui.journal.append import EngineLock
from swarm_tui.journal.events import AgentStateChanged, Launched, Launching
from swarm_tui.model.event import Event
from swarm_tui.model.results import State
from swarm_tui.room.app import RoomApp
from swarm_tui.room.settings import Settings
from swarm_tui.room.store import Store
from tests.room.larder import LarderSweep, begin_larder
from tests.room.scenes import shows, until_computed, until_handled
from tests.waiting import finally_shown

COLUMNS: Final = 110
LINES: Final = 30
ASKS: Final = "cook_says_what_is_missing"
WAVES: Final = 5
"""In so many steps the agents finish."""
TITLE: Final = "A sweep: agents at work, an answer, the walk through the fixes, the plan applied"
STILL: Final = 22
"""The frame for those who want nothing to move."""
SAME_LOOKS: Final = 4
"""So many looks, one after the other, show the same of a screen that stands still."""


class Frame(NamedTuple):
    """What the terminal shows, and for how many seconds."""

    lines: tuple[tuple[Segment, ...], ...]
    seconds: float


class Story:
    """A room on a sweep that goes on as the story wants it, and the frames that were taken of it."""

    def __init__(self, app: RoomApp, pilot: Pilot[str], sweep: LarderSweep, expected: Iterator[str]) -> None:
        self.app, self.pilot, self.sweep, self._expected = app, pilot, sweep, expected
        self.frames: list[Frame] = []

    async def take(self, seconds: float, *words: str) -> None:
        """Take a frame: the one that is expected, else what is shown once these words are and it stands still."""
        if words:
            await shows(self.pilot, *words)
        for area in self.app.screen.query(TextArea):
            area.cursor_blink = False
        await until_computed(self.app, self.pilot)
        expected = next(self._expected, "")
        if expected and await finally_shown(self._text, expected) != expected:
            # The rest of the story differs, too.
            self._expected = iter(())
        # What is counted beside the drawing comes a moment after it.
        looks: list[str] = []
        while not expected and (len(looks) < SAME_LOOKS or len(set(looks[-SAME_LOOKS:])) > 1):
            looks.append(self._text())
            await self.pilot.pause(0.4)
        self.frames.append(Frame(self._lines(), seconds))

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await until_handled(self.pilot)

    async def happen(self, *events: Event) -> None:
        """Let something happen in the sweep, and the room see it."""
        self.sweep.now += 4.0
        self.sweep.append(*events)

    def _lines(self) -> tuple[tuple[Segment, ...], ...]:
        strips = self.app.screen._compositor.render_strips()
        return tuple(tuple(Segment.simplify(strip)) for strip in strips)

    def _text(self) -> str:
        return "\n".join("".join(segment.text for segment in line).rstrip() for line in self._lines())


async def tell_story(expected: Sequence[str] = ()) -> list[Frame]:
    """Return the frames of the whole story; where the text of a frame is expected, it is waited for."""
    with tempfile.TemporaryDirectory(prefix="swarm-story-") as place:
        sweep = begin_larder(Path(place) / "larder")
        store = Store(sweep.folder, clock=lambda: sweep.now + 1.0)
        app = RoomApp(store, Settings(theme="textual-dark", notify="none"))
        lock = EngineLock(sweep.folder.lock)
        lock.acquire()
        try:
            async with app.run_test(size=(COLUMNS, LINES)) as pilot:
                story = Story(app, pilot, sweep, iter(expected))
                await _agents_work(story)
                await _answer(story)
                lock.release()
                await _walk(story)
        finally:
            lock.release()
        return story.frames


async def _agents_work(story: Story) -> None:
    sweep = story.sweep
    names = list(sweep.records)
    await story.take(1.2)
    asking = sweep.tests[ASKS].test
    others = [name for name in names if name != ASKS]
    await story.happen(Launching(test=asking), Launched(test=asking, host="localhost"))
    for number in range(WAVES):
        wave = others[number::WAVES]
        for name in wave:
            test = sweep.tests[name].test
            await story.happen(Launching(test=test), Launched(test=test, host="localhost"))
        await story.take(0.9)
        sweep.work(wave)
        if number == 1:
            question = next(step.value for step in sweep.records[ASKS].steps if step.name == "ask")
            await story.happen(
                AgentStateChanged(test=asking, state=State.WAITING, source="terminal", question=question)
            )
        await story.take(0.9)


async def _answer(story: Story) -> None:
    asking = story.sweep.tests[ASKS].test
    await story.press("w")
    await story.take(2.5, "Which words are meant")
    await story.press("m")
    await story.take(0.8)
    for word in ("the program's: ", "it says how much ", "to buy"):
        await story.press(*("space" if letter == " " else letter for letter in word))
        await story.take(0.5)
    await story.press("enter")
    await story.take(1.0)
    await story.happen(AgentStateChanged(test=asking, state=State.RUNNING, source="process"))
    await story.take(1.0)
    story.sweep.work([ASKS])
    story.sweep.begin_integrating()
    await story.take(1.0)
    story.sweep.integrate()
    await story.take(1.5)


async def _walk(story: Story) -> None:
    await story.press("3")
    await story.take(2.0)
    for key in "yyyyyyyny":
        await story.press(key)
        await story.take(1.1)
    for key in "Ary":
        await story.press(key)
        await story.take(2.0)

"""The stories of `docs/room.md`, each on a fixed sweep, with exactly the keys of the page."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.requests import RequestFollower, RequestKind
from swarm_tui.model.results import State
from swarm_tui.room.app import RoomApp
from swarm_tui.room.grid.session import UNSOLVED
from tests.room.scenes import Scene, fixed_sweep, integrated_sweep, press, room_on, text_on_screen
from tests.waiting import eventually

WALK: Final = Path(__file__).parents[2] / "docs" / "room.md"
WIDE: Final = Scene("wide", (), 160, 40)
TEXT: Final = "the text"  # which the page does not count as a key
TYPED: Final = {"slash": "config", "m": "yes"}
"""Text that is typed after a key."""


class Story(NamedTuple):
    """A goal, the keys to press, and the text that shows success."""

    goal: str
    keys: tuple[str, ...]
    is_done: Callable[[RoomApp, SweepFolder], object]


def asked(folder: SweepFolder) -> list[RequestKind]:
    return [request.kind for request in RequestFollower(folder).read()[0]]


def shown(*words: str) -> Callable[[RoomApp, SweepFolder], bool]:
    return lambda app, _: all(word in text_on_screen(app) for word in words)


def is_asked(kind: RequestKind) -> Callable[[RoomApp, SweepFolder], bool]:
    return lambda _, folder: kind in asked(folder)


def is_on(state: State) -> Callable[[RoomApp, SweepFolder], bool]:
    return lambda app, _: app.current_test is not None and app.store.state.records[app.current_test].state is state


STORIES: Final = (
    Story("see all tests and the progress of the sweep", (), shown("Tests 60", "left", "slots")),
    Story("see how many items need you", (), lambda app, _: re.search(r"5 Inbox \d", text_on_screen(app))),
    Story("go to the next test that needs you", ("w",), is_on(State.WAITING)),
    Story("answer yes or no", ("5", "y"), is_asked(RequestKind.ANSWER)),
    Story("answer all identical questions", ("5", "A", "y"), is_asked(RequestKind.ANSWER)),
    Story("answer with a text", ("5", "m", TEXT, "enter"), lambda _, folder: asked(folder)),
    Story("see the agent's changes", ("d",), shown("changes")),
    Story("read the agent's transcript", ("t",), lambda app, _: app.room_screen and app.room_screen.NAME == "agent"),
    Story("stop, retry or hold a test", ("x", "r", "y"), is_asked(RequestKind.RETRY)),
    Story("show only unsolved tests", ("exclamation_mark",), lambda app, _: app.view.options.pills == UNSOLVED),
    Story("find a test by name", ("slash", TEXT, "enter"), shown("match /")),
    Story("zoom in or out", ("plus",), lambda app, _: app.view.is_zoom_chosen),
    Story("see failures with the same cause", ("4",), shown("Patterns")),
    Story("run more agents at the same time", ("greater_than_sign",), is_asked(RequestKind.SLOTS)),
    Story("see the sweep one change earlier", ("left_square_bracket",), shown("Esc now")),
)  # fmt: skip


def keys_on_page() -> dict[str, int]:
    """Return the number of keys of each story on the page."""
    rows = re.findall(r"^\| ([^|]+) \| .* \| (\d+) \|$", WALK.read_text(encoding="utf-8"), re.MULTILINE)
    return {goal: int(number) for goal, number in rows}


@pytest.fixture(scope="module")
def sweep() -> Iterator[SweepFolder]:
    with fixed_sweep(60) as folder:
        yield folder


def test_walk_page_has_every_story() -> None:
    on_page = keys_on_page()
    assert len(on_page) >= 20
    assert {story.goal for story in STORIES} <= on_page.keys()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.goal)
async def test_story_needs_exactly_the_keys_of_page(sweep: SweepFolder, story: Story) -> None:
    assert len([key for key in story.keys if key != TEXT]) == keys_on_page()[story.goal]
    sweep.requests.unlink(missing_ok=True)
    async with room_on(sweep, WIDE) as (app, pilot):
        before = ""
        for key in story.keys:
            await press(pilot, *(TYPED[before] if key == TEXT else [key]))
            before = key
        await eventually(lambda: story.is_done(app, sweep), story.goal)


async def test_six_fixes_are_applied_with_ten_keys() -> None:
    with integrated_sweep() as folder:
        folder.verdicts.unlink()
        async with room_on(folder, WIDE) as (app, pilot):
            await press(pilot, "3")
            fixes = app.store.state.integration.fixes
            await eventually(lambda: f"{fixes} open" in text_on_screen(app), "the fixes")
            await press(pilot, *["y"] * (fixes - 1), "n", "A", "r")
            await eventually(lambda: "Your checkout is unchanged" in text_on_screen(app), "the question")
            await press(pilot, "y")
            await eventually(lambda: "Created. To check it out" in text_on_screen(app), "the branch")
            # For six fixes: one key to open the screen, six verdicts, and three to apply.
            assert keys_on_page()["review six fixes and apply the plan"] == 1 + 6 + 3

"""The walk of `tutorial/walk.md`: each story on a fixed sweep, with the keys of the page and as many as it says."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.requests import RequestFollower
from swarm_tui.model.requests import RequestKind
from swarm_tui.model.states import State
from swarm_tui.room.app import RoomApp
from tests.room.scenes import Scene, fixed_sweep, integrated_sweep, press, room_on, text_on_screen
from tests.waiting import eventually

WALK: Final = Path(__file__).parents[2] / "tutorial" / "walk.md"
WIDE: Final = Scene("wide", (), 160, 40)
TEXT: Final = "the text"  # which the page counts as no key
TYPED: Final = {"slash": "config", "m": "yes"}
"""What is typed after a key."""


class Story(NamedTuple):
    """What one wants, what is pressed, and how one knows that it is there."""

    wanted: str
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
    Story("see all tests, and how far the sweep is", (), shown("Tests 60", "left", "slots")),
    Story("know who needs you", (), lambda app, _: re.search(r"5 Inbox \d", text_on_screen(app))),
    Story("go to who needs you", ("w",), is_on(State.WAITING)),
    Story("answer yes or no", ("5", "y"), is_asked(RequestKind.ANSWER)),
    Story("answer everything that is alike", ("5", "A", "y"), is_asked(RequestKind.ANSWER)),
    Story("answer in words", ("5", "m", TEXT, "enter"), lambda _, folder: asked(folder)),
    Story("see what it has changed", ("d",), shown("changes")),
    Story("read its transcript", ("t",), lambda app, _: app.room_screen and app.room_screen.NAME == "agent"),
    Story("stop, retry or hold a test", ("x", "r", "y"), is_asked(RequestKind.RETRY)),
    Story("only what failed", ("exclamation_mark",), lambda app, _: app.choice.pills == {"failed", "unresolved"}),
    Story("find a test by its name", ("slash", TEXT, "enter"), shown("match /")),
    Story("larger or smaller", ("plus",), lambda app, _: app.is_zoom_chosen),
    Story("what fails alike", ("4",), shown("Patterns")),
    Story("more agents at once", ("greater_than_sign",), is_asked(RequestKind.SLOTS)),
    Story("the sweep as it was, one change earlier", ("left_square_bracket",), shown("Esc now")),
)  # fmt: skip


def keys_on_page() -> dict[str, int]:
    """Return how many keys each story of the page needs."""
    rows = re.findall(r"^\| ([^|]+) \| .* \| (\d+) \|$", WALK.read_text(encoding="utf-8"), re.MULTILINE)
    return {wanted: int(number) for wanted, number in rows}


@pytest.fixture(scope="module")
def sweep() -> Iterator[SweepFolder]:
    with fixed_sweep(60) as folder:
        yield folder


def test_the_page_has_twenty_stories() -> None:
    on_page = keys_on_page()
    assert len(on_page) >= 20
    assert {story.wanted for story in STORIES} <= on_page.keys()


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.wanted)
async def test_a_story_needs_the_keys_of_the_page_and_no_others(sweep: SweepFolder, story: Story) -> None:
    assert len([key for key in story.keys if key != TEXT]) == keys_on_page()[story.wanted]
    sweep.requests.unlink(missing_ok=True)
    async with room_on(sweep, WIDE) as (app, pilot):
        before = ""
        for key in story.keys:
            await press(pilot, *(TYPED[before] if key == TEXT else [key]))
            before = key
        await eventually(lambda: story.is_done(app, sweep), story.wanted)


async def test_all_fixes_are_walked_and_applied_with_a_key_each_and_three_more() -> None:
    with integrated_sweep() as folder:
        folder.verdicts.unlink()
        async with room_on(folder, WIDE) as (app, pilot):
            await press(pilot, "3")
            fixes = app.store.state.integration.fixes
            await eventually(lambda: f"{fixes} open" in text_on_screen(app), "the fixes")
            await press(pilot, *["y"] * (fixes - 1), "n", "A", "r")
            await eventually(lambda: "Your checkout is not touched" in text_on_screen(app), "the question")
            await press(pilot, "y")
            await eventually(lambda: "is made" in text_on_screen(app), "the branch")
            # For six fixes: one key to the screen, six verdicts, and three to apply.
            assert keys_on_page()["walk six fixes and apply the plan"] == 1 + 6 + 3

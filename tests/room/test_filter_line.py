"""The line of the filter bears what fast fingers do."""

from __future__ import annotations

import gc

from swarm_tui.room.screens.overlays import open_filter
from swarm_tui.room.widgets.filter_line import FilterLine
from tests.room.scenes import Scene, fixed_sweep, room_on


async def test_a_filter_may_be_begun_before_the_last_one_is_taken_off_the_screen() -> None:
    with fixed_sweep(40) as folder:
        async with room_on(folder, Scene("wide", (), 120, 36)) as (app, pilot):
            screen = app.room_screen
            assert screen is not None
            await pilot.press("slash", "1")
            # In one go, as when the next key comes before Textual has taken the line away.
            screen.focus_main()
            open_filter(screen)
            await pilot.pause()
            await pilot.press("escape")
            assert screen.filter_words == ""
            await pilot.press("slash", "2")
            assert screen.filter_words == "2"
            await pilot.press("enter")
            assert not screen.query(FilterLine)
            assert app.room_screen is screen


async def test_a_filter_that_was_closed_is_let_go() -> None:
    """Each was kept for as long as its screen lived, with all that had been drawn in it."""
    with fixed_sweep(4) as folder:
        async with room_on(folder, Scene("wide", (), 120, 36)) as (_, pilot):
            for _ in range(4):
                await pilot.press("slash", "1", "escape")
                await pilot.pause()
            gc.collect()
            assert sum(isinstance(thing, FilterLine) for thing in gc.get_objects()) <= 1

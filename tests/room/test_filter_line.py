"""The filter line handles fast typing."""

from __future__ import annotations

import gc

from swarm_tui.room.lists import FilterLine
from tests.room.scenes import Scene, fixed_sweep, room_on


async def test_filter_can_start_before_last_one_is_removed() -> None:
    with fixed_sweep(40) as folder:
        async with room_on(folder, Scene("wide", (), 120, 36)) as (app, pilot):
            screen = app.room_screen
            assert screen is not None
            await pilot.press("slash", "1")
            # In one step, as if the next key arrived before Textual has removed the filter line.
            screen.focus_main()
            screen.open_filter()
            await pilot.pause()
            await pilot.press("escape")
            assert screen.filter_words == ""
            await pilot.press("slash", "2")
            assert screen.filter_words == "2"
            await pilot.press("enter")
            assert not screen.query(FilterLine)
            assert app.room_screen is screen


async def test_closed_filter_line_is_garbage_collected() -> None:
    """Each filter line used to stay in memory as long as its screen."""
    with fixed_sweep(4) as folder:
        async with room_on(folder, Scene("wide", (), 120, 36)) as (_, pilot):
            for _ in range(4):
                await pilot.press("slash", "1", "escape")
                await pilot.pause()
            gc.collect()
            assert sum(isinstance(thing, FilterLine) for thing in gc.get_objects()) <= 1

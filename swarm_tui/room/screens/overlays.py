"""Opens what may lie over every screen: themes, keys, commands, the filter; each is imported when it is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swarm_tui.room.screens.base import RoomScreen


def open_themes(screen: RoomScreen) -> None:
    from swarm_tui.room.screens.dialog import Choosable, PickScreen

    app = screen.room

    def change(values: tuple[str, ...] | None) -> None:
        if values:
            app.theme = values[0]

    names = sorted(app.available_themes)
    app.push_screen(PickScreen("Theme", [Choosable(name, name) for name in names], current=app.theme), change)


def open_help(screen: RoomScreen) -> None:
    from swarm_tui.room.screens.searchable_list import HelpScreen

    screen.room.push_screen(HelpScreen(screen), lambda action: screen.perform(action) if action is not None else None)


def open_palette(screen: RoomScreen) -> None:
    from swarm_tui.room.screens.searchable_list import PaletteScreen

    screen.room.push_screen(PaletteScreen(screen), lambda command: command() if command is not None else None)


def open_filter(screen: RoomScreen) -> None:
    from swarm_tui.room.widgets.filter_line import FilterLine

    line = FilterLine(screen)
    screen.mount(line)
    # At once: the next key is the first one of the filter.
    screen.set_focus(line, scroll_visible=False)

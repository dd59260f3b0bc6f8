"""The keys of a screen, made from the action table; typing narrows them, Enter performs the one under the cursor."""

from __future__ import annotations

from typing import ClassVar

from swarm_tui.room.actions import Action
from swarm_tui.room.draw.help import HelpEntry, draw_help, fitting_entries
from swarm_tui.room.draw.parts import Line
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.screens.searchable_list import SearchedScreen


class HelpScreen(SearchedScreen[Action]):
    """Lists every action that works on the screen below."""

    PLACEHOLDER: ClassVar[str] = "type to search the keys"
    HEADING: ClassVar[str] = "Keys of this screen"

    def __init__(self, screen: RoomScreen) -> None:
        super().__init__()
        self.entries = [HelpEntry(action, screen.keys.keys(action), action.why_not()) for action in screen.actions]
        self.shown: list[HelpEntry] = []

    def lines_for(self, words: str, width: int) -> list[Line]:
        self.shown = fitting_entries(self.entries, words)
        return draw_help(self.shown, width)

    def subtitle_for(self, words: str) -> str:
        return f"{len(self.shown)} of {len(self.entries)} · Enter does it · Esc closes"

    def choose(self, index: int) -> None:
        self.dismiss(self.shown[index].action if index < len(self.shown) else None)

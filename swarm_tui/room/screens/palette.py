"""The command palette: every action by name, and commands that take a word, such as `slots 24`."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from swarm_tui.model.requests import RequestKind
from swarm_tui.model.text import plain
from swarm_tui.room.actions import Action
from swarm_tui.room.draw.help import HelpEntry, draw_entry, fitting_entries
from swarm_tui.room.draw.parts import Line, Part, cut_line, pad_text
from swarm_tui.room.screens.base import RoomScreen
from swarm_tui.room.screens.searchable_list import SearchedScreen

Command = Callable[[], None]


class Offer(NamedTuple):
    """One line of the palette."""

    line: Line
    run: Command


class PaletteScreen(SearchedScreen[Command]):
    """Returns what is to be done when it is closed."""

    PLACEHOLDER: ClassVar[str] = "what to do; also: slots 24, theme nord, go test_name"
    HEADING: ClassVar[str] = "Everything"

    def __init__(self, screen: RoomScreen) -> None:
        super().__init__()
        self.below = screen
        self.offers: list[Offer] = []

    def lines_for(self, words: str, width: int) -> list[Line]:
        entries = [
            HelpEntry(action, self.below.keys.keys(action), action.why_not())
            for action in self.below.actions
            if action.is_listed and action.id != "room.palette"
        ]
        self.offers = [*self._commands(words, width)]
        self.offers += [
            Offer(draw_entry(entry, width), self._doing(entry.action)) for entry in fitting_entries(entries, words)
        ]
        return [offer.line for offer in self.offers]

    def subtitle_for(self, words: str) -> str:
        return f"{len(self.offers)} · Enter does it · Esc closes"

    def choose(self, index: int) -> None:
        self.dismiss(self.offers[index].run if index < len(self.offers) else None)

    def _doing(self, action: Action) -> Command:
        return lambda: self.below.perform(action)

    def _commands(self, words: str, width: int) -> list[Offer]:
        command, _, rest = words.strip().partition(" ")
        rest = rest.strip()
        screen = self.below
        if command == "slots" and rest.isascii() and rest.isdigit() and len(rest) < 5:
            slots = int(rest)
            return [_offer(f"slots {slots}", f"Let {slots} agents work at once", width, _slotted(screen, slots))]
        if command == "theme":
            names = [name for name in sorted(screen.app.available_themes) if rest in name]
            return [_offer(f"theme {name}", "", width, _themed(screen, name)) for name in names]
        if command == "go" and rest:
            return self._places(rest, width)
        return []

    def _places(self, rest: str, width: int) -> list[Offer]:
        lowered = rest.casefold()
        tests = [test for test in self.below.store.state.records if lowered in test.casefold()][:50]
        return [_offer("go", plain(test, 500), width, _going(self.below, test)) for test in tests]


def _offer(name: str, text: str, width: int, run: Command) -> Offer:
    return Offer(cut_line([Part(pad_text(name, 16), "key"), Part(text)], width), run)


def _slotted(screen: RoomScreen, slots: int) -> Command:
    return lambda: screen.requests.send(RequestKind.SLOTS, slots=slots)


def _themed(screen: RoomScreen, name: str) -> Command:
    def run() -> None:
        screen.app.theme = name

    return run


def _going(screen: RoomScreen, test: str) -> Command:
    return lambda: screen.room.show_test(test)

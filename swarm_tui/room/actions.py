"""What a person can do on a screen: actions with their keys, handlers and reasons why not; and the list of screens.

Each screen and each of its controllers returns its own actions, bound to what carries them out. Footer, help, palette,
the page of keys and the names in the config file are all made from them. Actions of scope `room` work on every screen;
a screen's own action takes a key away from them. Keys are written as people read them ("+", "G", "ctrl+d", "enter").
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from swarm_tui.room.screens.base import RoomScreen

EVERYWHERE: Final = "room"
"""The scope of actions that work on every screen."""
OF_NO_SWEEP: Final = "these agents are of no sweep"


def always_possible() -> str:
    return ""


class Action(NamedTuple):
    """One thing a person can do."""

    id: str
    """`sweep.zoom_in`: the scope, and a name within it that the config file uses."""
    keys: tuple[str, ...]
    label: str
    """One or two words for the footer; "" keeps it out of there."""
    description: str
    handler: Callable[[], None]
    why_not: Callable[[], str] = always_possible
    """Returns the reason why it is not possible now, or ""."""
    is_listed: bool = True
    """Whether the palette lists it; False for actions such as moving the cursor."""
    rank: int = 5
    """Its place in the footer, where the last ones fall away when the line is short."""
    is_always_ready: bool = False
    """Whether it acts on nothing that a screen loads, as going to another screen."""
    is_of_now: bool = False
    """Whether it acts on agents as they are now, and is refused while the room shows an earlier moment."""
    watch_description: str = ""
    """Its description where agents of no sweep are watched; "" where it is the same."""
    why_not_in_watch: str = ""
    """Why there is nothing to do for it in a watch; "" where there is."""

    def in_watch(self) -> Action:
        """Return the action as it is in a watch."""
        if self.why_not_in_watch:
            return self._replace(label="", why_not=lambda: self.why_not_in_watch)
        return self._replace(description=self.watch_description or self.description)


class ScreenEntry(NamedTuple):
    """One of the room's screens: its number key, its name (the scope of its actions) and where its class is."""

    key: str
    name: str
    title: str
    place: str
    """`module:Class`, imported when the screen is opened first."""
    is_for_watch: bool = True
    """Whether it has something to show of agents that are no sweep's."""
    watch_title: str = ""
    """Its title where agents of no sweep are watched; "" where it is the same."""

    def load(self) -> type[RoomScreen]:
        module, _, name = self.place.partition(":")
        return cast("type[RoomScreen]", getattr(importlib.import_module(module), name))


SCREENS: Final = (
    ScreenEntry("1", "sweep", "Sweep", "swarm_tui.room.screens.sweep:SweepScreen", watch_title="Agents"),
    ScreenEntry("2", "agent", "Agent", "swarm_tui.room.screens.agent:AgentScreen"),
    ScreenEntry("3", "fixes", "Fixes", "swarm_tui.room.screens.fixes:FixesScreen", is_for_watch=False),
    ScreenEntry("4", "patterns", "Patterns", "swarm_tui.room.screens.groups:PatternsScreen", is_for_watch=False),
    ScreenEntry("5", "inbox", "Inbox", "swarm_tui.room.screens.inbox:InboxScreen"),
    ScreenEntry("6", "log", "Log", "swarm_tui.room.screens.log:LogScreen"),
    ScreenEntry("7", "tail", "Tail", "swarm_tui.room.screens.tail:TailScreen"),
    ScreenEntry("8", "hosts", "Hosts", "swarm_tui.room.screens.hosts:HostsScreen", is_for_watch=False),
)
SCOPES: Final = (EVERYWHERE, *(entry.name for entry in SCREENS))


def screen_entry(name: str) -> ScreenEntry:
    return next(entry for entry in SCREENS if entry.name == name)


def actions_in(scope: str) -> tuple[Action, ...]:
    """Return the actions of one scope, in the order of its table; for pages and checks, not to be carried out."""
    entry = screen_entry(SCREENS[0].name if scope == EVERYWHERE else scope)
    return tuple(action for action in entry.load()().actions if action.id.startswith(f"{scope}."))


class KeyMap:
    """The keys of some actions, as the config file has remapped them; of two that want a key, the first has it."""

    def __init__(self, actions: Iterable[Action], remapped: Mapping[str, tuple[str, ...]]) -> None:
        self._wanted: dict[str, tuple[str, ...]] = {}
        self._owners: dict[str, Action] = {}
        for action in actions:
            self._wanted[action.id] = remapped.get(action.id, action.keys)
            for key in self._wanted[action.id]:
                self._owners.setdefault(key, action)

    def action_for(self, key: str) -> Action | None:
        return self._owners.get(key)

    def first_key(self, action: Action) -> str:
        """Return the first key of an action, or "" when other actions have taken all of them."""
        return next((key for key in self._wanted[action.id] if self._owners[key] is action), "")

    def first_key_of(self, name: str) -> str:
        """Return the first key of the action with this id, or "" where it has none."""
        return next((key for key, owner in self._owners.items() if owner.id == name), "")

    def keys(self, action: Action) -> tuple[str, ...]:
        return tuple(key for key, owner in self._owners.items() if owner is action)


KEY_NAMES: Final = {
    "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End", "up": "↑", "down": "↓", "left": "←",
    "right": "→", "enter": "Enter", "escape": "Esc", "tab": "Tab", "shift+tab": "Shift+Tab", "space": "Space",
}  # fmt: skip


def key_name(key: str) -> str:
    return KEY_NAMES.get(key) or (f"Ctrl+{key[5:]}" if key.startswith("ctrl+") else key)

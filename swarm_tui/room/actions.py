"""@action, key map, list of screens."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from swarm_tui.room.screen import RoomScreen


EVERYWHERE: Final = "room"
"""Scope of the actions that work on every screen."""
OF_NO_SWEEP: Final = "not available for agents outside a sweep"


def always_possible() -> str:
    return ""


class Action(NamedTuple):
    """One command that the user can run with a key or from the palette."""

    id: str
    """Scope and name, such as `sweep.zoom_in`. The config file uses this id."""
    keys: tuple[str, ...]
    label: str
    """One or two words for the footer; "" if the footer does not show this action."""
    description: str
    handler: Callable[[], None]
    why_not: Callable[[], str] = always_possible
    """Returns why the action is unavailable now, or ""."""
    is_listed: bool = True
    """Whether the palette lists it; False for actions such as moving the cursor."""
    rank: int = 5
    """Position in the footer. On a narrow terminal the highest ranks are left out first."""
    is_always_ready: bool = False
    """Whether it works before the screen has loaded its data, for example switching to another screen."""
    is_of_now: bool = False
    """Whether it acts on the present state of agents. They are refused while an earlier moment is shown."""
    opens_box: bool = False
    """Whether it opens a text box. If it cannot, a dialog shows why, so that typed text does not run commands."""
    is_hidden: bool = False
    """Whether the footer hides it while it is unavailable. Other actions are dimmed."""
    watch_description: str = ""
    """Description for agents outside a sweep; "" if it is the same."""
    why_not_in_watch: str = ""
    """Why it is unavailable for agents outside a sweep; "" if it is available."""

    def in_watch(self) -> Action:
        """Return the action as it is for agents outside a sweep."""
        if self.why_not_in_watch:
            return self._replace(label="", why_not=lambda: self.why_not_in_watch)
        return self._replace(description=self.watch_description or self.description)


F = TypeVar("F", bound=Callable[..., object])


class _Mark(NamedTuple):
    """An action of a function whose first argument is the screen."""

    action: Action
    why_not: Callable[[Any], str] | None
    arguments: tuple[object, ...]


def action(
    keys: str,
    id: str,
    label: str,
    description: str,
    why_not: Callable[[Any], str] | None = None,
    arguments: tuple[object, ...] = (),
    **options: Any,
) -> Callable[[F], F]:
    """Make a method of a screen an action. `keys` are separated by spaces, and `options` are other fields of `Action`.

    A method can have several actions, with different arguments. `why_not` is a function of the screen.
    """
    mark = _Mark(Action(id, tuple(keys.split()), label, description, _run_nothing, **options), why_not, arguments)

    def add_mark(function: F) -> F:
        # Decorators apply from the last to the first.
        vars(function)["actions"] = (mark, *vars(function).get("actions", ()))
        return function

    return add_mark


def _run_nothing() -> None:
    raise AssertionError("bound_actions sets the handler")


def bound_actions(screen: object, functions: Iterable[Callable[..., object]]) -> tuple[Action, ...]:
    """Return the actions of functions whose first argument is the screen."""
    return tuple(each for function in functions for each in _bound(screen, function, partial(function, screen)))


def actions_of_class(screen: object) -> tuple[Action, ...]:
    """Return the actions of a screen's methods in the order of its class, followed by those of its base classes."""
    members = ((name, member) for each in type(screen).__mro__ for name, member in vars(each).items())
    methods = ((name, member) for name, member in members if isinstance(member, FunctionType))
    # A subclass may override the method of an action.
    return tuple(each for name, method in methods for each in _bound(screen, method, getattr(screen, name)))


def _bound(screen: object, function: Callable[..., object], handler: Callable[..., object]) -> Iterator[Action]:
    for mark in vars(function).get("actions", ()):
        why_not = partial(mark.why_not, screen) if mark.why_not is not None else always_possible
        yield mark.action._replace(handler=partial(handler, *mark.arguments), why_not=why_not)


class ScreenEntry(NamedTuple):
    """One screen of the room: its number key, its name (the scope of its actions) and its class."""

    key: str
    name: str
    title: str
    place: str
    """`module:Class`, imported when the screen is opened for the first time."""
    is_for_watch: bool = True
    """Whether the screen supports agents outside a sweep."""
    watch_title: str = ""
    """Title for agents outside a sweep; "" if it is the same."""

    def load(self) -> type[RoomScreen]:
        module, _, name = self.place.partition(":")
        return cast("type[RoomScreen]", getattr(importlib.import_module(module), name))


SCREENS: Final = (
    ScreenEntry("1", "sweep", "Sweep", "swarm_tui.room.grid.screen:GridScreen", watch_title="Agents"),
    ScreenEntry("2", "agent", "Agent", "swarm_tui.room.agent.screen:AgentScreen"),
    ScreenEntry("3", "fixes", "Fixes", "swarm_tui.room.fixes.screen:FixesScreen", is_for_watch=False),
    ScreenEntry("4", "patterns", "Patterns", "swarm_tui.room.patterns_hosts:PatternsScreen", is_for_watch=False),
    ScreenEntry("5", "inbox", "Inbox", "swarm_tui.room.inbox.screen:InboxScreen"),
    ScreenEntry("6", "log", "Log", "swarm_tui.room.streams:LogScreen"),
    ScreenEntry("7", "tail", "Tail", "swarm_tui.room.streams:TailScreen"),
    ScreenEntry("8", "hosts", "Hosts", "swarm_tui.room.patterns_hosts:HostsScreen", is_for_watch=False),
)
SCOPES: Final = (EVERYWHERE, *(entry.name for entry in SCREENS))


def screen_entry(name: str) -> ScreenEntry:
    return next(entry for entry in SCREENS if entry.name == name)


def actions_in(scope: str) -> tuple[Action, ...]:
    """Return the actions of one scope in the order of the table, for documentation and checks."""
    entry = screen_entry(SCREENS[0].name if scope == EVERYWHERE else scope)
    return tuple(action for action in entry.load()().actions if action.id.startswith(f"{scope}."))


class KeyMap:
    """Keys of some actions after remapping by the config file. The first of two actions with the same key gets it."""

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
        """Return the first key of an action, or "" if other actions use all of its keys."""
        return next((key for key in self._wanted[action.id] if self._owners[key] is action), "")

    def first_key_of(self, name: str) -> str:
        """Return the first key of the action with this id, or ""."""
        return next((key for key, owner in self._owners.items() if owner.id == name), "")

    def keys(self, action: Action) -> tuple[str, ...]:
        return tuple(key for key, owner in self._owners.items() if owner is action)


KEY_NAMES: Final = {
    "pageup": "PgUp", "pagedown": "PgDn", "home": "Home", "end": "End", "up": "↑", "down": "↓", "left": "←",
    "right": "→", "enter": "Enter", "escape": "Esc", "tab": "Tab", "shift+tab": "Shift+Tab", "space": "Space",
}  # fmt: skip


def key_name(key: str) -> str:
    return KEY_NAMES.get(key) or (f"Ctrl+{key[5:]}" if key.startswith("ctrl+") else key)

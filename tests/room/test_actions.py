"""The table of actions, and what is generated from it."""

import re
from collections import Counter

import pytest

from swarm_tui.room.actions import (
    EVERYWHERE,
    SCOPES,
    SCREENS,
    Action,
    KeyMap,
    ScreenEntry,
    action,
    actions_in,
    actions_of_class,
)
from swarm_tui.room.draw.frame import draw_footer
from swarm_tui.room.draw.spans import text_of, width_of

DEADLY = {"ctrl+q", "ctrl+t", "ctrl+z"}
"""mngr's tmux binds the first two to destroying and stopping an agent."""


def actions_of(entry: ScreenEntry) -> tuple[Action, ...]:
    return entry.load()().actions


def do_nothing() -> None:
    """Placeholder handler."""


@pytest.mark.parametrize("entry", SCREENS, ids=lambda entry: entry.name)
def test_screen_has_own_and_common_actions(entry: ScreenEntry) -> None:
    assert entry.name == entry.load().NAME
    own, everywhere = actions_in(entry.name), actions_in(EVERYWHERE)
    assert [action.id for action in actions_of(entry)] == [action.id for action in (*own, *everywhere)]


def test_action_ids_are_unique_and_keys_harmless() -> None:
    every = [action for scope in SCOPES for action in actions_in(scope)]
    counts = Counter(action.id for action in every)
    assert [name for name, number in counts.items() if number > 1] == []
    assert not [action for action in every if DEADLY & set(action.keys)]


@pytest.mark.parametrize("scope", SCOPES)
def test_key_has_one_action_per_screen(scope: str) -> None:
    counts = Counter(key for action in actions_in(scope) for key in action.keys)
    assert [key for key, number in counts.items() if number > 1] == []


def test_screen_action_overrides_common_key() -> None:
    own = Action("fixes.mine", ("n",), "", "", do_nothing)
    other = Action("room.other", ("n", "N"), "", "", do_nothing)
    keys = KeyMap((own, other), {})
    assert keys.action_for("n") is own
    assert keys.action_for("N") is other
    assert (keys.first_key(own), keys.first_key(other)) == ("n", "N")
    assert (keys.keys(own), keys.keys(other)) == (("n",), ("N",))


class Counting:
    """A screen with actions."""

    def __init__(self) -> None:
        self.count = 0

    def why_not_subtract(self) -> str:
        return "" if self.count else "nothing to subtract"

    @action("+ =", "count.add", "add", "Add one", arguments=(1,))
    @action("-", "count.subtract", "", "Subtract one", why_not_subtract, (-1,), rank=9)
    def add(self, number: int) -> None:
        self.count += number


class Resetting(Counting):
    @action("0", "count.reset", "reset", "Start again")
    def reset(self) -> None:
        self.count = 0

    def add(self, number: int) -> None:
        super().add(2 * number)

    @action("*", "count.double", "double", "Double it")
    def double(self) -> None:
        self.count *= 2


def test_methods_of_screen_are_its_actions() -> None:
    screen = Counting()
    plus, minus = actions_of_class(screen)
    assert (plus.id, plus.keys, plus.label, plus.rank) == ("count.add", ("+", "="), "add", 5)
    assert (minus.keys, minus.rank, minus.why_not()) == (("-",), 9, "nothing to subtract")
    plus.handler()
    assert (screen.count, plus.why_not(), minus.why_not()) == (1, "", "")
    minus.handler()
    assert screen.count == 0


def test_actions_of_subclass_come_first() -> None:
    screen = Resetting()
    assert [each.id for each in actions_of_class(screen)] == [
        "count.reset",
        "count.double",
        "count.add",
        "count.subtract",
    ]
    actions_of_class(screen)[2].handler()
    assert screen.count == 2, "the overriding method is used"


def test_config_moves_keys() -> None:
    keys = KeyMap(actions_in(EVERYWHERE), {"room.help": ("f1",)})
    moved = keys.action_for("f1")
    assert moved is not None
    assert moved.id == "room.help"
    assert keys.first_key(moved) == "f1"
    assert keys.action_for("?") is None


@pytest.mark.parametrize("scope", [EVERYWHERE, *(entry.name for entry in SCREENS if entry.is_for_watch)])
def test_actions_outside_sweep_mention_agents_or_reason(scope: str) -> None:
    for shown in (each.in_watch() for each in actions_in(scope)):
        is_of_sweep = re.search(r"\b(tests?|sweeps?|slots?|engine|queue)\b", shown.description, re.IGNORECASE)
        assert not is_of_sweep or shown.why_not(), shown.description
    refused = next(action for action in actions_in("sweep") if action.id == "sweep.more_slots").in_watch()
    assert refused.why_not() == "not available for agents outside a sweep"


@pytest.mark.parametrize("width", range(20, 200, 7))
def test_footer_has_whole_entries_and_help(width: int) -> None:
    actions = [action._replace(why_not=lambda: "") for action in actions_of(SCREENS[0])]
    footer = draw_footer(actions, KeyMap(actions, {}), width)
    assert width_of(footer) == width
    assert text_of(footer).endswith("? keys ")
    labels = {action.label for action in actions}
    assert {part.text.strip() for part in footer if part.role == "dim"} <= labels


def test_unavailable_action_is_dim_in_footer() -> None:
    actions = [Action("a.b", ("x",), "act", "", do_nothing, lambda: "no"), Action("a.c", ("y",), "go", "", do_nothing)]
    roles = {part.text.strip(): part.role for part in draw_footer(actions, KeyMap(actions, {}), 60) if part.role}
    assert roles == {"x": "faint", "act": "faint", "y": "key", "go": "dim"}

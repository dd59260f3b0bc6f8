"""The table of actions and what is made of it."""

import importlib
import os
from collections import Counter
from pathlib import Path

import pytest

from swarm_tui.room.actions import (
    EVERYWHERE,
    SCREENS,
    TABLES,
    Action,
    ScreenEntry,
    actions_of,
    all_actions,
    keys_of,
)
from swarm_tui.room.app import first_zoom
from swarm_tui.room.draw.arrange import Zoom
from swarm_tui.room.draw.footer import draw_footer
from swarm_tui.room.draw.parts import text_of, width_of
from swarm_tui.room.keys_page import keys_page

DEADLY = {"ctrl+q", "ctrl+t", "ctrl+z"}
"""mngr's tmux binds the first two to destroying and stopping an agent."""


def screen_class(entry: ScreenEntry) -> type:
    module, _, name = entry.place.partition(":")
    kind = getattr(importlib.import_module(module), name)
    assert isinstance(kind, type)
    return kind


@pytest.mark.parametrize("entry", SCREENS, ids=lambda entry: entry.name)
def test_every_action_of_a_screen_can_be_carried_out(entry: ScreenEntry) -> None:
    kind = screen_class(entry)
    methods = {action.method for action in actions_of(entry.name)}
    opening = {f"open_{other.name}" for other in SCREENS}
    assert not [method for method in methods - opening if not callable(getattr(kind, f"do_{method}", None))]


@pytest.mark.parametrize("entry", SCREENS, ids=lambda entry: entry.name)
def test_every_reason_belongs_to_an_action(entry: ScreenEntry) -> None:
    kind = screen_class(entry)
    methods = {action.method for table in TABLES.values() for action in table}
    reasons = {name.removeprefix("why_not_") for name in dir(kind) if name.startswith("why_not_")}
    assert reasons <= methods


def test_ids_are_unique_and_no_key_is_deadly() -> None:
    counts = Counter(action.id for action in all_actions())
    assert [name for name, number in counts.items() if number > 1] == []
    assert not [action for action in all_actions() if DEADLY & set(action.keys)]


@pytest.mark.parametrize("scope", TABLES)
def test_within_a_screen_a_key_means_one_thing(scope: str) -> None:
    counts = Counter(key for action in TABLES[scope] for key in action.keys)
    assert [key for key, number in counts.items() if number > 1] == []


def test_every_screen_has_its_number() -> None:
    assert [entry.key for entry in SCREENS] == [str(number + 1) for number in range(len(SCREENS))]


def test_a_screens_own_action_takes_a_key_away() -> None:
    own = Action("fixes.mine", ("n",), "", "")
    keys = keys_of((own, Action("room.other", ("n", "N"), "", "")), {})
    assert keys["n"] is own
    assert keys["N"].id == "room.other"


def test_the_config_moves_keys() -> None:
    keys = keys_of(EVERYWHERE, {"room.help": ("f1",)})
    assert keys["f1"].id == "room.help"
    assert "?" not in keys


@pytest.mark.parametrize("width", range(20, 200, 7))
def test_the_footer_shows_whole_entries_and_always_the_help(width: int) -> None:
    actions = actions_of("sweep")
    footer = draw_footer(actions, lambda action: action.keys[0] if action.keys else "", lambda action: "", width)
    assert width_of(footer) == width
    assert text_of(footer).endswith("? keys ")
    labels = {action.label for action in actions}
    assert {part.text.strip() for part in footer if part.role == "dim"} <= labels


def test_the_page_of_keys_is_what_the_table_says() -> None:
    page = Path(__file__).parents[2] / "tutorial" / "keys.md"
    if os.environ.get("SWARM_WRITE_SCENES"):
        page.parent.mkdir(exist_ok=True)
        page.write_text(keys_page(), encoding="utf-8")
    assert page.read_text(encoding="utf-8") == keys_page(), "SWARM_WRITE_SCENES=1 writes it anew"


def test_a_small_sweep_is_a_table_at_first_and_a_large_one_dots() -> None:
    assert [first_zoom(tests) for tests in (0, 1, 30, 31, 10_000)] == [
        Zoom.DOTS,
        Zoom.ROWS,
        Zoom.ROWS,
        Zoom.DOTS,
        Zoom.DOTS,
    ]

"""A bounded part of each attack; the whole is a command: python -m tests.attacks."""

from __future__ import annotations

import pytest

from tests.attacks.__main__ import load_attack
from tests.attacks.attack import Bounds, Table

pytestmark = pytest.mark.slow

PARTS = {
    "kill": Bounds(rounds=10, seed=5, seconds=45),
    "mutate": Bounds(rounds=40, seconds=35),
    "hostile": Bounds(rounds=10, seconds=20),
    "fill": Bounds(rounds=8, seconds=20),
    "soak": Bounds(rounds=1, seconds=30),
}
"""How much of each attack every change is tried by: some rounds, and no other one begins after so many seconds."""


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_each_attack_breaks_no_promise(name: str) -> None:
    table = Table()
    load_attack(name).attack(PARTS[name], table)
    assert not [told for row in table.rows.values() for told in row.told]
    # Without the right to mount, no disk can be filled.
    assert table.rows or name == "fill"

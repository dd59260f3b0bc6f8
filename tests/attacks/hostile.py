"""Agents that are hostile: each round plays every one of their tricks once, with other dice."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from tests.attacks import hostile_archives, hostile_copies, hostile_journal, hostile_programs, hostile_tests
from tests.attacks.attack import Bounds, Table
from tests.attacks.tricks import Trick

ROUNDS: Final = 100
TRICKS: Final[tuple[Trick, ...]] = (
    *hostile_archives.TRICKS,
    *hostile_copies.TRICKS,
    *hostile_journal.TRICKS,
    *hostile_programs.TRICKS,
    *hostile_tests.TRICKS,
)


def attack(bounds: Bounds, table: Table) -> None:
    """Play every trick in every round."""
    for number, dice in bounds.each():
        for trick in TRICKS:
            with tempfile.TemporaryDirectory(prefix="swarm-hostile-") as root:
                table.tried(trick.promise, trick.play(Path(root), dice), f"round {number}, {trick.name}")

"""What a cook wants to know: what to buy, and what a recipe needs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from larder.amounts import FACTORS, Amount, parse_amount, take_away
from larder.shelf import Item, Shelf


@dataclass(frozen=True)
class Need:
    """One line of a recipe."""

    name: str
    amount: Amount


def read_recipe(path: Path) -> list[Need]:
    """Read a recipe: one ingredient a line, such as `250g flour`; lines with # are for the cook."""
    needs = []
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split(maxsplit=1)
        if len(words) == 2:
            needs.append(Need(words[1].strip(), parse_amount(words[0])))
    return needs


def missing(shelf: Shelf, needs: list[Need]) -> list[Need]:
    """Give what the shelf lacks for a recipe."""
    lacking = []
    for need in needs:
        item = shelf.items.get(need.name)
        have = item.amount.value * FACTORS[item.amount.unit] if item else 0.0
        wanted = need.amount.value * FACTORS[need.amount.unit]
        if have < wanted:
            lacking.append(Need(need.name, Amount((wanted - have) / FACTORS[need.amount.unit], need.amount.unit)))
    return lacking


def shopping_list(shelf: Shelf) -> Iterator[tuple[str, list[tuple[Item, Amount]]]]:
    """Give, aisle by aisle, what has fallen below what we want to keep, and how much to buy."""
    wanted = [(item, take_away(item.keep, item.amount)) for item in shelf.items.values() if item.keep]
    short = [(item, amount) for item, amount in wanted if amount.value > 0]
    for aisle in {item.aisle for item, _ in short}:
        yield aisle, [(item, amount) for item, amount in short if item.aisle == aisle]

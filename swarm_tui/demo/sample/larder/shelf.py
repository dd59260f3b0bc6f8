"""The shelf: all items, kept in one JSON file together with its state before the last change."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from larder.amounts import Amount, add_up, show_amount, take_away
from larder.dates import parse_date


@dataclass(frozen=True)
class Item:
    """One thing on the shelf."""

    name: str
    amount: Amount
    aisle: str = "other"
    best_before: date | None = None
    keep: Amount | None = None


class Shelf:
    """The items by name; saved on request."""

    def __init__(self, path: Path) -> None:
        self.path = path
        stored = json.loads(path.read_text()) if path.exists() else {"items": [], "before": None}
        self._stored_items = stored["items"]
        self._before = stored["before"]
        self.items = {entry["name"]: _read(entry) for entry in stored["items"]}

    def save(self) -> None:
        """Write the shelf, and what it was before, so that `larder undo` can bring it back."""
        items = [_write(item) for item in self.items.values()]
        self.path.write_text(json.dumps({"items": items, "before": self._stored_items}, indent=1) + "\n")

    def undo(self) -> bool:
        """Go back to what was saved before the last change; tell whether there was anything."""
        if self._before is None:
            return False
        self.items = {entry["name"]: _read(entry) for entry in self._before}
        self.path.write_text(json.dumps({"items": self._before, "before": None}, indent=1) + "\n")
        return True

    def get(self, name: str) -> Item:
        """Give the item of that name."""
        if name not in self.items:
            raise KeyError(f"there is no {name} in the larder")
        return self.items[name]

    def put(self, item: Item) -> Item:
        """Put something on the shelf; more of what is there already is added up."""
        known = self.items.get(item.name)
        if known is not None:
            item = replace(
                known, amount=add_up(known.amount, item.amount), best_before=item.best_before or known.best_before
            )
        self.items[item.name] = item
        return item

    def take(self, name: str, amount: Amount) -> Item:
        """Take something off the shelf; gives what is left of it."""
        item = self.get(name)
        left = replace(item, amount=take_away(item.amount, amount))
        self.items[name] = left
        return left

    def rename(self, name: str, new_name: str) -> None:
        """Give an item another name."""
        item = self.get(name)
        del self.items[name]
        self.items[new_name] = Item(new_name, item.amount, item.aisle)

    def drop(self, name: str) -> None:
        """Forget an item."""
        self.get(name)
        del self.items[name]


def _read(entry: dict[str, Any]) -> Item:
    keep = entry.get("keep")
    return Item(
        entry["name"],
        Amount(*entry["amount"]),
        entry["aisle"],
        parse_date(entry["best_before"]),
        Amount(*keep) if keep else None,
    )


def _write(item: Item) -> dict[str, Any]:
    return {
        "name": item.name,
        "amount": [item.amount.value, item.amount.unit],
        "aisle": item.aisle,
        "best_before": item.best_before.isoformat() if item.best_before else "",
        "keep": [item.keep.value, item.keep.unit] if item.keep else None,
    }


def describe(item: Item) -> str:
    """Give one item in words."""
    return f"{show_amount(item.amount)} of {item.name}"

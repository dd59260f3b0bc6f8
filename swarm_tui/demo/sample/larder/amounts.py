"""Amounts: a number and a unit, read from what people type."""

from __future__ import annotations

import re
from dataclasses import dataclass

FACTORS = {"": 1.0, "g": 1.0, "kg": 1000.0, "ml": 1.0, "l": 1000.0}
BASES = {"": "", "g": "g", "kg": "g", "ml": "ml", "l": "ml"}
LARGER = {"g": "kg", "ml": "l"}


@dataclass(frozen=True)
class Amount:
    """So much of something."""

    value: float
    unit: str = ""


def parse_amount(text: str) -> Amount:
    """Read an amount such as 6, 500g, 1.5 kg or 0,7 l."""
    match = re.fullmatch(r"([0-9]+(?:[.,][0-9]+)?)\s*([a-z]*)", text.strip().lower())
    if match is None or match[2] not in FACTORS:
        raise ValueError(f"{text!r} is no amount: try 6, 500g, 1.5kg or 0.7l")
    return Amount(float(match[1].replace(",", "")), match[2])


def show_amount(amount: Amount) -> str:
    """Give the amount as people write it: 1.5 kg, 250 g, 6."""
    base = BASES[amount.unit]
    value = amount.value * FACTORS[amount.unit]
    if base in LARGER and abs(value) >= 1000:
        return f"{value / 1000:g} {LARGER[base]}"
    return f"{value:g} {base}".strip()


def add_up(first: Amount, second: Amount) -> Amount:
    """Give both amounts as one."""
    return Amount(first.value + second.value, first.unit)


def take_away(first: Amount, second: Amount) -> Amount:
    """Give what is left of the first amount without the second."""
    return add_up(first, Amount(-second.value, second.unit))

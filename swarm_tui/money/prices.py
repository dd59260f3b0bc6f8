"""Prices of models: the table that comes with swarm-tui, and [prices] in the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from swarm_tui.errors import UsageError
from swarm_tui.money.events import ModelTokens

_HINT: Final = 'write dollars for a million tokens: "MODEL" = { input = 2, output = 8, cache_read = 0.2 }'
# A provider before the name, and a date or a context size after it.
_BASE_NAME: Final = re.compile(r"(?:.*/)?(.+?)(?:-20\d\d-?\d\d-?\d\d)?(?:\[\w+\])?")
_MOST: Final = 10_000.0


class ModelPrice(NamedTuple):
    """Dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float


Prices = Mapping[str, ModelPrice]


def parse_prices(table: Mapping[str, Any], where: str) -> dict[str, ModelPrice]:
    """Return the prices in a table by model; raise UsageError, which names the place, for invalid ones."""
    prices = {}
    for model, found in table.items():
        given = found if isinstance(found, dict) else {}
        if not {"input", "output"} <= given.keys():
            raise UsageError(f"{where}: {model!r} requires the prices of input and output", _HINT)
        unknown = next((key for key in given if key not in ModelPrice._fields), "")
        if unknown:
            raise UsageError(f"{where}: unknown key of {model!r}: {unknown!r}", _HINT)
        wrong = next((key for key, value in given.items() if not _is_price(value)), "")
        if wrong:
            raise UsageError(f"{where}: invalid price {given[wrong]!r} for {wrong!r} of {model!r}", _HINT)
        values = {key: float(value) for key, value in given.items()}
        read, write = values.get("cache_read", values["input"]), values.get("cache_write", values["input"])
        long_write = values.get("cache_write_1h", write)
        prices[model] = ModelPrice(values["input"], values["output"], read, write, long_write)
    return prices


def find_price(prices: Prices, model: str) -> ModelPrice | None:
    """Return the price of a model, whose name may have a provider or a date; None if it is unknown."""
    base = _BASE_NAME.fullmatch(model)
    return prices.get(model) or (prices.get(base[1]) if base is not None else None)


def dollars_for(prices: Prices, models: Iterable[ModelTokens]) -> float | None:
    """Return the cost of tokens; None if the price of a model is unknown, because the rest would be misleading."""
    total = 0.0
    for used in models:
        price = find_price(prices, used.model)
        if price is None:
            return None
        counts = zip(used[1:], price[:4], strict=True)
        total += sum(count * dollars for count, dollars in counts) / 1e6
    return total


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST

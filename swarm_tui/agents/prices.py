"""Read the prices of models."""

from __future__ import annotations

import functools
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from swarm_tui.errors import UsageError
from swarm_tui.files import read_regular
from swarm_tui.journal.user_files import config_file, config_table, read_config
from swarm_tui.money.prices import ModelPrice, Prices, parse_prices

PRICES_FILE: Final = Path(__file__).parents[1] / "money" / "prices.toml"


@functools.cache
def listed_prices() -> Mapping[str, ModelPrice]:
    """Return the table that comes with swarm-tui."""
    providers = tomllib.loads(read_regular(PRICES_FILE).decode())
    return {name: price for table in providers.values() for name, price in parse_prices(table, "prices.toml").items()}


def read_prices(environment: Mapping[str, str] = os.environ) -> Prices:
    """Return all prices; those of the user take precedence. Raise UsageError for an invalid configuration."""
    path = config_file(environment)
    own = config_table(read_config(environment), "prices", path)
    return {**listed_prices(), **parse_prices(own, f"{path}: [prices]")}


@functools.cache
def current_prices() -> Prices:
    """Return all prices as they were when this process first needed them."""
    try:
        return read_prices()
    except UsageError:
        # The user was told before launch. An engine that is already running continues with the list prices.
        return listed_prices()

"""Prices of models: the list, the user's own, and what tokens cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from swarm_tui.agents.prices import listed_prices, read_prices
from swarm_tui.errors import UsageError
from swarm_tui.money.events import ModelTokens
from swarm_tui.money.prices import dollars_for, find_price

TOKENS = ModelTokens("gpt-5.5", input=1_000_000, output=100_000, cache_read=2_000_000)


def configured(folder: Path, text: str) -> dict[str, str]:
    path = folder / "swarm-tui" / "config.toml"
    path.parent.mkdir()
    path.write_text(text)
    return {"XDG_CONFIG_HOME": str(folder)}


@pytest.mark.parametrize(
    "model",
    [
        *("claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5", "claude-opus-5", "anthropic/claude-opus-5-5"),
        *("claude-sonnet-4-5-20250929", "claude-sonnet-4-5[1m]", "gpt-5.5", "openai/gpt-6-astra", "gpt-5-2026-04-01"),
    ],
)
def test_current_models_have_prices(model: str) -> None:
    assert find_price(listed_prices(), model) is not None


def test_cached_tokens_are_cheaper_in_the_list() -> None:
    assert all(price.cache_read < price.input < price.output for price in listed_prices().values())


def test_tokens_cost_the_sum_of_their_prices() -> None:
    assert dollars_for(listed_prices(), [TOKENS]) == pytest.approx(5 + 3 + 1)


def test_one_unknown_model_makes_the_cost_unknown() -> None:
    assert dollars_for(listed_prices(), [TOKENS, ModelTokens("new", 1)]) is None


def test_user_prices_override_and_add(tmp_path: Path) -> None:
    text = '[prices]\n"gpt-5.5" = { input = 1, output = 1 }\nours = { input = 2, output = 8, cache_read = 0.5 }\n'
    prices = read_prices(configured(tmp_path, text))
    assert dollars_for(prices, [TOKENS]) == pytest.approx(1 + 0.1 + 2)
    assert dollars_for(prices, [ModelTokens("ours", 1_000_000, 0, 1_000_000)]) == pytest.approx(2.5)
    assert find_price(prices, "claude-opus-5-5") == find_price(listed_prices(), "claude-opus-5-5")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("ours = 3", "'ours' requires the prices of input and output"),
        ("ours = { input = 3 }", "'ours' requires the prices of input and output"),
        ("ours = { input = 3, output = -1 }", "invalid price -1 for 'output' of 'ours'"),
        ('ours = { input = "3", output = 1 }', "invalid price '3' for 'input' of 'ours'"),
        ("ours = { input = 3, output = 1, cached = 1 }", "unknown key of 'ours': 'cached'"),
    ],
)
def test_invalid_prices_are_rejected(tmp_path: Path, line: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_prices(configured(tmp_path, f"[prices]\n{line}\n"))
    assert problem in caught.value.message
    assert str(tmp_path) in caught.value.message

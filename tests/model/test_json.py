"""JSON from agents and from damaged files."""

from __future__ import annotations

import pytest

from swarm_tui.model.text import parse_json, parse_object


@pytest.mark.parametrize("text", [b"[" * 100_000, '{"a":' * 100_000, b"", b"\xff", "{"], ids=len)
def test_invalid_json_is_value_error(text: bytes | str) -> None:
    with pytest.raises(ValueError):
        parse_json(text)
    assert parse_object(text) == {}


@pytest.mark.parametrize("text", ["[1]", "null", '"a"', "1"])
def test_other_value_is_empty_object(text: str) -> None:
    assert parse_object(text) == {}
    assert parse_object('{"a": [1]}') == {"a": [1]}

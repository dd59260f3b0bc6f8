"""Tests that a change affects: those that use the changed code, and those without recorded data."""

from __future__ import annotations

import pytest

from swarm_tui.journal.pulled_files import UsedCode
from swarm_tui.testing.affected import MODULE, ChangedSource, compare_sources, functions_at, reason_to_run

OLD = """import os

LIMIT = 3


class Cart:
    size = 1

    def add(self, thing):
        return [thing]

    @property
    def total(self):
        return sum(number for number in range(LIMIT))


def pay(cart):
    def inner():
        return cart
    return inner()
"""
USED = UsedCode(
    outcome="passed",
    functions={"shop.py": (9, 12)},
    loaded=frozenset({"shop.py", "tests/test_shop.py"}),
    opened=frozenset({"data/prices.json"}),
)
FUNCTIONS = {"shop.py": frozenset({"Cart.add", "Cart.total"})}
TEST = "tests/test_shop.py"


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("return [thing]", "return [thing, thing]", {"Cart.add"}),
        ("range(LIMIT)", "range(LIMIT + 1)", {"Cart.total"}),
        ("return inner()", "return inner() or 1", {"pay"}),
        ("        return cart\n", "        return None\n", {"pay.inner"}),
        ("LIMIT = 3", "LIMIT = 4", {MODULE}),
        ("size = 1", "size = 2", {MODULE}),
        ("@property", "@classmethod", {MODULE}),
        ("def add(self, thing)", "def add(self, thing=None)", {MODULE}),
        ("import os\n", "import os\n\n# a comment\n", set()),
    ],
)
def test_compare_sources_returns_changed_functions(old: str, new: str, parts: set[str]) -> None:
    change = compare_sources("shop.py", OLD, OLD.replace(old, new))
    assert change == ChangedSource("shop.py", parts=frozenset(parts))


def test_too_deep_source_has_unknown_changes() -> None:
    deep = f"def pay():\n    return {' + '.join(['1'] * 900)}\n"
    assert compare_sources("shop.py", OLD, deep) == ChangedSource("shop.py")


def test_functions_at_lines() -> None:
    assert functions_at(OLD, [9, 12, 14, 18, 6]) == {"Cart.add", "Cart.total", "pay.inner", MODULE}
    assert functions_at("def broken(:\n", [1]) == {MODULE}


def changed(path: str, **more: object) -> ChangedSource:
    return ChangedSource(path, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed("shop.py", parts=frozenset({"Cart.add"})), "it runs Cart.add of shop.py"),
        (changed("shop.py", parts=frozenset({MODULE})), "changed outside functions"),
        (changed("shop.py", parts=frozenset({"pay"})), ""),
        (changed("shop.py", parts=frozenset()), ""),
        (changed("shop.py"), "it imports shop.py, which has changed"),
        (changed("shop.py", is_gone=True), "which was deleted"),
        (changed("other.py", parts=frozenset({MODULE})), ""),
        (changed("stock.py", is_new=True), "stock.py is new in a folder that it uses"),
        (changed("elsewhere/stock.py", is_new=True), ""),
        (changed(TEST, parts=frozenset()), "its file has changed"),
        (changed(TEST, is_new=True), "its file is new"),
        (changed("conftest.py", parts=frozenset()), "conftest.py has changed"),
        (changed("tests/conftest.py", is_new=True), "tests/conftest.py has changed"),
        (changed("other/conftest.py", parts=frozenset()), ""),
        (changed("data/prices.json"), "it reads data/prices.json, which has changed"),
        (changed("data/more.json", is_new=True), "is new in a folder that it uses"),
        (changed("README.md"), ""),
        (changed("uv.lock"), "which may affect every test"),
        (changed("requirements-dev.txt"), "which may affect every test"),
    ],
)
def test_reason_to_run_names_change(change: ChangedSource, reason: str) -> None:
    found = reason_to_run(TEST, USED, [changed("docs/index.md"), change], FUNCTIONS)
    assert reason in found
    assert bool(found) == bool(reason)


def test_reason_to_run_in_doubt() -> None:
    change = [changed("README.md")]
    assert reason_to_run(TEST, None, change) == "the code that it uses is unknown"
    red = USED.model_copy(update={"outcome": "failed"})
    assert "did not pass" in reason_to_run(TEST, red, change)
    blind = USED.model_copy(update={"has_programs": True})
    assert "starts other programs" in reason_to_run(TEST, blind, change)
    old = USED.model_copy(update={"is_whole": False})
    assert "is unknown whether" in reason_to_run(TEST, old, change)
    assert all(reason_to_run(TEST, used, []) == "" for used in (None, red, blind, old))

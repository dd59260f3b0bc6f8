"""Which tests a change concerns: those that use what differs, and those of which that is not known."""

from __future__ import annotations

import pytest

from swarm_tui.insight.affected import MODULE, ChangedSource, KnownUse, compare_sources, functions_at, reason_to_run
from swarm_tui.model.used_code import UsedCode

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
KNOWN = KnownUse(USED, {"shop.py": frozenset({"Cart.add", "Cart.total"})})
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
def test_a_python_file_differs_in_its_functions_or_in_what_importing_it_does(
    old: str, new: str, parts: set[str]
) -> None:
    change = compare_sources("shop.py", OLD, OLD.replace(old, new))
    assert change == ChangedSource("shop.py", parts=frozenset(parts))


def test_a_file_that_is_too_deep_to_be_read_may_differ_anywhere() -> None:
    deep = f"def pay():\n    return {' + '.join(['1'] * 900)}\n"
    assert compare_sources("shop.py", OLD, deep) == ChangedSource("shop.py")


def test_functions_are_known_by_the_line_in_which_they_begin() -> None:
    assert functions_at(OLD, [9, 12, 14, 18, 6]) == {"Cart.add", "Cart.total", "pay.inner", MODULE}
    assert functions_at("def broken(:\n", [1]) == {MODULE}


def changed(path: str, **more: object) -> ChangedSource:
    return ChangedSource(path, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (changed("shop.py", parts=frozenset({"Cart.add"})), "it runs Cart.add of shop.py"),
        (changed("shop.py", parts=frozenset({MODULE})), "changed outside of its functions"),
        (changed("shop.py", parts=frozenset({"pay"})), ""),
        (changed("shop.py", parts=frozenset()), ""),
        (changed("shop.py"), "it imports shop.py, which has changed"),
        (changed("shop.py", is_gone=True), "which is gone"),
        (changed("other.py", parts=frozenset({MODULE})), ""),
        (changed("stock.py", is_new=True), "stock.py is new beside files that it uses"),
        (changed("elsewhere/stock.py", is_new=True), ""),
        (changed(TEST, parts=frozenset()), "its file has changed"),
        (changed(TEST, is_new=True), "its file is new"),
        (changed("conftest.py", parts=frozenset()), "conftest.py has changed"),
        (changed("tests/conftest.py", is_new=True), "tests/conftest.py has changed"),
        (changed("other/conftest.py", parts=frozenset()), ""),
        (changed("data/prices.json"), "it reads data/prices.json, which has changed"),
        (changed("data/more.json", is_new=True), "is new beside files that it uses"),
        (changed("README.md"), ""),
        (changed("uv.lock"), "which may concern every test"),
        (changed("requirements-dev.txt"), "which may concern every test"),
    ],
)
def test_the_reason_says_what_the_test_has_to_do_with_the_change(change: ChangedSource, reason: str) -> None:
    found = reason_to_run(TEST, KNOWN, [changed("docs/index.md"), change])
    assert reason in found
    assert bool(found) == bool(reason)


def test_when_in_doubt_a_test_is_run() -> None:
    change = [changed("README.md")]
    assert reason_to_run(TEST, None, change) == "nothing is known of what it runs"
    red = KnownUse(USED.model_copy(update={"outcome": "failed"}))
    assert "did not pass" in reason_to_run(TEST, red, change)
    blind = KnownUse(USED.model_copy(update={"has_programs": True}))
    assert "starts other programs" in reason_to_run(TEST, blind, change)
    old = KnownUse(USED.model_copy(update={"is_whole": False}))
    assert "is not known" in reason_to_run(TEST, old, change)
    assert all(reason_to_run(TEST, known, []) == "" for known in (None, red, blind, old))

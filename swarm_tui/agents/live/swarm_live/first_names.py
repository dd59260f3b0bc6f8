"""Records pytest's own names of tests, because pytest can select a test only by its own name.

A conftest.py or a plugin may rename tests, for example to show docstrings or unescaped Unicode, or to append a word.
Python 3.6, the standard library only.
"""

from typing import Any

import pytest

from .writing import QUIETLY

_first_names: Any = {}


def first_name(test: str) -> str:
    """Return pytest's own name for a test that may have been renamed."""
    name: str = _first_names.get(test, test)
    return name


def first_name_of(item: Any) -> str:
    """Return pytest's own name for a collected test."""
    name: str = getattr(item, "swarm_first_name", None) or item.nodeid
    return name


class FirstNames:
    """Records the names in a session before any other plugin sees the tests."""

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: Any) -> Any:
        with QUIETLY:
            for item in items:
                item.swarm_first_name = _name_by_place(item)
        yield
        with QUIETLY:
            _learn(items)


def _name_by_place(item: Any) -> str:
    """Return the name that follows from a test's location: its file and its parents."""
    names = []
    node = item
    while node is not None and not isinstance(node, pytest.File):
        names.append(node.name)
        node = node.parent
    if node is None:
        return str(item.nodeid)
    # Older versions of pytest have a nameless node between a class and its tests.
    return "::".join([node.nodeid, *(name for name in reversed(names) if name != "()")])


def _learn(items: Any) -> None:
    named: Any = {}
    for item in items:
        named.setdefault(item.nodeid, set()).add(first_name_of(item))
    for name, first in named.items():
        # Tests with the same name can be distinguished only in separate runs.
        if first != {name} and len(first) == 1:
            _first_names[name] = first.pop()

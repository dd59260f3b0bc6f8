"""Names of tests as pytest itself gave them: by no others can it be asked for one test.

A conftest.py or a plugin may rename tests, to show their docstrings or what is not ASCII as it is; a plugin may add a
word to them. Python 3.6, the standard library only.
"""

from typing import Any

import pytest

from .writing import QUIETLY

_first_names: Any = {}


def first_name(test: str) -> str:
    """Return pytest's own name for a test that is called so now."""
    name: str = _first_names.get(test, test)
    return name


def first_name_of(item: Any) -> str:
    """Return pytest's own name for a collected test."""
    name: str = getattr(item, "swarm_first_name", None) or item.nodeid
    return name


class FirstNames:
    """Learns the names in a session, before anybody else sees its tests."""

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: Any) -> Any:
        with QUIETLY:
            for item in items:
                item.swarm_first_name = _name_by_place(item)
        yield
        with QUIETLY:
            _learn(items)


def _name_by_place(item: Any) -> str:
    """Return the name that follows from where a test stands: its file's, and those of what it is in."""
    names = []
    node = item
    while node is not None and not isinstance(node, pytest.File):
        names.append(node.name)
        node = node.parent
    if node is None:
        return str(item.nodeid)
    # Older versions of pytest have a nameless step between a class and its tests.
    return "::".join([node.nodeid, *(name for name in reversed(names) if name != "()")])


def _learn(items: Any) -> None:
    named: Any = {}
    for item in items:
        named.setdefault(item.nodeid, set()).add(first_name_of(item))
    for name, first in named.items():
        # Tests that were given one name can only be told apart in runs of their own.
        if first != {name} and len(first) == 1:
            _first_names[name] = first.pop()

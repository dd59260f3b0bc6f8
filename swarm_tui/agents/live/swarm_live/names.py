"""Translates the ids of tests. Python 3.6, the standard library only.

Ids may contain a path of the checkout. Parameters are often files of a folder, as in
`test_it[/home/me/project/data/a.txt]`. In a copy, pytest uses the copy's path instead.

A conftest.py or a plugin may rename tests, for example to show docstrings or unescaped Unicode, or to append a word.
pytest can select a test only by its own name, so that name is recorded.
"""

import os
import re
from typing import Any

import pytest

from .report import QUIETLY

# Newer versions of pytest replace longer texts with a number.
_LONGEST_NAME = 100
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


def as_here(word: str) -> str:
    """Return a pytest argument with the path of the checkout replaced by the path of the copy."""
    places = _places()
    return _moved(as_there(word), places[0], places[1][0]) if places else word


def as_there(test: str) -> str:
    """Return a node id from pytest with the path of the copy replaced by the path of the checkout."""
    test = first_name(test)
    places = _places()
    return _moved(test, places[1], places[0][0]) if places else test


def short_name(value: Any) -> Any:
    """Return a text as a name if it is too long for pytest here but short enough in the checkout; else None."""
    places = _places()
    if not places or not isinstance(value, str) or len(value) <= _LONGEST_NAME:
        return None
    there = _moved("::" + value, places[1], os.environ["SWARM_NAMED_IN"])[2:]
    return value if there != value and len(there) <= _LONGEST_NAME else None


def _places() -> Any:
    """Return the spellings of the checkout's path and of the copy's path; None if this is not a copy."""
    checkout = os.environ.get("SWARM_NAMED_IN")
    copy = os.environ.get("SWARM_COPY") or os.environ.get("MNGR_AGENT_WORK_DIR")
    return (_spellings(checkout), _spellings(copy)) if checkout and copy else None


def _spellings(path: str) -> Any:
    """Return a path as pytest shows it in an id, and in its other possible spellings."""
    escaped = path.encode("unicode_escape").decode("ascii")
    return list(dict.fromkeys((escaped, path, os.path.realpath(path))))


def _moved(word: str, old: Any, new: str) -> str:
    file, separator, rest = word.partition("::")
    pattern = "(?:" + "|".join(re.escape(path) for path in old) + r")(?![\w.-])"
    return file + separator + re.sub(pattern, lambda _: new, rest)

"""Runs tests that pytest cannot find by their node id. Python 3.6, the standard library only.

pytest finds a test by the names of the classes and functions that it collects. A plugin may add or rename tests after
that, as SQLAlchemy's does for each database. With the setting `swarm_select`, pytest collects the whole file and
deselects tests with other ids.
"""

import os
from typing import Any

import pytest

from .names import first_name_of
from .report import QUIETLY

SETTING = "swarm_select"
WORDS = ["-o", SETTING + "=true"]


def add_setting(parser: Any) -> None:
    parser.addini(SETTING, "collect whole files and select tests by their ids", type="bool", default=False)


def is_found_by_id(item: Any) -> bool:
    """Return whether pytest finds a collected test by its id."""
    if not hasattr(item, "swarm_first_name"):
        return False
    names = []
    node = item
    while node is not None and not isinstance(node, pytest.File):
        if node.name != "()":
            names.append(node.name)
        node = node.parent
    if node is None:
        return True
    names.reverse()
    # pytest splits an id in the same way.
    rest, bracket, parameters = "::".join(names).partition("[")
    parts = rest.split("::")
    parts[-1] += bracket + parameters
    return parts == names


class SelectById:
    """Keeps only the tests whose ids are on the command line, in a session that collects whole files."""

    def __init__(self, config: Any, started_in: str) -> None:
        self.folder = started_in
        self.wanted: Any = {}
        words = []
        for word in config.args:
            file, _, rest = str(word).partition("::")
            self.wanted.setdefault(self._real(file), set()).add(rest)
            if file not in words:
                words.append(file)
        config.args[:] = words

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, config: Any, items: Any) -> Any:
        yield
        with QUIETLY:
            others = [item for item in items if not self._is_wanted(item)]
            if others:
                items[:] = [item for item in items if self._is_wanted(item)]
                config.hook.pytest_deselected(items=others)

    def _is_wanted(self, item: Any) -> bool:
        selected = self.wanted.get(self._real(str(item.fspath)))
        name = first_name_of(item).partition("::")[2]
        # The command line also has a folder or a whole file.
        return selected is None or any(not rest or _is_part(name, rest) for rest in selected)

    def _real(self, file: str) -> str:
        return os.path.realpath(os.path.join(self.folder, file))


def _is_part(name: str, rest: str) -> bool:
    """Return whether a test has this id, or is a case or a member of it."""
    return name == rest or name.startswith((rest + "[", rest + "::"))

"""Translates node ids that contain a path of the checkout, so that tests have the same id in every copy.

Parameters are often files of a folder, as in `test_it[/home/me/project/data/a.txt]`. In a copy, pytest uses the copy's
path instead. Python 3.6, the standard library only.
"""

import os
import re
from typing import Any

from .first_names import first_name

# Newer versions of pytest replace longer texts with a number.
_LONGEST_NAME = 100


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

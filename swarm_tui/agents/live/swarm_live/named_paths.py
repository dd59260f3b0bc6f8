"""Node ids that hold a path of the checkout: they are named as there, wherever their tests are run.

Parameters are often the files of a folder, so that a test is called `test_it[/home/me/project/data/a.txt]`. In a copy
pytest finds it under the copy's path. Python 3.6, the standard library only.
"""

import os
import re
from typing import Any

from .first_names import first_name

# Newer versions of pytest name a longer text by its number.
_LONGEST_NAME = 100


def as_here(word: str) -> str:
    """Return an argument of pytest with the copy's path in it where it has the checkout's."""
    places = _places()
    return _moved(as_there(word), places[0], places[1][0]) if places else word


def as_there(test: str) -> str:
    """Return a node id as pytest itself made it, with the checkout's path in it where it has the copy's."""
    test = first_name(test)
    places = _places()
    return _moved(test, places[1], places[0][0]) if places else test


def short_name(value: Any) -> Any:
    """Return a text that is too long for pytest to be a name here, if it is short enough in the checkout; else None."""
    places = _places()
    if not places or not isinstance(value, str) or len(value) <= _LONGEST_NAME:
        return None
    there = _moved("::" + value, places[1], os.environ["SWARM_NAMED_IN"])[2:]
    return value if there != value and len(there) <= _LONGEST_NAME else None


def _places() -> Any:
    """Return the spellings of the checkout's path and of the copy's; None when this is no copy."""
    checkout = os.environ.get("SWARM_NAMED_IN")
    copy = os.environ.get("SWARM_COPY") or os.environ.get("MNGR_AGENT_WORK_DIR")
    return (_spellings(checkout), _spellings(copy)) if checkout and copy else None


def _spellings(path: str) -> Any:
    """Return a path as pytest shows it in an id, and as it may stand there otherwise."""
    escaped = path.encode("unicode_escape").decode("ascii")
    return list(dict.fromkeys((escaped, path, os.path.realpath(path))))


def _moved(word: str, old: Any, new: str) -> str:
    file, separator, rest = word.partition("::")
    pattern = "(?:" + "|".join(re.escape(path) for path in old) + r")(?![\w.-])"
    return file + separator + re.sub(pattern, lambda _: new, rest)

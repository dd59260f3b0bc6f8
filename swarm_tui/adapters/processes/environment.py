"""The environment that outside programs are started with: the variables that must not reach them are dropped here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from swarm_tui.model.environment import passed_only
from swarm_tui.model.masking import is_secret_name

_DROPPED_NAMES: Final = frozenset(
    {
        # Another tmux server: mngr would look for its agents there and find them all stopped.
        "TMUX",
        "TMUX_PANE",
        # Set while a git hook runs: git would work on that repository, whatever its folder is.
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_PREFIX",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_QUARANTINE_PATH",
        "GIT_NAMESPACE",
    }
)

NO_BYTECODE: Final = {"PYTHONDONTWRITEBYTECODE": "1"}
"""Python compares the time, in seconds, and the size of a source with its bytecode: a change of equal length within one
second would not be seen."""


def own_environment() -> dict[str, str]:
    """Return our environment without the variables that name another tmux server or another repository."""
    return {name: value for name, value in os.environ.items() if name not in _DROPPED_NAMES}


def scrubbed_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our own environment without pytest's variables and without secrets, and with `extra`.

    mngr's tmux server keeps the environment of the first program that starts it, for every later agent:
    a token is passed on only when the caller names it in `extra`.
    """
    kept = {
        name: value
        for name, value in own_environment().items()
        if not name.startswith("PYTEST_") and not is_secret_name(name)
    }
    return kept | dict(extra or {})


def project_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for programs of a project, which may be an agent's code: allowed names, and `extra`."""
    return passed_only(own_environment(), extra or {}) | dict(extra or {})


def passed_variables(names: Iterable[str]) -> dict[str, str]:
    """Return those of the variables that are set, with their values: the user has named them with `--pass-env`."""
    return {name: os.environ[name] for name in names if name in os.environ}

"""The environments of programs that we start."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from swarm_tui.model.environment import passed_only
from swarm_tui.model.masking import is_secret_name

_DROPPED_NAMES: Final = frozenset(
    {
        # Another tmux server: mngr would not find its agents there and report them as stopped.
        "TMUX",
        "TMUX_PANE",
        # Set during a git hook: git would use that repository in every folder.
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
"""Python compares the time in seconds and the size of a source with its bytecode, so it would not notice a change of
the same length within a second."""


def own_environment() -> dict[str, str]:
    """Return our environment without variables that select another tmux server or another repository."""
    return {name: value for name, value in os.environ.items() if name not in _DROPPED_NAMES}


def scrubbed_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return our environment without pytest's variables and without secrets, but with `extra`.

    mngr's tmux server passes the environment of the first program that starts it to all later agents, so a token is
    passed on only in `extra`.
    """
    kept = {
        name: value
        for name, value in own_environment().items()
        if not name.startswith("PYTEST_") and not is_secret_name(name)
    }
    return kept | dict(extra or {})


def project_environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a project's programs, which may contain code of agents: allowed names, and `extra`."""
    return passed_only(own_environment(), extra or {}) | dict(extra or {})


def passed_variables(names: Iterable[str]) -> dict[str, str]:
    """Return the variables with these names, from `--pass-env`, that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}

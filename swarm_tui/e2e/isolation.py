"""A home, a work folder and an environment that belong to one test alone."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.environment import scrubbed_environment

MARK_NAME: Final = "SWARM_E2E_SESSION"

# Variables that depend on the person, or lead a command out of the test's home.
_DROPPED_NAMES: Final = frozenset(
    (
        *("BASH_ENV", "ENV", "CDPATH", "HISTFILE", "OLDPWD"),
        *("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PY_COLORS"),
        *("EDITOR", "VISUAL", "PAGER", "GIT_EDITOR", "GIT_PAGER", "GIT_CONFIG_GLOBAL"),
        *("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"),
    )
)
_DROPPED_PREFIXES: Final = ("MNGR_", "SWARM_E2E_", "COV_CORE_")


@dataclass(frozen=True, slots=True)
class Isolation:
    """The folders of one test, all below `base`, which is removed after the test."""

    base: Path
    home: Path
    folder: Path
    temporary: Path
    sockets: Path

    @property
    def mark(self) -> str:
        """Return the value that marks the processes of this test."""
        return self.base.name


def make_isolation() -> Isolation:
    """Make the folders of a test; their paths are short, because that of a socket has at most 107 bytes."""
    short = Path("/tmp")
    parent = short if short.is_dir() and os.access(short, os.W_OK) else Path(tempfile.gettempdir())
    base = Path(tempfile.mkdtemp(prefix="swe2e-", dir=parent))
    isolation = Isolation(base, base / "home", base / "work", base / "tmp", base / "s")
    for folder in (isolation.home, isolation.folder, isolation.temporary, isolation.sockets):
        folder.mkdir(mode=0o700)
    return isolation


def isolated_environment(isolation: Isolation, program_folder: Path) -> dict[str, str]:
    """Return the environment of a test's commands: without personal settings, with the test's own folders."""
    environment = {
        name: value
        for name, value in scrubbed_environment().items()
        if name not in _DROPPED_NAMES and not name.startswith(_DROPPED_PREFIXES)
    }
    return environment | {
        "HOME": str(isolation.home),
        "PWD": str(isolation.folder),
        "TMPDIR": str(isolation.temporary),
        "TMUX_TMPDIR": str(isolation.sockets),
        "TERM": "xterm-256color",
        "PATH": _path_with(environment, program_folder),
        "LANG": environment.get("LANG") or "C.UTF-8",
        MARK_NAME: isolation.mark,
    }


def remove_isolation(isolation: Isolation) -> None:
    """Remove the folders of a test, also read-only ones."""
    shutil.rmtree(isolation.base, ignore_errors=True)
    if not isolation.base.exists():
        return
    for folder, _, _ in os.walk(isolation.base):
        os.chmod(folder, stat.S_IRWXU)
    shutil.rmtree(isolation.base, ignore_errors=True)


def _path_with(environment: Mapping[str, str], program_folder: Path) -> str:
    """Return PATH with the folder of the programs that are installed beside the running interpreter."""
    folders = environment.get("PATH", os.defpath).split(os.pathsep)
    if str(program_folder) in folders:
        return os.pathsep.join(folders)
    return os.pathsep.join([str(program_folder), *folders])

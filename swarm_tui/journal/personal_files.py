"""The files of a person outside of any sweep, in XDG folders: the config, which is only read, and what was seen.

`$XDG_CONFIG_HOME/swarm-tui/config.toml` belongs to the person; `$XDG_STATE_HOME/swarm-tui/` is the program's own.
"""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from swarm_tui.errors import JournalError, UsageError
from swarm_tui.journal.folder import SweepFolder, write_beside
from swarm_tui.regular_file import read_regular

SEEN_FILES_KEPT: Final = 500


def config_file(environment: Mapping[str, str] = os.environ) -> Path:
    base = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "swarm-tui" / "config.toml"


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of what the room remembers, of what was seen, and of crash reports."""
    base = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "swarm-tui"


def read_config(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the content of the config file, empty without one; raise UsageError where it cannot be understood."""
    path = config_file(environment)
    try:
        return tomllib.loads(read_regular(path).decode())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read", str(error)) from error


def config_table(config: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    """Return a table of the config, empty when it is not there."""
    table = config.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: [{name}] is no table", "see `swarm-tui open --help`")
    return table


class SeenUpTo(NamedTuple):
    """How far a person has seen a sweep, and when that was."""

    seq: int
    at: float


def read_seen(state: Path, folder: SweepFolder) -> SeenUpTo | None:
    """Return how far the sweep in a folder was seen; None when it never was."""
    try:
        content = json.loads(read_regular(_seen_file(state, folder)))
        seen = SeenUpTo(int(content["seq"]), float(content["at"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return seen if seen.seq >= 0 and 0 <= seen.at < 1e11 else None


def write_seen(state: Path, folder: SweepFolder, seen: SeenUpTo) -> bool:
    """Keep how far a sweep was seen, unless somebody has seen more of it; return whether it could be kept."""
    path = _seen_file(state, folder)
    known = read_seen(state, folder)
    if known is not None and known.seq > seen.seq:
        # Another room of this person is ahead.
        seen = SeenUpTo(known.seq, max(known.at, seen.at))
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            _forget_oldest(path.parent)
        write_beside(path, json.dumps({"folder": str(folder.root), "seq": seen.seq, "at": seen.at}).encode())
    except (OSError, JournalError):
        return False
    return True


def _seen_file(state: Path, folder: SweepFolder) -> Path:
    identity = f"{folder.root.resolve()}\n{_inode(folder.root)}"
    return state / "seen" / f"{hashlib.sha256(identity.encode()).hexdigest()[:20]}.json"


def _inode(path: Path) -> int:
    # A new sweep may get the path of one that was deleted.
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in files[: max(0, len(files) - SEEN_FILES_KEPT)]:
        path.unlink(missing_ok=True)

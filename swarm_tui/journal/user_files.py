"""Files of the user outside of any sweep, in XDG folders: configuration and state.

The user edits `$XDG_CONFIG_HOME/swarm-tui/config.toml`, which swarm-tui only reads. swarm-tui writes its state to
`$XDG_STATE_HOME/swarm-tui/`.
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
from swarm_tui.files import read_regular
from swarm_tui.journal.folder import SweepFolder, write_beside
from swarm_tui.model.text import parse_json

SEEN_FILES_KEPT: Final = 500


def config_file(environment: Mapping[str, str] = os.environ) -> Path:
    base = environment.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return Path(base) / "swarm-tui" / "config.toml"


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the room's settings, the last visits, and crash reports."""
    base = environment.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(base) / "swarm-tui"


def read_config(environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return the content of the config file, which may be missing. Raise UsageError if it is invalid."""
    path = config_file(environment)
    try:
        return tomllib.loads(read_regular(path).decode())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def config_table(config: Mapping[str, Any], name: str, path: Path) -> dict[str, Any]:
    """Return a table of the config; empty if it is missing."""
    table = config.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"[{name}] in {path} must be a table", "see `swarm-tui open --help`")
    return table


class LastVisit(NamedTuple):
    """The last event that the user saw in a sweep, and the time of that visit."""

    seq: int
    at: float


def read_seen(state: Path, folder: SweepFolder) -> LastVisit | None:
    """Return the last visit to a sweep; None if there was none."""
    try:
        content = parse_json(read_regular(_seen_file(state, folder)))
        seen = LastVisit(int(content["seq"]), float(content["at"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None
    return seen if seen.seq >= 0 and 0 <= seen.at < 1e11 else None


def write_seen(state: Path, folder: SweepFolder, seen: LastVisit) -> bool:
    """Save the last visit to a sweep. Return whether it could be saved."""
    path = _seen_file(state, folder)
    last = read_seen(state, folder)
    if last is not None and last.seq > seen.seq:
        # Another room of this user has seen more.
        seen = LastVisit(last.seq, max(last.at, seen.at))
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
    # A new sweep can have the path of a deleted one.
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _forget_oldest(folder: Path) -> None:
    files = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in files[: max(0, len(files) - SEEN_FILES_KEPT)]:
        path.unlink(missing_ok=True)

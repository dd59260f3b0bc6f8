"""Everything of a checkout at one moment, to find what a sweep has changed in it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

# What a sweep says that it makes: its folder, its refs, its branches, the objects of their commits.
ANNOUNCED: Final = (
    ".swarm",
    ".git/objects",
    ".git/refs/swarm",
    ".git/refs/swarm-fetched",
    ".git/refs/swarm-held",
    ".git/refs/heads/swarm",
    ".git/logs/refs/swarm",
    ".git/logs/refs/heads/swarm",
    # git's own, when it gathers refs: what they say is compared by `refs`.
    ".git/packed-refs",
)
# Folders whose own time says only that something in them was made and is announced.
_PARENTS: Final = frozenset(
    {"", ".git", ".git/refs", ".git/refs/heads", ".git/logs", ".git/logs/refs", ".git/logs/refs/heads"}
)


def state_of(top: Path) -> dict[str, str]:
    """Return kind, mode, time and content of every file below the top of a repository, but for what is announced."""
    found = {}
    for name, path in _walk(top):
        status = path.lstat()
        kind = stat.filemode(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            found[name] = f"{kind} -> {os.readlink(path)}"
        elif stat.S_ISREG(status.st_mode):
            found[name] = f"{kind} {status.st_mtime_ns} {_digest(path)}"
        elif name in _PARENTS:
            found[name] = kind
        else:
            found[name] = f"{kind} {status.st_mtime_ns}"
    return found


def changes_between(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return what was made, removed or changed, and how."""
    changes = []
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            changes.append(f"made {name}")
        elif name not in after:
            changes.append(f"removed {name}")
        elif before[name] != after[name]:
            # Kind and mode, then the time, then the content.
            old, new = before[name].split(" ", 2), after[name].split(" ", 2)
            is_same = (old[0], old[2:]) == (new[0], new[2:])
            # A plugin of the project may ask git what has changed, which then writes the same index anew.
            if is_same and name == ".git/index":
                continue
            changes.append(f"{'touched' if is_same else 'changed'} {name}")
    return changes


def _walk(top: Path) -> Iterator[tuple[str, Path]]:
    yield "", top
    for folder, folders, files in os.walk(top):
        below = os.path.relpath(folder, top)
        prefix = "" if below == "." else f"{below}/"
        folders[:] = sorted(name for name in folders if f"{prefix}{name}" not in ANNOUNCED)
        for name in [*folders, *sorted(files)]:
            if f"{prefix}{name}" not in ANNOUNCED:
                yield f"{prefix}{name}", Path(folder, name)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]

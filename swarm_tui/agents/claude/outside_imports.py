"""Finds the files outside of a project that its CLAUDE.md imports.

Claude Code asks at its start whether it may read them, so that a sweep would stand still; the agents do without them.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

MEMORY_PATHS: Final = ("CLAUDE.md", ".claude/CLAUDE.md")
FILES_LIMIT: Final = 50
_IMPORT: Final = re.compile(r"(?:^|\s)@((?:[^\s\\]|\\ )+)")
_PATH: Final = re.compile(r"[\w.][\w./ +-]*")


def outside_imports(read: Callable[[str], bytes]) -> tuple[str, ...]:
    """Return the paths outside of a project that it imports, as written there; `read` returns one of its files."""
    outside: dict[str, None] = {}
    waiting = deque(MEMORY_PATHS)
    seen = set(waiting)
    while waiting:
        path = waiting.popleft()
        for found in _IMPORT.findall(read(path).decode("utf-8", "replace")):
            name = found.replace("\\ ", " ")
            if name.startswith(("/", "~/")):
                outside[name] = None
                continue
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            # Beside a copy there is nothing that could be imported.
            if not inside.startswith("../") and _PATH.fullmatch(inside) and inside not in seen:
                seen.add(inside)
                if len(seen) <= FILES_LIMIT:
                    waiting.append(inside)
    return tuple(outside)


def exclusion_patterns(imports: tuple[str, ...]) -> list[str]:
    """Return the patterns by which Claude Code leaves these files out, on this machine and on others."""
    patterns: list[str] = []
    for name in imports:
        if name.startswith("~/"):
            patterns += [str(Path.home() / name[2:]), f"/{{root,home/*,Users/*}}/{name[2:]}"]
        else:
            patterns.append(name)
    return patterns

"""Patterns of relative paths, by which files in an agent's folders are named."""

from __future__ import annotations

from fnmatch import fnmatchcase


def fits_pattern(path: str, pattern: str) -> bool:
    """Return whether a path fits a pattern part by part: `*` stands for no slash."""
    parts, patterns = path.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))

"""Reads Python that others wrote, without running it and without being ended by it."""

from __future__ import annotations

import ast
from typing import Final

_LARGEST: Final = 1_000_000
_DEEPEST: Final = 100
"""Levels of syntax: what goes through a tree by recursion, as `ast` does, comes to its limit beyond some hundreds."""


def read_python(source: bytes | str) -> ast.Module | None:
    """Return the syntax tree of a file, or None when it is no Python that can be read."""
    if len(source) > _LARGEST:
        return None
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return None if _is_too_deep(module) else module


def _is_too_deep(module: ast.Module) -> bool:
    level: list[ast.AST] = [module]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return bool(level)

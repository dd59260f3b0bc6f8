"""Removes tests from the source of a test file, with their decorators and the comments above them. Pure."""

from __future__ import annotations

import ast
from collections.abc import Collection

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def without_tests(source: bytes, names: Collection[str]) -> bytes | None:
    """Return the source without the tests (`name` or `Class::name`); None when nothing else is left.

    A class that loses its last test goes as well.
    """
    tree = ast.parse(source)
    lines = source.splitlines(keepends=True)
    removed: list[ast.stmt] = []
    _find(tree.body, "", frozenset(names), removed)
    gone: set[int] = set()
    for node in removed:
        first = min([node.lineno, *(each.lineno for each in _decorators(node))])
        while first > 1 and lines[first - 2].lstrip().startswith(b"#"):
            first -= 1
        last = node.end_lineno or node.lineno
        gone.update(range(first, last + 1))
        # The empty lines above a test go with it: else they would add to those of the next one.
        while first > 1 and not lines[first - 2].strip():
            first -= 1
            gone.add(first)
    left = [node for node in tree.body if node not in removed]
    if all(_is_preamble(node) for node in left):
        return None
    return b"".join(line for number, line in enumerate(lines, 1) if number not in gone)


def _find(body: list[ast.stmt], prefix: str, names: frozenset[str], removed: list[ast.stmt]) -> None:
    for node in body:
        if isinstance(node, _Function) and prefix + node.name in names:
            removed.append(node)
        elif isinstance(node, ast.ClassDef):
            below: list[ast.stmt] = []
            _find(node.body, f"{prefix}{node.name}::", names, below)
            kept = [each for each in node.body if each not in below]
            is_empty = all(_is_preamble(each) for each in kept)
            removed += [node] if below and is_empty else below


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, _Function | ast.ClassDef) else []


def _is_preamble(node: ast.stmt) -> bool:
    """Return whether a statement alone makes no test file: a docstring, an import, `pass`."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)

"""Takes tests out of the source of a test file, with their decorators and the comments above them. Pure."""

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
    doomed: list[ast.stmt] = []
    _find(tree.body, "", frozenset(names), doomed)
    gone: set[int] = set()
    for node in doomed:
        first = min([node.lineno, *(each.lineno for each in _decorators(node))])
        while first > 1 and lines[first - 2].lstrip().startswith(b"#"):
            first -= 1
        last = node.end_lineno or node.lineno
        gone.update(range(first, last + 1))
        # The empty lines above a function are its own; without them two others would drift apart.
        while first > 1 and not lines[first - 2].strip():
            first -= 1
            gone.add(first)
    left = [node for node in tree.body if node not in doomed]
    if all(_is_preamble(node) for node in left):
        return None
    return b"".join(line for number, line in enumerate(lines, 1) if number not in gone)


def _find(body: list[ast.stmt], prefix: str, names: frozenset[str], doomed: list[ast.stmt]) -> None:
    for node in body:
        if isinstance(node, _Function) and prefix + node.name in names:
            doomed.append(node)
        elif isinstance(node, ast.ClassDef):
            below: list[ast.stmt] = []
            _find(node.body, f"{prefix}{node.name}::", names, below)
            kept = [each for each in node.body if each not in below]
            is_empty = all(_is_preamble(each) for each in kept)
            doomed += [node] if below and is_empty else below


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return node.decorator_list if isinstance(node, _Function | ast.ClassDef) else []


def _is_preamble(node: ast.stmt) -> bool:
    """Whether a statement says nothing by itself: a docstring, an import, `pass`."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return is_text or isinstance(node, ast.Import | ast.ImportFrom | ast.Pass)

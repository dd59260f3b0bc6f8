"""Makes small faults in a program's source, such as a `<` that became `<=`. Pure.

A fault replaces a piece of one line or statement, so that the rest of the file stays as it is, to the byte.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from swarm_tui.model.python_source import read_python
from swarm_tui.model.text import plain

_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
_TEXT_LIMIT: Final = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """A piece of a file that is replaced by another."""

    path: str
    line: int
    start: int
    """Bytes from the beginning of the file."""
    end: int
    piece: bytes
    text: str = ""
    """Such as "shelf.py:12 `<` became `<=`"; harmless to show."""

    @property
    def order(self) -> str:
        """Return a key by which faults are in the same order, well mixed, in every run."""
        return hashlib.sha256(f"{self.path}\0{self.line}\0{self.text}".encode(errors="replace")).hexdigest()


def faults_in(path: str, source: bytes, lines: Collection[int]) -> list[Fault]:
    """Return the faults that can be made in these lines of a file."""
    module = read_python(source)
    if module is None:
        return []
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    wanted = frozenset(lines)
    found: dict[tuple[int, int, bytes], Fault] = {}
    for node, piece in _replacements(module):
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if first not in wanted or last >= len(starts):
            continue
        start, end = starts[first - 1] + node.col_offset, starts[last - 1] + (node.end_col_offset or 0)
        was = source[start:end]
        if was == piece:
            continue
        text = f"{path}:{first} {_short(was)} became {_short(piece)}"
        found[start, end, piece] = Fault(path, first, start, end, piece, plain(text, 300))
    return list(found.values())


def with_faults(source: bytes, faults: Iterable[Fault]) -> bytes:
    """Return a file with some faults, none of which lies within another."""
    for fault in sorted(faults, key=lambda each: each.start, reverse=True):
        source = source[: fault.start] + fault.piece + source[fault.end :]
    return source


def _short(piece: bytes) -> str:
    text = " ".join(piece.decode("utf-8", "replace").split())
    return f"`{text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + '…'}`"


Replaceable = ast.expr | ast.stmt


def _replacements(module: ast.Module) -> Iterator[tuple[Replaceable, bytes]]:
    """Return pieces of the source, each with what may stand in its place."""
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for number, statement in enumerate(function.body):
                is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                if not (number == 0 and is_text):
                    yield from _in_statement(statement)


def _in_statement(statement: ast.stmt) -> Iterator[tuple[Replaceable, bytes]]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return  # met by itself
        case ast.If() | ast.While():
            yield statement.test, f"(not ({ast.unparse(statement.test)}))".encode()
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield value, b"None"
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.Raise() | ast.AugAssign() | ast.Delete():
            yield statement, b"pass"
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield statement, b"pass"
        case ast.Continue():
            yield statement, b"break"
        case ast.Break():
            yield statement, b"continue"
        case _:
            pass
    for name, value in ast.iter_fields(statement):
        if name == "annotation":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.stmt):
                yield from _in_statement(child)
            elif isinstance(child, ast.expr):
                yield from _in_expression(child)
            elif isinstance(child, ast.ExceptHandler | ast.match_case):
                for inner in child.body:
                    yield from _in_statement(inner)
            elif isinstance(child, ast.withitem):
                yield from _in_expression(child.context_expr)


def _in_expression(node: ast.expr) -> Iterator[tuple[ast.expr, bytes]]:
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
            yield node, f"({left} {_COMPARISONS[type(operator)]} {right})".encode()
        case ast.BoolOp():
            other = ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
            yield node, f"({ast.unparse(other)})".encode()
        case ast.UnaryOp(op=ast.Not()):
            yield node, f"(bool({ast.unparse(node.operand)}))".encode()
        case ast.BinOp(op=operator) if type(operator) in _OPERATORS and not _is_text(node):
            other_sum = ast.BinOp(node.left, _OPERATORS[type(operator)](), node.right)
            yield node, f"({ast.unparse(other_sum)})".encode()
        case ast.Constant(value=bool() as value):
            yield node, str(not value).encode()
        case ast.Constant(value=int() | float() as value):
            yield node, repr(value + 1).encode()
        case ast.Constant(value=str() as value) if value:
            yield node, repr(f"{value}~").encode("utf-8", "replace")
        case _:
            pass
    # The places of what is within an f-string are not those in the file.
    if isinstance(node, ast.JoinedStr | ast.Lambda):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from _in_expression(child)
        elif isinstance(child, ast.keyword):
            yield from _in_expression(child.value)
        elif isinstance(child, ast.comprehension):
            yield from _in_expression(child.iter)
            for condition in child.ifs:
                yield condition, f"(not ({ast.unparse(condition)}))".encode()
                yield from _in_expression(condition)


def _is_text(node: ast.BinOp) -> bool:
    """Return whether an operator joins or formats text: a fault there is only an exception."""
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )

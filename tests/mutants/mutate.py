"""Small faults in a module: one comparison, guard, statement, argument or constant is made wrong at a time."""

from __future__ import annotations

import ast
import copy
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_OPPOSITE_FUNCTIONS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_LEAVING: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, order=True)
class Mutant:
    """One fault: what stands between two places of the source is replaced."""

    line: int
    start: int
    end: int
    """Offsets in the source, in bytes, as `ast` counts columns."""
    replacement: str
    kind: str

    def apply(self, source: str) -> str:
        """Return the source with this fault."""
        encoded = source.encode()
        return (encoded[: self.start] + self.replacement.encode() + encoded[self.end :]).decode()


def find_mutants(source: str) -> list[Mutant]:
    """Return every fault that is made of a source, in the order of its lines; each leaves it a valid program."""
    return [mutant for mutant in _candidates(source) if _is_program(mutant.apply(source))]


def choose_mutants(source: str, limit: int, seed: str) -> list[Mutant]:
    """Return as many mutants as the limit allows, the same ones for the same source and seed."""
    shuffled = _candidates(source)
    random.Random(seed).shuffle(shuffled)
    valid = (mutant for mutant in shuffled if _is_program(mutant.apply(source)))
    return sorted(itertools.islice(valid, limit))


def _candidates(source: str) -> list[Mutant]:
    starts = _line_starts(source)
    found = set()
    for node, replacement, kind in _replacements(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        text = ast.unparse(ast.fix_missing_locations(replacement)) if replacement else "pass"
        if text == ast.unparse(node):
            continue
        if isinstance(node, ast.expr):
            text = f"({text})"
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        found.add(Mutant(node.lineno, start, end, text.replace("\n", "\n" + " " * node.col_offset), kind))
    return sorted(found)


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _is_program(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


_Replacement = tuple[ast.expr | ast.stmt, ast.AST | None, str]
"""What is replaced, by what (None: by `pass`), and the name of the fault."""


def _replacements(tree: ast.Module) -> Iterator[_Replacement]:
    for node in _running_nodes(tree):
        if isinstance(node, ast.stmt):
            yield from _of_statement(node)
        elif isinstance(node, ast.expr):
            yield from _of_expression(node)


def _running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Return what is run when a function is called: no annotations, decorators, asserts, messages of exceptions."""
    match node:
        case ast.Assert() | ast.Import() | ast.ImportFrom() | ast.JoinedStr():
            return
        case ast.Raise():
            yield node
            return
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.AnnAssign(value=value):
            yield node
            children: list[ast.AST] = [value] if value else []
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            defaults = [default for default in [*node.args.defaults, *node.args.kw_defaults] if default]
            children = [*defaults, *node.body]
        case ast.ClassDef():
            children = [statement for statement in node.body if isinstance(statement, ast.FunctionDef)]
            children += [statement for statement in node.body if isinstance(statement, ast.AsyncFunctionDef)]
        case ast.Subscript(value=ast.Name(id="Literal" | "Callable" | "dict" | "list" | "tuple" | "Mapping")):
            return
        case _:
            if isinstance(node, (ast.stmt, ast.expr)):
                yield node
            children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _running_nodes(child)


def _of_statement(node: ast.stmt) -> Iterator[_Replacement]:
    match node:
        case ast.If(body=body, orelse=orelse):
            if not orelse and isinstance(body[-1], _LEAVING):
                yield node, None, "guard removed"
            elif orelse:
                yield node, _with(node, body=orelse, orelse=body), "branches swapped"
            else:
                yield node, None, "branch removed"
        case ast.Expr(value=ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom()):
            yield node, None, "statement dropped"
        case ast.AugAssign():
            yield node, None, "statement dropped"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]) | ast.Delete():
            yield node, None, "statement dropped"
        case ast.Return(value=ast.expr() as value) if not _is_nothing(value):
            yield node, ast.Return(ast.Constant(None)), "returns None"
        case ast.Break():
            yield node, ast.Continue(), "break and continue swapped"
        case ast.Continue():
            yield node, ast.Break(), "break and continue swapped"


def _of_expression(node: ast.expr) -> Iterator[_Replacement]:
    match node:
        case ast.Compare(ops=[operator, *others]) if type(operator) in _COMPARISONS:
            yield node, _with(node, ops=[_COMPARISONS[type(operator)](), *others]), "comparison swapped"
        case ast.BoolOp(op=operator, values=[first, *rest]):
            other = ast.And() if isinstance(operator, ast.Or) else ast.Or()
            yield node, _with(node, op=other), "and and or swapped"
            yield node, first, "condition dropped"
            yield node, _with(node, values=rest) if len(rest) > 1 else rest[0], "condition dropped"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, operand, "negation removed"
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield node, operand, "sign removed"
        case ast.IfExp(body=body, orelse=orelse):
            yield node, _with(node, body=orelse, orelse=body), "branches swapped"
        case ast.Constant(value=bool() as value):
            yield node, ast.Constant(not value), "constant changed"
        case ast.Constant(value=int() as value):
            yield node, ast.Constant(value + 1), "constant changed"
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC and not _is_text(node):
            yield node, _with(node, op=_ARITHMETIC[type(operator)]()), "arithmetic changed"
        case ast.Call(func=ast.Name(id=name)) if name in _OPPOSITE_FUNCTIONS:
            yield node, _with(node, func=ast.Name(_OPPOSITE_FUNCTIONS[name])), "opposite called"
        case ast.Call(args=[first, second, *rest]) if not isinstance(first, ast.Starred | ast.Lambda):
            if not isinstance(second, ast.Starred) and ast.dump(first) != ast.dump(second):
                yield node, _with(node, args=[second, first, *rest]), "arguments swapped"
        case ast.Call(args=[only], keywords=[], func=ast.Name(id="sorted" | "reversed" | "set" | "frozenset")):
            yield node, only, "call dropped"
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for place, generator in enumerate(node.generators):
                for condition in generator.ifs:
                    kept = [other for other in generator.ifs if other is not condition]
                    generators = list(node.generators)
                    generators[place] = ast.comprehension(
                        generator.target, generator.iter, kept, is_async=generator.is_async
                    )
                    yield node, _with(node, generators=generators), "filter dropped"
        case ast.Slice() | ast.Name() | ast.Attribute() | _:
            return


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr | ast.List | ast.Tuple) for side in sides) or any(
        isinstance(side, ast.Constant) and isinstance(side.value, str | bytes) for side in sides
    )


def _with(node: ast.AST, **changes: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in changes.items():
        setattr(changed, name, value)
    return changed


def _is_nothing(value: ast.expr) -> bool:
    """Return whether a value is None, or False, which is the same wherever it is asked for."""
    return isinstance(value, ast.Constant) and (value.value is None or value.value is False)

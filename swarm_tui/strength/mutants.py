"""Small faults, grouped into rounds."""

from __future__ import annotations

import ast
import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.model.text import plain, read_python
from swarm_tui.testing.traced import Place

_COMPARISONS: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
_OPERATORS: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
_TEXT_LIMIT: Final = 60


@dataclass(frozen=True, slots=True)
class Mutant:
    """A replacement of one piece of a file."""

    path: str
    line: int
    start: int
    """Offset in bytes from the beginning of the file."""
    end: int
    piece: bytes
    text: str = ""
    """For example "shelf.py:12 `<` became `<=`", sanitized for display."""

    @property
    def order(self) -> str:
        """Return a sort key that mixes mutants in the same way in every run."""
        return hashlib.sha256(f"{self.path}\0{self.line}\0{self.text}".encode(errors="replace")).hexdigest()


def mutants_of(path: str, source: bytes, lines: Collection[int]) -> list[Mutant]:
    """Return the possible mutants in these lines of a file."""
    module = read_python(source)
    if module is None:
        return []
    starts = [0]
    for row in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(row))
    line_set = frozenset(lines)
    found: dict[tuple[int, int, bytes], Mutant] = {}
    for node, piece in _replacements(module):
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
        if first not in line_set or last >= len(starts):
            continue
        start, end = starts[first - 1] + node.col_offset, starts[last - 1] + (node.end_col_offset or 0)
        original = source[start:end]
        if original == piece:
            continue
        text = f"{path}:{first} {_short(original)} became {_short(piece)}"
        found[start, end, piece] = Mutant(path, first, start, end, piece, plain(text, 300))
    return list(found.values())


def apply_mutants(source: bytes, faults: Iterable[Mutant]) -> bytes:
    """Return a file with some mutants applied; they must not overlap."""
    for fault in sorted(faults, key=lambda each: each.start, reverse=True):
        source = source[: fault.start] + fault.piece + source[fault.end :]
    return source


def _short(piece: bytes) -> str:
    text = " ".join(piece.decode("utf-8", "replace").split())
    return f"`{text if len(text) <= _TEXT_LIMIT else text[: _TEXT_LIMIT - 1] + '…'}`"


Replaceable = ast.expr | ast.stmt


def _replacements(module: ast.Module) -> Iterator[tuple[Replaceable, bytes]]:
    """Return pieces of the source, each with its replacement."""
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for number, statement in enumerate(function.body):
                is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                if not (number == 0 and is_text):
                    yield from _in_statement(statement)


def _in_statement(statement: ast.stmt) -> Iterator[tuple[Replaceable, bytes]]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return  # visited separately
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
    # Positions inside an f-string do not match positions in the file.
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
    """Return whether an operator joins or formats text, where a mutant would only raise an exception."""
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


FAULTS_EACH: Final = 20


@dataclass(slots=True)
class MutantRound:
    """Mutants that are tried at once, each with the tests that should detect it."""

    tests: dict[Mutant, list[str]] = field(default_factory=dict)

    @property
    def all_tests(self) -> list[str]:
        return list(dict.fromkeys(test for tests in self.tests.values() for test in tests))

    def by_file(self) -> dict[str, list[Mutant]]:
        found: dict[str, list[Mutant]] = defaultdict(list)
        for fault in self.tests:
            found[fault.path].append(fault)
        return found


def choose_mutants(faults: Sequence[Mutant], covered: Mapping[str, Collection[Place]]) -> dict[str, list[Mutant]]:
    """Return mutants in the lines that each test covers: one of every line before the second of any line.

    The order is the same for all tests, so that tests that cover the same lines get the same mutants.
    """
    ordered: list[tuple[int, str, Mutant]] = []
    number: dict[Place, int] = defaultdict(int)
    for fault in sorted(faults, key=lambda each: each.order):
        place = (fault.path, fault.line)
        ordered.append((number[place], fault.order, fault))
        number[place] += 1
    ordered.sort(key=lambda item: item[:2])
    return {
        test: [fault for _, _, fault in ordered if (fault.path, fault.line) in places][:FAULTS_EACH]
        for test, places in covered.items()
    }


def plan_rounds(chosen: Mapping[str, Sequence[Mutant]], covered: Mapping[str, Collection[Place]]) -> list[MutantRound]:
    """Return the rounds for all chosen mutants; the first mutants of every test come first."""
    tests: dict[Mutant, list[str]] = defaultdict(list)
    urgency: dict[Mutant, int] = {}
    for test, faults in chosen.items():
        for place, fault in enumerate(faults):
            tests[fault].append(test)
            urgency[fault] = min(place, urgency.get(fault, place))
    rounds: list[MutantRound] = []
    for fault in sorted(tests, key=lambda each: (urgency[each], -len(tests[each]), each.order)):
        fitting = (each for each in rounds if all(_are_apart(fault, tests, other, covered) for other in each.tests))
        found = next(fitting, None)
        if found is None:
            found = MutantRound()
            rounds.append(found)
        found.tests[fault] = tests[fault]
    return rounds


def _are_apart(
    fault: Mutant, tests: Mapping[Mutant, Sequence[str]], other: Mutant, covered: Mapping[str, Collection[Place]]
) -> bool:
    """Return whether no test covers both mutants, and both can be applied to one file."""
    if fault.path == other.path and fault.start < other.end and other.start < fault.end:
        return False
    return not any((other.path, other.line) in covered[test] for test in tests[fault]) and not any(
        (fault.path, fault.line) in covered[test] for test in tests[other]
    )

"""What a test checks, as its source says: assertions, expected exceptions, calls that check. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from swarm_tui.teeth.sources import TestSource

_CHECKING_CALL: Final = re.compile(
    r"^_*(assert|expect|verify|check|ensure|should|must|to_|not_to_|fail\b)", re.IGNORECASE
)
_ACCEPTING: Final = frozenset(
    {"raises", "warns", "assertRaises", "assertRaisesRegex", "deprecated_call", "assertWarns"}
)
_CAUGHT: Final = frozenset({"AssertionError", "Exception", "BaseException", ""})


@dataclass(frozen=True, slots=True)
class Assertion:
    """One thing that a test checks."""

    node: ast.expr
    """The condition, the call that checks, or the context that expects an exception."""
    line: int
    is_conditional: bool = False
    is_swallowed: bool = False
    is_unreachable: bool = False

    @property
    def text(self) -> str:
        return ast.unparse(self.node)

    @property
    def is_exception(self) -> bool:
        return called_name(self.node) in _ACCEPTING


def called_name(node: ast.AST) -> str:
    """Return the last name of what is called: `raises` of `pytest.raises(...)`, or ""."""
    function = node.func if isinstance(node, ast.Call) else None
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def checks_of(test: TestSource) -> list[Assertion]:
    """Return what a test checks, with the checks of the functions of its file that it uses."""
    found = list(_checks_in(test.node.body))
    for helper in test.helpers:
        found += _checks_in(helper.body)
    return found


def _checks_in(
    body: Sequence[ast.stmt], *, is_conditional: bool = False, is_swallowed: bool = False, is_unreachable: bool = False
) -> Iterator[Assertion]:
    for statement in body:
        yield from _checks_of_statement(statement, is_conditional, is_swallowed, is_unreachable)
        if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break) or _ends_test(statement):
            is_unreachable = True


def _checks_of_statement(
    statement: ast.stmt, is_conditional: bool, is_swallowed: bool, is_unreachable: bool
) -> Iterator[Assertion]:
    def below(
        body: Sequence[ast.stmt], *, conditional: bool = False, swallowed: bool = False, never: bool = False
    ) -> Iterator[Assertion]:
        return _checks_in(
            body,
            is_conditional=is_conditional or conditional,
            is_swallowed=is_swallowed or swallowed,
            is_unreachable=is_unreachable or never,
        )

    def made(node: ast.expr) -> Assertion:
        return Assertion(node, statement.lineno, is_conditional, is_swallowed, is_unreachable)

    match statement:
        case ast.Assert():
            yield from (made(part) for part in _conjuncts(statement.test))
        case ast.Expr(value=ast.Await(value=ast.Call() as call)) | ast.Expr(value=ast.Call() as call):
            if _is_check(call):
                yield made(call)
        case ast.With() | ast.AsyncWith():
            suppresses = False
            for item in statement.items:
                name = called_name(item.context_expr)
                suppresses = suppresses or (name == "suppress" and _catches(_arguments(item.context_expr)))
                if name in _ACCEPTING:
                    yield made(item.context_expr)
            yield from below(statement.body, swallowed=suppresses)
        case ast.If():
            never, always = _truth(statement.test) is False, _truth(statement.test) is True
            yield from below(statement.body, conditional=not always, never=never)
            yield from below(statement.orelse, conditional=not never, never=always)
        case ast.Try():
            swallowed = any(_swallows(handler) for handler in statement.handlers)
            yield from below(statement.body, swallowed=swallowed)
            for handler in statement.handlers:
                yield from below(handler.body, conditional=True)
            yield from below(statement.orelse, swallowed=False)
            yield from below(statement.finalbody)
        case ast.For() | ast.AsyncFor() | ast.While():
            never = isinstance(statement, ast.While) and _truth(statement.test) is False
            yield from below(
                statement.body, never=never or (isinstance(statement, ast.For) and _is_empty(statement.iter))
            )
            yield from below(statement.orelse)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield from below(statement.body)
        case _:
            return


def _conjuncts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _conjuncts(value)]
    return [node]


def _is_check(call: ast.Call) -> bool:
    """Return whether a call checks something by its name, itself or in a chain such as `expect(x).to_be(3)`."""
    node: ast.AST = call
    while isinstance(node, ast.Call | ast.Attribute):
        if isinstance(node, ast.Call) and _CHECKING_CALL.match(called_name(node)):
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _ends_test(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and called_name(statement.value) in ("skip", "xfail", "exit", "_exit")


def _arguments(node: ast.expr) -> list[ast.expr]:
    return node.args if isinstance(node, ast.Call) else []


def _catches(types: Sequence[ast.expr | None]) -> bool:
    """Return whether one of these exception types takes a failed assertion."""
    for each in types:
        parts = each.elts if isinstance(each, ast.Tuple) else [each]
        names = {ast.unparse(part).rpartition(".")[2] if part is not None else "" for part in parts}
        if names & _CAUGHT:
            return True
    return False


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler takes a failed assertion and goes on."""
    if not _catches([handler.type]):
        return False
    fails = any(
        isinstance(node, ast.Raise | ast.Assert) or (isinstance(node, ast.Call) and called_name(node) == "fail")
        for statement in handler.body
        for node in ast.walk(statement)
    )
    return not fails


def _truth(node: ast.expr) -> bool | None:
    """Return the truth of a condition that is a constant, else None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _truth(node.operand)
        return None if inner is None else not inner
    return bool(node.value) if isinstance(node, ast.Constant) else None


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.Tuple | ast.Set) and not node.elts

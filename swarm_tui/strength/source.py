"""Tests and their checks in Python source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.model.text import read_python

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class TestSource:
    """One test of a file, and the code of that file that it uses."""

    __test__ = False

    name: str
    """For example `TestShelf::test_add`."""
    node: FunctionNode
    helpers: tuple[FunctionNode, ...] = ()
    """Functions and fixtures of the same file that it uses directly or indirectly."""
    marks: tuple[ast.expr, ...] = ()
    """The decorators of the test and its classes, and the marks of the file."""
    values: tuple[ast.stmt, ...] = field(default=(), compare=False)
    """The other statements of the file that it uses."""

    @property
    def key(self) -> str:
        """Return a key that is the same as long as the test does the same, regardless of its position."""
        parts = [_dump(self.node), *sorted(_dump(helper) for helper in self.helpers)]
        parts += [ast.dump(mark) for mark in self.marks] + sorted(ast.dump(value) for value in self.values)
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class ChangedTest:
    """A test before and after a change; one of them may be missing."""

    file: str
    name: str
    after: TestSource | None
    file_before: str = ""
    before: TestSource | None = None

    @property
    def is_changed(self) -> bool:
        """Whether it does something else than before, or is new or gone."""
        return self.before is None or self.after is None or self.after.key != self.before.key

    @property
    def is_renamed(self) -> bool:
        """Whether its id disappeared because it was renamed, moved or merged with another test."""
        is_both = self.before is not None and self.after is not None
        return is_both and (self.file, self.name) != (self.file_before, self.before.name if self.before else "")


def read_tests(source: bytes) -> dict[str, TestSource]:
    """Return the tests of a file by name."""
    module = read_python(source)
    if module is None:
        return {}
    functions: dict[str, FunctionNode] = {}
    values: dict[str, ast.stmt] = {}
    for statement in module.body:
        if isinstance(statement, FunctionNode):
            functions[statement.name] = statement
        elif not isinstance(statement, ast.ClassDef | ast.Import | ast.ImportFrom):
            for name in _names_set_by(statement):
                values[name] = statement
    file_marks = [_value_of(values["pytestmark"])] if "pytestmark" in values else []
    found: dict[str, TestSource] = {}
    for prefix, bound, node, marks, methods in _test_nodes(module.body, file_marks):
        used = _used_functions(node, {**functions, **methods})
        names = {name for each in (node, *used) for name in _names_in(each)}
        held = {id(values[name]): values[name] for name in sorted(names) if name in values and name != "pytestmark"}
        name = f"{prefix}{bound}"
        found[name] = TestSource(name, node, used, (*marks, *node.decorator_list), tuple(held.values()))
    return found


def _test_nodes(
    body: Iterable[ast.stmt], marks: list[ast.expr], prefix: str = "", methods: Mapping[str, FunctionNode] | None = None
) -> Iterator[tuple[str, str, FunctionNode, list[ast.expr], Mapping[str, FunctionNode]]]:
    for name, (node, more) in _bound_tests(body).items():
        yield prefix, name, node, [*marks, *more], methods or {}
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            own = {item.name: item for item in statement.body if isinstance(item, FunctionNode)}
            class_marks = [
                _value_of(item) for item in statement.body if "pytestmark" in _names_set_by(item)
            ]  # a class may have marks as decorators and as `pytestmark`
            inner = [*marks, *statement.decorator_list, *class_marks]
            yield from _test_nodes(statement.body, inner, f"{prefix}{statement.name}::", own)


def _bound_tests(body: Iterable[ast.stmt]) -> dict[str, tuple[FunctionNode, list[ast.expr]]]:
    """Return the functions that test names refer to at the end of a module or class, with marks that were added later.

    A test that is deleted, disabled by `__test__` or rebound to something else than a function is not collected.
    """
    functions: dict[str, FunctionNode] = {}
    found: dict[str, tuple[FunctionNode, list[ast.expr]]] = {}
    for statement in body:
        if isinstance(statement, FunctionNode):
            functions[statement.name] = statement
            if statement.name.startswith("test"):
                found[statement.name] = statement, []
        elif isinstance(statement, ast.Delete):
            for target in statement.targets:
                found.pop(ast.unparse(target), None)
        elif isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for name in map(ast.unparse, targets):
                is_off = isinstance(statement.value, ast.Constant) and not statement.value.value
                if name == "__test__" and is_off:
                    return {}
                if name.endswith(".__test__") and is_off:
                    found.pop(name.removesuffix(".__test__"), None)
                elif name.isidentifier() and name.startswith("test"):
                    bound = _function_bound(name, statement.value, functions, found.get(name))
                    found.pop(name, None)
                    found |= {name: bound} if bound is not None else {}
    return found


def _function_bound(
    name: str,
    value: ast.expr,
    functions: Mapping[str, FunctionNode],
    known: tuple[FunctionNode, list[ast.expr]] | None,
) -> tuple[FunctionNode, list[ast.expr]] | None:
    """Return the function in a value: a lambda, another function of the file, or the same test with a mark."""
    if isinstance(value, ast.Lambda):
        function = ast.parse("def test(): pass").body[0]
        assert isinstance(function, ast.FunctionDef)
        function.name, function.args, function.body = name, value.args, [ast.copy_location(ast.Expr(value.body), value)]
        return ast.copy_location(function, value), []
    if isinstance(value, ast.Name) and value.id in functions:
        return functions[value.id], []
    if known is not None and isinstance(value, ast.Call) and name in map(ast.unparse, value.args):
        return known[0], [*known[1], value.func]
    return None


def _used_functions(node: FunctionNode, functions: Mapping[str, FunctionNode]) -> tuple[FunctionNode, ...]:
    """Return the functions of a file that a test uses, in order of first use."""
    found: dict[str, FunctionNode] = {}
    waiting = [node]
    while waiting:
        for name in _names_in(waiting.pop(0)):
            used = functions.get(name)
            if used is not None and used is not node and name not in found and not name.startswith("test"):
                found[name] = used
                waiting.append(used)
    for name in ("setup_method", "setUp", "teardown_method", "tearDown"):
        if name in functions and name not in found:
            found[name] = functions[name]
    return tuple(found.values())


def _names_in(node: FunctionNode) -> list[str]:
    """Return the names that a function uses: variables, attributes and fixtures."""
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            names.append(inner.id)
        elif isinstance(inner, ast.Attribute):
            names.append(inner.attr)
    return list(dict.fromkeys(names))


def _names_set_by(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def _value_of(statement: ast.stmt) -> ast.expr:
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    return value if value is not None else ast.Constant(None)


def _dump(node: FunctionNode) -> str:
    """Return a function's syntax tree without its docstring, name and annotations."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return "\n".join([",".join(arguments), *(ast.dump(each) for each in node.args.defaults), *map(ast.dump, body)])


def changed_tests(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[ChangedTest]:
    """Return the tests that do something else in another version of some files."""
    return [each for each in compare_tests(before, after) if each.is_changed]


def compare_tests(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[ChangedTest]:
    """Return the tests that differ between two versions of some files, or only have another id.

    If a test disappeared and a new one has the same statements, it was renamed, moved or merged with others.
    """
    old = {(file, name): test for file, source in before.items() for name, test in read_tests(source).items()}
    new = {(file, name): test for file, source in after.items() for name, test in read_tests(source).items()}
    found = [
        ChangedTest(*place, test, file_before=place[0], before=old[place])
        for place, test in new.items()
        if place in old and old[place].key != test.key
    ]
    added = {place: test for place, test in new.items() if place not in old}
    followed = set()
    for (file, name), test in old.items():
        if (file, name) not in new:
            place = _followed_by(test, added) or (file, name)
            followed.add(place)
            found.append(ChangedTest(*place, added.get(place), file_before=file, before=test))
    found += [ChangedTest(*place, test) for place, test in added.items() if place not in followed]
    return sorted(found, key=lambda changed: (changed.file, changed.name))


def _followed_by(test: TestSource, added: Mapping[tuple[str, str], TestSource]) -> tuple[str, str] | None:
    """Return the new test that replaces an old one: it has most of its statements, ignoring constants."""
    statements = _shapes(test.node)
    best, most = None, 0.5
    for place, other in added.items():
        share = len(statements & _shapes(other.node)) / max(1, len(statements))
        if share > most or (share == most and best is None):
            best, most = place, share
    return best


def _shapes(node: FunctionNode) -> set[str]:
    """Return the statements of a test without constants and parameters."""
    parameters = {argument.arg for argument in node.args.args}
    return {ast.dump(_Shape(parameters).visit(ast.parse(ast.unparse(statement)))) for statement in node.body}


class _Shape(ast.NodeTransformer):
    def __init__(self, parameters: set[str]) -> None:
        self._parameters = parameters

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("_")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant("_") if node.id in self._parameters else node


_CHECKING_CALL: Final = re.compile(
    r"^_*(assert|expect|verify|check|ensure|should|must|to_|not_to_|fail\b)", re.IGNORECASE
)
_ACCEPTING: Final = frozenset(
    {"raises", "warns", "assertRaises", "assertRaisesRegex", "deprecated_call", "assertWarns"}
)
_CAUGHT: Final = frozenset({"AssertionError", "Exception", "BaseException", ""})


@dataclass(frozen=True, slots=True)
class Assertion:
    """One check of a test."""

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
    """Return the last name of a called function: `raises` for `pytest.raises(...)`, or ""."""
    function = node.func if isinstance(node, ast.Call) else None
    return (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )


def checks_of(test: TestSource) -> list[Assertion]:
    """Return the checks of a test, including those of functions in its file that it uses."""
    functions = (test.node, *test.helpers)
    return [check for function in functions for check in _checks_in(function.body, uncalled=_uncalled(function))]


def _uncalled(function: FunctionNode) -> frozenset[str]:
    """Return the inner functions that a function never mentions, so that they never run."""
    inner = [node for node in ast.walk(function) if isinstance(node, FunctionNode) and node is not function]
    found: frozenset[str] = frozenset()
    while True:
        more = {
            node.name
            for node in inner
            if not node.decorator_list and node.name not in _names_loaded(function, found | {node.name})
        }
        if more <= found:
            return found
        found |= more


def _names_loaded(node: ast.AST, without: frozenset[str]) -> set[str]:
    """Return the names that are read below a node, except in functions with these names."""
    names = set()
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        each = waiting.pop()
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load):
            names.add(each.id)
        if not (isinstance(each, FunctionNode) and each.name in without):
            waiting += ast.iter_child_nodes(each)
    return names


def _checks_in(
    body: Sequence[ast.stmt],
    *,
    uncalled: frozenset[str],
    is_conditional: bool = False,
    is_swallowed: bool = False,
    is_unreachable: bool = False,
) -> Iterator[Assertion]:
    """Yield the checks of some statements; `uncalled` are inner functions that never run."""
    for statement in body:
        yield from _checks_of_statement(statement, uncalled, is_conditional, is_swallowed, is_unreachable)
        if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break) or _ends_test(statement):
            is_unreachable = True


def _checks_of_statement(
    statement: ast.stmt, uncalled: frozenset[str], is_conditional: bool, is_swallowed: bool, is_unreachable: bool
) -> Iterator[Assertion]:
    def below(
        body: Sequence[ast.stmt], *, conditional: bool = False, swallowed: bool = False, never: bool = False
    ) -> Iterator[Assertion]:
        return _checks_in(
            body,
            uncalled=uncalled,
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
            yield from below(statement.body, never=statement.name in uncalled)
        case _:
            return


def _conjuncts(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
        return [part for value in node.values for part in _conjuncts(value)]
    return [node]


def _is_check(call: ast.Call) -> bool:
    """Return whether the name of a call is a check, even in a chain such as `expect(x).to_be(3)`."""
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
    """Return whether one of these exception types catches a failed assertion."""
    for each in types:
        parts = each.elts if isinstance(each, ast.Tuple) else [each]
        names = {ast.unparse(part).rpartition(".")[2] if part is not None else "" for part in parts}
        if names & _CAUGHT:
            return True
    return False


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler catches a failed assertion and continues."""
    if not _catches([handler.type]):
        return False
    fails = any(
        isinstance(node, ast.Raise | ast.Assert) or (isinstance(node, ast.Call) and called_name(node) == "fail")
        for statement in handler.body
        for node in ast.walk(statement)
    )
    return not fails


def _truth(node: ast.expr) -> bool | None:
    """Return the truth value of a constant condition, else None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = _truth(node.operand)
        return None if inner is None else not inner
    return bool(node.value) if isinstance(node, ast.Constant) else None


def _is_empty(node: ast.expr) -> bool:
    return isinstance(node, ast.List | ast.Tuple | ast.Set) and not node.elts

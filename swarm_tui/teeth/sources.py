"""Finds the tests in a file of Python, and those that differ between two versions of the files. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from swarm_tui.model.python_source import read_python

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class TestSource:
    """One test of a file, and what it uses of that file."""

    __test__ = False

    name: str
    """Such as `TestShelf::test_add`."""
    node: FunctionNode
    helpers: tuple[FunctionNode, ...] = ()
    """Functions and fixtures of the same file that it uses, also through others."""
    marks: tuple[ast.expr, ...] = ()
    """The decorators of the test and its classes, and the marks of the file."""
    values: tuple[ast.stmt, ...] = field(default=(), compare=False)
    """What it uses of the other statements of the file."""

    @property
    def key(self) -> str:
        """Return what is the same as long as the test does the same, wherever it stands."""
        parts = [_dump(self.node), *sorted(_dump(helper) for helper in self.helpers)]
        parts += [ast.dump(mark) for mark in self.marks] + sorted(ast.dump(value) for value in self.values)
        return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class ChangedTest:
    """A test as it is and as it was; one of both may be missing."""

    file: str
    name: str
    after: TestSource | None
    file_before: str = ""
    before: TestSource | None = None


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
    for prefix, node, marks, methods in _test_nodes(module.body, file_marks):
        used = _used_functions(node, {**functions, **methods})
        names = {name for each in (node, *used) for name in _names_in(each)}
        held = {id(values[name]): values[name] for name in sorted(names) if name in values and name != "pytestmark"}
        name = f"{prefix}{node.name}"
        found[name] = TestSource(name, node, used, (*marks, *node.decorator_list), tuple(held.values()))
    return found


def _test_nodes(
    body: Iterable[ast.stmt], marks: list[ast.expr], prefix: str = "", methods: Mapping[str, FunctionNode] | None = None
) -> Iterator[tuple[str, FunctionNode, list[ast.expr], Mapping[str, FunctionNode]]]:
    for statement in body:
        if isinstance(statement, FunctionNode) and statement.name.startswith("test"):
            yield prefix, statement, marks, methods or {}
        elif isinstance(statement, ast.ClassDef):
            own = {item.name: item for item in statement.body if isinstance(item, FunctionNode)}
            class_marks = [
                _value_of(item) for item in statement.body if "pytestmark" in _names_set_by(item)
            ]  # a class may carry marks in both ways
            inner = [*marks, *statement.decorator_list, *class_marks]
            yield from _test_nodes(statement.body, inner, f"{prefix}{statement.name}::", own)


def _used_functions(node: FunctionNode, known: Mapping[str, FunctionNode]) -> tuple[FunctionNode, ...]:
    """Return the functions of a file that a test uses, in the order in which they are met."""
    found: dict[str, FunctionNode] = {}
    waiting = [node]
    while waiting:
        for name in _names_in(waiting.pop(0)):
            used = known.get(name)
            if used is not None and used is not node and name not in found and not name.startswith("test"):
                found[name] = used
                waiting.append(used)
    for name in ("setup_method", "setUp", "teardown_method", "tearDown"):
        if name in known and name not in found:
            found[name] = known[name]
    return tuple(found.values())


def _names_in(node: FunctionNode) -> list[str]:
    """Return the names that a function uses: variables, attributes, and the fixtures that it takes."""
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
    """Return a function's syntax without its text for people: its docstring, its name and its annotations."""
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    arguments = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return "\n".join([",".join(arguments), *(ast.dump(each) for each in node.args.defaults), *map(ast.dump, body)])


def changed_tests(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[ChangedTest]:
    """Return the tests that differ between two versions of some files.

    A test that is gone while one with the same statements is new was renamed, moved, or put together with others.
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
        if (file, name) in new:
            continue
        place = _followed_by(test, added)
        if place is None:
            found.append(ChangedTest(file, name, None, file_before=file, before=test))
            continue
        if added[place].key != test.key:
            found.append(ChangedTest(*place, added[place], file_before=file, before=test))
        followed.add(place)
    found += [ChangedTest(*place, test) for place, test in added.items() if place not in followed]
    return sorted(found, key=lambda changed: (changed.file, changed.name))


def _followed_by(test: TestSource, added: Mapping[tuple[str, str], TestSource]) -> tuple[str, str] | None:
    """Return the new test that does what an old one did: one with most of its statements, whatever their values."""
    statements = _shapes(test.node)
    best, most = None, 0.5
    for place, other in added.items():
        share = len(statements & _shapes(other.node)) / max(1, len(statements))
        if share > most or (share == most and best is None):
            best, most = place, share
    return best


def _shapes(node: FunctionNode) -> set[str]:
    """Return the statements of a test without their constants, and without what it gets as a parameter."""
    parameters = {argument.arg for argument in node.args.args}
    return {ast.dump(_Shape(parameters).visit(ast.parse(ast.unparse(statement)))) for statement in node.body}


class _Shape(ast.NodeTransformer):
    def __init__(self, parameters: set[str]) -> None:
        self._parameters = parameters

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant("_")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant("_") if node.id in self._parameters else node

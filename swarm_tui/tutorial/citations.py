"""Find the blocks that each test cites, from the syntax tree of its source, without importing it."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from swarm_tui.tutorial.blocks import text_lines

CITING_CALL: Final = "write_tutorial_block"
DOCSTRING_PART: Final = "tutorial block:"
_LITERAL: Final = re.compile(rb"""[rRuU]?(?P<quotes>\"{3}|'{3})(?P<inner>.*)(?P=quotes)""", re.DOTALL)
_NEXT_PART: Final = re.compile(r"[A-Z][A-Za-z ]*:(\s|$)")

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Citation:
    """The text that a test cites: the value of the string and, if different, the string as written.

    A backslash at the end of a line joins two lines for Python, while the author sees the lines of the block.
    """

    line: int
    readings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TestFunction:
    """A test with its citations, the reasons for unreadable ones (`refusals`), and optionally its source."""

    # Otherwise pytest collects this class as a test.
    __test__ = False

    file: str
    line: int
    name: str
    citations: tuple[Citation, ...]
    refusals: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class ShadowedTest:
    """A test that never runs, because a later test has the same name."""

    file: str
    line: int
    name: str
    later_line: int


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that is unreadable or not valid Python."""

    file: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class TestFile:
    """The tests of a file."""

    __test__ = False

    tests: tuple[TestFunction, ...] = ()
    shadowed: tuple[ShadowedTest, ...] = ()


def find_tests(source: bytes, file: str, *, with_source: bool = False) -> TestFile | BrokenFile:
    """Return the tests of a file by pytest's defaults: `test*` functions, including those of `Test*` classes."""
    try:
        with warnings.catch_warnings():
            # Ignore warnings about deprecated escapes in strings.
            warnings.simplefilter("ignore")
            tree = ast.parse(source, filename=file)
    except SyntaxError as error:
        return BrokenFile(file, error.lineno or 1, error.msg)
    except (ValueError, RecursionError, MemoryError) as error:
        return BrokenFile(file, 1, str(error) or type(error).__name__)
    try:
        lines = source.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        return _Finder(file, lines, with_source=with_source).find(tree)
    except RecursionError:
        return BrokenFile(file, 1, "nested too deeply")


class _Finder:
    """Collects the tests of a file."""

    def __init__(self, file: str, lines: Sequence[bytes], *, with_source: bool) -> None:
        self._file = file
        self._lines = lines
        self._with_source = with_source
        self._tests: list[TestFunction] = []
        self._shadowed: list[ShadowedTest] = []

    def find(self, tree: ast.Module) -> TestFile:
        self._visit(tree.body, prefix="")
        return TestFile(tuple(self._tests), tuple(self._shadowed))

    def _visit(self, body: Sequence[ast.stmt], prefix: str) -> None:
        last_lines = {node.name: node.lineno for node in body if isinstance(node, _Definition)}
        for node in body:
            if not isinstance(node, _Definition):
                # Tests can be inside an `if` or a `try`.
                for inner in _inner_bodies(node):
                    self._visit(inner, prefix)
            elif isinstance(node, ast.ClassDef):
                if _is_test_class(node) and last_lines[node.name] == node.lineno:
                    self._visit(node.body, f"{prefix}{node.name}::")
            elif _is_test(node):
                if last_lines[node.name] != node.lineno:
                    name = prefix + node.name
                    self._shadowed.append(ShadowedTest(self._file, node.lineno, name, last_lines[node.name]))
                else:
                    self._tests.append(self._read_test(node, prefix))

    def _read_test(self, node: _Function, prefix: str) -> TestFunction:
        citations: list[Citation] = []
        refusals: list[str] = []
        for call in _citing_calls(node):
            read = self._read_call(call)
            if isinstance(read, Citation):
                citations.append(read)
            else:
                refusals.append(read)
        from_docstring = self._read_docstring(node)
        if from_docstring is not None:
            citations.append(from_docstring)
        source = b""
        if self._with_source:
            source = b"\n".join(self._lines[node.lineno - 1 : node.end_lineno])
        return TestFunction(
            self._file,
            node.lineno,
            prefix + node.name,
            tuple(citations),
            tuple(refusals),
            source.decode("utf-8", "replace"),
        )

    def _read_call(self, call: ast.Call) -> Citation | str:
        """Return the citation of a call, or the reason why it is unreadable."""
        match [*call.args, *(keyword.value for keyword in call.keywords)]:
            case [ast.Constant(value=str()) as literal]:
                return Citation(call.lineno, self._readings(literal))
            case [ast.JoinedStr()]:
                return f"line {call.lineno} cites an f-string; use a plain string"
            case []:
                return f"line {call.lineno} has an empty citation"
            case _:
                return f"line {call.lineno} cites an expression; use a plain string"

    def _read_docstring(self, function: _Function) -> Citation | None:
        """Return the citation in the "Tutorial block:" section of a docstring, if any."""
        match function.body:
            case [ast.Expr(value=ast.Constant(value=str(docstring)) as literal), *_]:
                if DOCSTRING_PART in docstring.lower():
                    parts = tuple(part for reading in self._readings(literal) if (part := docstring_part(reading)))
                    return Citation(literal.lineno, parts) if parts else None
        return None

    def _readings(self, literal: ast.Constant) -> tuple[str, ...]:
        text = str(literal.value)
        lines = list(self._lines[literal.lineno - 1 : literal.end_lineno])
        if len(lines) < 2 or not any(b"\\" in line for line in lines):
            return (text,)
        lines[-1] = lines[-1][: literal.end_col_offset]
        lines[0] = lines[0][literal.col_offset :]
        written = _LITERAL.fullmatch(b"\n".join(lines))
        return (text, written["inner"].decode("utf-8", "replace")) if written else (text,)


def _is_test(node: _Function) -> bool:
    return node.name.startswith("test") and not any(
        _last_name(decorator) == "fixture" for decorator in node.decorator_list
    )


def _is_test_class(node: ast.ClassDef) -> bool:
    if any((_last_name(base) or "").endswith("TestCase") for base in node.bases):
        return True
    return node.name.startswith("Test") and not any(
        isinstance(inner, _Function) and inner.name == "__init__" for inner in node.body
    )


def _last_name(expression: ast.expr) -> str | None:
    """Return `fixture` for `fixture`, `pytest.fixture` and `pytest.fixture(...)`."""
    match expression:
        case ast.Call(func=function):
            return _last_name(function)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
        case _:
            return None


def _inner_bodies(node: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    """Return the statement lists inside a statement."""
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(node, name, None)
        if inner:
            yield inner
    for name in ("handlers", "cases"):
        for part in getattr(node, name, ()):
            yield part.body


def _citing_calls(function: _Function) -> Iterator[ast.Call]:
    """Return the statements of a test that call `write_tutorial_block`."""
    waiting: list[Sequence[ast.stmt]] = [function.body]
    while waiting:
        for node in waiting.pop(0):
            if isinstance(node, ast.Expr):
                call = node.value.value if isinstance(node.value, ast.Await) else node.value
                if isinstance(call, ast.Call) and _last_name(call.func) == CITING_CALL:
                    yield call
            else:
                waiting.extend(_inner_bodies(node))


def docstring_part(docstring: str) -> str:
    """Return the "Tutorial block:" section of a docstring, or "".

    It ends where the indentation of its first line ends; when it is not indented, at an empty line, or, if it opens
    the docstring, so that cleaning has taken its indentation away, at the next part.
    """
    lines = text_lines(inspect.cleandoc(docstring))
    start = next((n for n, line in enumerate(lines) if line.strip().lower().startswith(DOCSTRING_PART)), None)
    if start is None:
        return ""
    margin = _indentation(lines[start])
    first = next((line for line in lines[start + 1 :] if line.strip()), "")
    is_indented = _indentation(first) > margin
    part = [lines[start].strip()[len(DOCSTRING_PART) :].strip()]
    for line in lines[start + 1 :]:
        if not line.strip():
            if not is_indented and start > 0 and any(part):
                break
        elif _indentation(line) <= margin if is_indented else _NEXT_PART.match(line):
            break
        part.append(line)
    return textwrap.dedent("\n".join(part[1:])).strip() if not part[0] else "\n".join(part).strip()


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())

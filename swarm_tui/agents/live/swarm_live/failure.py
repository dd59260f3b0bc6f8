"""Describes why a test failed: the original exception and its place. Python 3.6, the standard library only.

All values are limited in size. The only method of the project that is called is `__str__` of its exceptions, which
pytest calls as well.
"""

import ast
import builtins
import os
import pathlib
import re
import sys
from typing import Any

_ERRORS = 4
_WRAPPERS = 6
_MESSAGE_LIMIT = 600
_STATEMENT_LIMIT = 160
_NAME_LIMIT = 160
_VALUES = 12
_FRAMES = 2000
_SOURCE_LIMIT = 1000000
_DEPTH = 8

_TEST_FILE = re.compile(r"(^test_.*|.*_tests?|^conftest|^tests?)\.py$")
_TEST_FOLDERS = frozenset(("test", "tests", "testing", "e2e"))
# Methods of built-in types do not identify the function that created the data.
_PLAIN_CALLS = frozenset(dir(builtins)) | frozenset(
    name for kind in (str, bytes, list, dict, set, int, pathlib.Path) for name in dir(kind)
)
# The same is true for pytest's own fixtures.
_PLAIN_NAMES = frozenset(("capsys", "capfd", "caplog", "readouterr", "tmp_path", "tmpdir", "monkeypatch", "pytest"))
# The command in their arguments is more useful than the names of these functions.
_RUNNERS = re.compile(r"(invoke|main|run|call|check_output|check_call|Popen|execute|cli|run_.*|.*_cli)$")


def describe_failure(error: Any, folder: Any, test_file: Any) -> Any:
    """Return the original errors of a failure, and the types of the errors that only wrap them."""
    wrappers: Any = []
    roots: Any = []
    _find_roots(error, folder, wrappers, roots, set())
    outer = _project_frames(error, folder)
    first = next((each for each in outer if each[2] == test_file), outer[0] if outer else None)
    described = []
    for root in roots[:_ERRORS]:
        found = _describe_error(root, first, folder, test_file)
        if found not in described:
            described.append(found)
    return {"errors": described, "wrappers": wrappers[:_WRAPPERS]}


def _find_roots(error: Any, folder: Any, wrappers: Any, roots: Any, seen: Any) -> None:
    while len(roots) < _ERRORS and id(error) not in seen:
        seen.add(id(error))
        inside = getattr(error, "exceptions", None)
        if isinstance(inside, (tuple, list)) and inside and all(isinstance(one, BaseException) for one in inside):
            wrappers.append(_type_name(error))
            for one in inside:
                _find_roots(one, folder, wrappers, roots, seen)
            return
        wrapped = _wrapped_error(error, folder)
        if wrapped is None or id(wrapped) in seen:
            roots.append(error)
            return
        wrappers.append(_type_name(error))
        error = wrapped


def _wrapped_error(error: Any, folder: Any) -> Any:
    """Return the error that caused another one, or None.

    For an error that was raised while another one was handled, return the other one only if the handler itself raised.
    If the handler called code that failed, the new error is independent.
    """
    if error.__cause__ is not None:
        return error.__cause__
    context = error.__context__
    if context is None or error.__suppress_context__ or context.__traceback__ is None:
        return None
    frames = _project_frames(error, folder)
    if not frames or frames[-1][0].f_code is not context.__traceback__.tb_frame.f_code:
        return None
    statement = _Source(frames[-1][2]).statement(frames[-1][1])
    return context if re.match(r"raise\b|.*\bfail\(", statement) else None


def _describe_error(error: Any, first: Any, folder: Any, test_file: Any) -> Any:
    """Return the details of one error; `first` is the frame of the test or fixture that raised it."""
    frames = _project_frames(error, folder)
    found: Any = {"type": _type_name(error), "message": _message(error)}
    if not frames:
        return found
    frame, line, path = frames[-1]
    cycle = _cycle(frames) if isinstance(error, RecursionError) else None
    if cycle is not None:
        frame, line, path = cycle
    source = _Source(path)
    found["file"] = _below(path, folder)[:_NAME_LIMIT]
    found["function"] = _function_name(frame)
    found["statement"] = source.statement(line)[:_STATEMENT_LIMIT]
    found["values"] = _values_in(found["message"], error, frame, found["statement"])
    first = first or frames[0]
    found["is_test"] = _is_test_code(path, folder, test_file)
    found["place"] = f"{_below(first[2], folder)}::{_function_name(first[0])}"[:_NAME_LIMIT]
    if found["is_test"]:
        first_source = source if first[2] == path else _Source(first[2])
        found["subjects"] = first_source.subjects(first[1], is_called=first[0] is not frame)
    return found


def _type_name(error: Any) -> str:
    kind = type(error)
    module = getattr(kind, "__module__", "") or ""
    name = str(getattr(kind, "__qualname__", kind.__name__)).replace("<locals>.", "")
    return (name if module == "builtins" else f"{module}.{name}")[:_NAME_LIMIT]


def _message(error: Any) -> str:
    missing = getattr(error, "argname", None)
    if type(error).__name__ == "FixtureLookupError" and isinstance(missing, str):
        return f"fixture '{missing}' not found"[:_MESSAGE_LIMIT]
    try:
        return str(error)[:_MESSAGE_LIMIT]
    except Exception:
        return ""


def _project_frames(error: Any, folder: Any) -> Any:
    """Return (frame, line, path) for the project's own frames of a traceback, innermost last."""
    found = []
    entry = error.__traceback__
    cache: Any = {}
    for _ in range(_FRAMES):
        if entry is None:
            break
        name = entry.tb_frame.f_code.co_filename
        if name not in cache:
            path = os.path.realpath(os.path.join(folder, name))
            cache[name] = path if _is_own_code(path, folder) else None
        if cache[name] is not None:
            found.append((entry.tb_frame, entry.tb_lineno, cache[name]))
        entry = entry.tb_next
    return found


def _is_own_code(path: Any, folder: Any) -> bool:
    parts = set(path.split(os.sep))
    if not path.startswith(folder.rstrip(os.sep) + os.sep) or parts & {"site-packages", "dist-packages", ".tox"}:
        return False
    for other in (sys.prefix, sys.base_prefix):
        prefix = os.path.realpath(other).rstrip(os.sep) + os.sep
        if path.startswith(prefix) and not folder.startswith(prefix):
            return False
    return os.path.isfile(path)


def _is_test_code(path: Any, folder: Any, test_file: Any) -> bool:
    below = _below(path, folder)
    folders, name = os.path.split(below)
    return path == test_file or bool(_TEST_FILE.match(name)) or bool(_TEST_FOLDERS & set(folders.split(os.sep)))


def _below(path: Any, folder: Any) -> str:
    return str(os.path.relpath(path, folder))


def _function_name(frame: Any) -> str:
    code = frame.f_code
    return str(getattr(code, "co_qualname", code.co_name)).replace("<locals>.", "")[:_NAME_LIMIT]


def _cycle(frames: Any) -> Any:
    """Return one frame of a recursion, independent of where the recursion limit was reached."""
    counts: Any = {}
    for frame, line, path in frames:
        key = (path, frame.f_code.co_firstlineno)
        counts.setdefault(key, []).append((frame, line, path))
    repeated = sorted((key, found) for key, found in counts.items() if len(found) > 20)
    return repeated[0][1][-1] if repeated else None


def _values_in(message: Any, error: Any, frame: Any, statement: Any) -> Any:
    """Return the words of a message that are values of variables at the place of the error."""
    found = set()
    for variables in (frame.f_locals, getattr(error, "__dict__", None) or {}):
        for value in list(variables.values())[:200]:
            # A longer value may be the output of another program, which is a cause and not a value.
            if type(value) is str and 2 <= len(value) <= 60 and len(value.split()) in (1, 2):
                pattern = rf"(?<!\w){re.escape(value)}(?!\w)"
                if re.search(pattern, message) and not re.search(pattern, statement):
                    found.add(value)
    return sorted(found, key=len, reverse=True)[:_VALUES]


class _Source:
    """The source of one file, parsed once; empty if the file is unreadable."""

    def __init__(self, path: Any) -> None:
        self.lines: Any = []
        self.tree: Any = None
        try:
            if os.path.getsize(path) <= _SOURCE_LIMIT:
                with open(path, "rb") as file:
                    content = file.read()
                self.tree = ast.parse(content)
                self.lines = content.decode("utf-8", "replace").splitlines()
        except Exception:
            self.tree = None

    def statement(self, line: Any) -> str:
        """Return the statement at a line, joined into one line; for a compound statement only its header."""
        node = self._node(line)
        if node is None:
            return ""
        last = min(_last_line(node), node.lineno + 12)
        if getattr(node, "body", None):
            last = node.lineno
        return " ".join(text.strip() for text in self.lines[node.lineno - 1 : last])

    def subjects(self, line: Any, is_called: Any) -> Any:
        """Return the calls whose results are checked by the statement at a line.

        `is_called` means that the statement calls the helper that failed, so the helper's arguments are checked.
        """
        node = self._node(line)
        function = self._function(line)
        if node is None or function is None:
            return []
        subjects = _Subjects(function, node, is_called)
        # A fixture and a parameter may share a name, so calls are preferred.
        return sorted(subjects.found or subjects.fixtures)[:6]

    def _node(self, line: Any) -> Any:
        """Return the innermost statement at a line."""
        found = None
        for node in ast.walk(self.tree) if self.tree is not None else ():
            if isinstance(node, ast.stmt) and node.lineno <= line <= _last_line(node):
                found = node
        return found

    def _function(self, line: Any) -> Any:
        found = None
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.lineno <= line <= _last_line(node):
                found = node
        return found


def _last_line(node: Any) -> int:
    end = getattr(node, "end_lineno", None)
    return end or max(getattr(each, "lineno", 0) for each in ast.walk(node))


class _Subjects:
    """Finds what a statement of a test checks, by following its names back to the calls that created their values."""

    def __init__(self, function: Any, statement: Any, is_called: Any) -> None:
        self.found: Any = set()
        self.fixtures: Any = set()
        arguments = function.args.args + function.args.kwonlyargs
        self.arguments = {argument.arg for argument in arguments} - {"self", "cls"}
        self.assigned: Any = []
        for node in ast.walk(function):
            if getattr(node, "lineno", 0) < statement.lineno:
                self._note_assignment(node)
        self.assigned.sort(key=lambda each: each[0], reverse=True)
        before = statement.lineno
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            # For example `with pytest.raises(...)`: the body is what is checked.
            for inner in statement.body:
                self._look(getattr(inner, "value", None), before, 0)
            return
        value = getattr(statement, "value", None) or getattr(statement, "test", None)
        value = value.value if isinstance(value, ast.Await) else value
        is_call = isinstance(value, ast.Call) and not isinstance(statement, ast.Assert)
        if is_call and (is_called or _is_assertion(value)):
            self._look_at_arguments(value, before, 0)
            return
        self._look(value, before, 0)
        if not self.found:
            self._look_at_last_call(function, before)

    def _look_at_last_call(self, function: Any, before: Any) -> None:
        """Add the last call of the test, because the statement may check its effect."""
        done = [node for node in ast.walk(function) if isinstance(node, ast.Expr) and node.lineno < before]
        for node in sorted(done, key=lambda each: each.lineno, reverse=True):
            self._look(node.value, before, 0)
            if self.found:
                return

    def _note_assignment(self, node: Any) -> None:
        value: Any
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets, value = [node.target], node.value
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            targets, value = [node.target], node.iter
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                if item.optional_vars is not None:
                    self._note(node.lineno, [item.optional_vars], item.context_expr)
            return
        else:
            return
        self._note(node.lineno, targets, value)

    def _note(self, line: Any, targets: Any, value: Any) -> None:
        names = {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        self.assigned.append((line, names, value))

    def _look(self, node: Any, before: Any, depth: Any) -> None:
        """Add the sources of a value, using the assignments before a line."""
        if node is None or depth > _DEPTH:
            return
        if isinstance(node, ast.Call):
            self._look_at_call(node, before, depth)
        elif isinstance(node, (ast.Attribute, ast.Subscript, ast.Await, ast.Starred)):
            self._look(node.value, before, depth + 1)
        elif isinstance(node, ast.Name):
            self._look_at_name(node.id, before, depth)
        elif not isinstance(node, (ast.Lambda, ast.FunctionDef)):
            for child in ast.iter_child_nodes(node):
                self._look(child, before, depth + 1)

    def _look_at_call(self, node: Any, before: Any, depth: Any) -> None:
        function = node.func
        if isinstance(function, ast.Attribute):
            name, receiver = function.attr, function.value
        else:
            name, receiver = getattr(function, "id", ""), None
        what = _route(node) or (_RUNNERS.match(name) and _command(node))
        if what:
            self.found.add(f"{name} {what}"[:_NAME_LIMIT])
        elif name and name not in _PLAIN_CALLS and name not in _PLAIN_NAMES:
            self.found.add(name[:_NAME_LIMIT])
        else:
            self._look(receiver, before, depth + 1)
            self._look_at_arguments(node, before, depth)

    def _look_at_arguments(self, node: Any, before: Any, depth: Any) -> None:
        if isinstance(node.func, ast.Attribute) and not node.args:
            self._look(node.func.value, before, depth + 1)
        for argument in node.args + [keyword.value for keyword in node.keywords]:
            self._look(argument, before, depth + 1)

    def _look_at_name(self, name: Any, before: Any, depth: Any) -> None:
        for line, names, value in self.assigned:
            if line < before and name in names:
                self._look(value, line, depth + 1)
                return
        if name in self.arguments and name not in _PLAIN_NAMES:
            self.fixtures.add(name[:_NAME_LIMIT])


def _is_assertion(call: Any) -> bool:
    name = str(getattr(call.func, "attr", None) or getattr(call.func, "id", ""))
    return bool(re.match(r"_?(assert|expect|check|verify|ensure|require|fail)", name, re.I))


def _route(call: Any) -> str:
    """Return the first part of the path that a call requests, such as `/users`; "" for other calls."""
    match = re.match(r"(?:https?://[^/]+)?(/[A-Za-z_-]*)", _text(call.args[0])) if call.args else None
    return match.group(1) if match else ""


def _command(call: Any) -> str:
    """Return the first bare word of the command line in a call's arguments."""
    for argument in call.args:
        for node in (argument, *getattr(argument, "elts", ())):
            if re.match(r"[a-z][a-z0-9_-]+$", _text(node)):
                return _text(node)
    return ""


def _text(node: Any) -> str:
    """Return the text of a literal; "" for anything else."""
    node = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
    text = getattr(node, "s", None) if sys.version_info < (3, 8) else getattr(node, "value", None)
    return text if isinstance(text, str) else ""

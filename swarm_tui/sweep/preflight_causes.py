"""Finds out why a test cannot run in a fresh copy."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.checkouts import find_submodules
from swarm_tui.adapters.git.working_tree import files_below, ignored_files, ignored_project_files
from swarm_tui.adapters.pytest import Collected, first_exception
from swarm_tui.errors import UsageError
from swarm_tui.files import open_regular, read_regular
from swarm_tui.model.formatting import counted, named
from swarm_tui.model.text import plain, read_python
from swarm_tui.sweep.collect import missed_variable
from swarm_tui.testing.traced import without_case

FILES_NAMED: Final = 5
_TESTS_NAMED: Final = 3
_MOST_MODULES: Final = 2_000
_IMPORT_ERRORS: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_MODULE: Final = re.compile(r"No module named '([\w.]+)'")
_NAME: Final = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")
_QUOTED: Final = re.compile(r"'([^'\n]{1,300})'|\"([^\"\n]{1,300})\"")
_WORD: Final = re.compile(r"[\w./@+-]*\w")
_POINTER: Final = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why tests cannot run in a fresh copy, and how to change that."""

    problem: str
    hint: str

    def sentence(self, tests: Sequence[str]) -> str:
        """Return the tests, the problem and the hint in one line."""
        return f"{name_tests(tests)}: {self.problem} ({self.hint})"


_UNKNOWN: Final = Cause("pytest does not find them in a copy", "run pytest in a fresh `git worktree add` to see why")


@dataclass(frozen=True)
class CopyFacts:
    """A checkout and a fresh copy of its commit."""

    repository: Repository
    base: str
    copy: Path
    folder: str = ""
    """The working folder of pytest, relative to the top."""
    root: str = ""
    """pytest's rootdir, relative to the top."""
    import_roots: Sequence[str] = ()
    setup: str = ""
    has_checkout: bool = True
    """Whether the set-up command can read the checkout. On other hosts it cannot."""
    passed: Sequence[str] = ()
    """The variable names of --pass-env."""
    ignored_modules: dict[str, None] = field(default_factory=dict)
    """The modules that the copy needs and git ignores; folders end with a slash."""
    _causes: dict[str, Cause] = field(default_factory=dict)

    @property
    def top(self) -> Path:
        return self.repository.root

    def lacks(self, path: str) -> bool:
        """Return whether the checkout has a file or folder that is missing in the copy, or is an empty folder there."""
        if path.startswith("../") or path in ("", ".", ".."):
            return False
        original, copied = self.top / path, self.copy / path
        if not os.path.lexists(original):
            return False
        is_emptied = copied.is_dir() and not any(copied.iterdir()) and original.is_dir() and any(original.iterdir())
        return is_emptied or not os.path.lexists(copied)

    @cached_property
    def submodules(self) -> frozenset[str]:
        return frozenset(module.path for module in find_submodules(self.repository, self.base))

    @cached_property
    def changed(self) -> frozenset[str]:
        return frozenset(self.repository.dirty_paths(has_untracked=False))

    def add_module(self, path: str) -> None:
        """Add a module that the copy needs, if it lacks the module because git ignores it."""
        path = path.rstrip("/")
        if self.lacks(path):
            path = self._topmost(path)
            if ignored_files(self.repository, path):
                self.ignored_modules[path + ("/" if (self.top / path).is_dir() else "")] = None

    def setup_option(self, paths: Iterable[str]) -> str:
        """Return the --setup option that creates ignored files in each copy."""
        if not self.has_checkout:
            return "--setup CMD, which creates it on each host"
        return copying_option(paths, self.setup)

    def _topmost(self, path: str) -> str:
        """Return a missing path, or the topmost folder above it that is missing."""
        parent = str(PurePosixPath(path).parent)
        while self.lacks(parent):
            path, parent = parent, str(PurePosixPath(parent).parent)
        return path

    def cause_of(self, path: str) -> Cause:
        """Return why the copy lacks a path."""
        path = self._topmost(path)
        if path not in self._causes:
            self._causes[path] = self._find_cause(path)
        return self._causes[path]

    def _find_cause(self, path: str) -> Cause:
        slash = "/" if (self.top / path).is_dir() else ""
        name = plain(path, 200) + slash
        module = next((module for module in self.submodules if f"{path}/".startswith(f"{module}/")), None)
        if module is not None:
            shown = plain(module, 200)
            hint = f"run `git submodule update --init {shown}`: copies get the submodule from the checkout"
            return Cause(f"the submodule {shown} is empty in a copy", hint)
        if ignored_files(self.repository, path):
            hint = f"add {self.setup_option([path + slash])}, or commit it"
            return Cause(f"{name} is ignored by git, so no copy has it", hint)
        return Cause(f"{name} is not committed, so no copy has it", f"commit it: agents start at {self.base[:10]}")


def name_tests(tests: Sequence[str]) -> str:
    """Return the number of tests and the names of the first ones."""
    more = "" if len(tests) <= _TESTS_NAMED else ", ..."
    return f"{counted(len(tests), 'test')}: {', '.join(plain(test, 100) for test in tests[:_TESTS_NAMED])}{more}"


def copying_option(paths: Iterable[str], setup: str = "") -> str:
    """Return the --setup option that runs a command and then copies ignored files and folders from the checkout."""
    commands = [setup] if setup else []
    for path in paths:
        name = path.rstrip("/")
        quoted = shlex.quote(name)
        source = f'"$SWARM_CHECKOUT/{name}"' if quoted == name else f'"$SWARM_CHECKOUT"/{quoted}'
        if path.endswith("/"):
            commands.append(f"mkdir -p {quoted} && cp -R {source}/. {quoted}")
        else:
            commands.append(f"cp {source} {quoted}")
    return f"--setup {shlex.quote(' && '.join(commands))}"


def find_ignored_modules(facts: CopyFacts, collected: Collected) -> None:
    """Add the ignored modules that the copy loaded from the checkout, or that a test may import when it runs."""
    for name, begin in collected.loaded.items():
        path = os.path.normpath(os.path.join(os.path.relpath(begin, facts.top), *name.split(".")))
        if (facts.top / f"{path}.py").is_file():
            facts.add_module(f"{path}.py")
        elif (facts.top / path).is_dir():
            facts.add_module(path)
    for path in set(_imported_later(facts, collected)):
        facts.add_module(path)


def _imported_later(facts: CopyFacts, collected: Collected) -> Iterator[str]:
    """Yield the ignored modules that functions of loaded files import, unless a missing module is not an error.

    The tests were not run here, so these imports were not tried. Modules that functions of test files import are read
    too, because importing them runs their own imports.
    """
    ignored = _ignored_modules(facts.repository)
    if not ignored:
        return
    copy, loaded = facts.copy, frozenset(collected.files)
    roots = {os.path.relpath(entry, copy) for entry in collected.path if Path(entry).is_relative_to(copy)}
    names = {os.path.basename(module.removesuffix("/__init__")).encode() for module in ignored}
    ids = (found.test.partition("::")[0] for found in collected.tests)
    test_files = {os.path.normpath(os.path.join(facts.root, file)) for file in ids}
    waiting, known = list(loaded), set(loaded)
    while waiting:
        file = waiting.pop()
        is_loaded, is_followed = file in loaded, file in test_files or file not in loaded
        source = read_regular(copy / file)
        if not is_followed and not any(name in source for name in names):
            continue
        module = read_python(source)
        if module is not None and not is_loaded:
            # It is unknown which conditions are true.
            module.body = [statement for statement in module.body if not isinstance(statement, ast.If)]
        for place in _imports_of(module, file, roots, in_function=is_loaded) if module is not None else ():
            if path := ignored.get(place) or ignored.get(f"{place}/__init__"):
                yield path
            for path in (f"{place}.py", f"{place}/__init__.py") if is_followed else ():
                if path not in known and (copy / path).is_file():
                    known.add(path)
                    waiting.append(path)


def _ignored_modules(repository: Repository) -> dict[str, str]:
    """Return the path of each module that git ignores, by the path without its suffix."""
    found: dict[str, str] = {}
    for path in ignored_project_files(repository):
        for file in files_below(repository, path):
            if file.endswith(".py"):
                found[file.removesuffix(".py")] = path if file.endswith("/__init__.py") else file
            if len(found) == _MOST_MODULES:
                return found
    return found


def _imports_of(module: ast.Module, file: str, roots: Collection[str], *, in_function: bool) -> Iterator[str]:
    """Yield the possible paths, without suffix, of the modules that a file imports in its functions or outside."""
    for node, is_in_function in _import_statements(module, in_function=False):
        if is_in_function is not in_function:
            continue
        if isinstance(node, ast.Import):
            names, starts = [alias.name for alias in node.names], set(roots)
        else:
            base = [node.module] if node.module else []
            names = [*base, *(".".join([*base, alias.name]) for alias in node.names)]
            above = os.path.join(os.path.dirname(file), *[os.pardir] * (node.level - 1))
            starts = {above} if node.level else set(roots)
        for name in names:
            parts = name.split(".")
            packages = (parts[: number + 1] for number in range(len(parts)))
            yield from (os.path.normpath(os.path.join(start, *package)) for package in packages for start in starts)


def _import_statements(node: ast.AST, *, in_function: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield the import statements, and whether each is in a function; ignore those that may fail without an error."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, in_function
        elif isinstance(child, ast.Try) and any(_catches_import_error(handler) for handler in child.handlers):
            for other in (*child.handlers, *child.orelse, *child.finalbody):
                yield from _import_statements(other, in_function=in_function)
        elif not _is_for_types(child):
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _import_statements(child, in_function=in_function or is_function)


def _catches_import_error(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in _IMPORT_ERRORS for node in ast.walk(handler.type))


def _is_for_types(node: ast.AST) -> bool:
    """Return whether a statement is only for type checkers, or ignores a missing module."""
    if isinstance(node, ast.If):
        return any(getattr(part, "id", getattr(part, "attr", "")) == "TYPE_CHECKING" for part in ast.walk(node.test))
    return isinstance(node, ast.With) and any(
        isinstance(part, ast.Name) and part.id in _IMPORT_ERRORS
        for item in node.items
        for part in ast.walk(item.context_expr)
    )


def refuse_ignored_modules(facts: CopyFacts) -> None:
    """Raise UsageError for ignored modules that the tests import, because all agents would lack them."""
    if not facts.ignored_modules:
        return
    paths = sorted(facts.ignored_modules)
    are, them = ("is", "it") if len(paths) == 1 else ("are", "them")
    raise UsageError(
        f"{named(paths, FILES_NAMED)} {are} ignored by git, so the agents' copies lack {them},"
        f" and the project imports {them}",
        f"add {facts.setup_option(paths)}, or commit {them}",
    )


def explain(
    missing: Sequence[tuple[str, str]], errors: Mapping[str, str], here: Collection[str], facts: CopyFacts
) -> dict[Cause, list[str]]:
    """Return the causes why tests, each with its file, are missing in a copy that has the tests of `here`.

    `errors` are pytest's messages by file; "" stands for all files.
    """
    causes: dict[Cause, list[str]] = {}
    cases = {without_case(test): test for test in sorted(here, reverse=True)}
    for test, file in missing:
        cause = _cause(file, errors.get(file) or errors.get("", ""), facts)
        case = cases.get(without_case(test)) if cause == _UNKNOWN else None
        if case is not None:
            cause = Cause(
                f"pytest finds other parameters for them in a copy, such as {plain(case, 150)}",
                "keep ids the same in each run, and commit the files that parameters come from",
            )
        causes.setdefault(cause, []).append(test)
    return causes


def _cause(file: str, text: str, facts: CopyFacts) -> Cause:
    if facts.lacks(file):
        return facts.cause_of(file)
    start = f"commit it: agents start at {facts.base[:10]}"
    if text:
        related = next((path for path in _related_files(file, facts) if facts.lacks(path)), None)
        if found := cause_in(text, file, facts) or (facts.cause_of(related) if related is not None else None):
            return found
        why = first_exception(text) or plain(text.strip(), 200)
        hint = "commit the files that it needs, or create them in each copy with --setup CMD"
        return Cause(f"{plain(file, 200)} cannot be imported in a copy: {why}", hint)
    if file in facts.changed:
        return Cause(f"your changes of {plain(file, 200)} are not committed", start)
    settings = sorted(path for path in facts.changed if path.endswith((".toml", ".ini", ".cfg", "conftest.py")))
    if settings:
        changed = named(settings, FILES_NAMED)
        return Cause(f"pytest does not find them without your uncommitted changes of {changed}", start)
    return _UNKNOWN


def _related_files(file: str, facts: CopyFacts) -> Iterator[str]:
    """Yield the files that a test may use without naming them: conftest.py files, pytest's settings, submodules."""
    folders = [str(folder) for folder in PurePosixPath(file).parents]
    yield from (os.path.normpath(os.path.join(folder, "conftest.py")) for folder in folders)
    settings = ("pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
    yield from (os.path.normpath(os.path.join(facts.root, name)) for name in settings)
    yield from sorted(facts.submodules)


def cause_in(text: str, file: str, facts: CopyFacts) -> Cause | None:
    """Return the first cause that an error message names: a withheld variable, or a file that the copy lacks."""
    if name := missed_variable(text, facts.passed):
        return Cause(f"{name} is not passed to agents and test runs", f"add --pass-env {name}")
    for path in _module_paths(text, file, facts):
        facts.add_module(path)
    for path in _paths_in(text, file, facts):
        if facts.lacks(path):
            return facts.cause_of(path)
        if _is_pointer(facts.copy / path) and not _is_pointer(facts.top / path):
            hint = "install git-lfs on this machine: copies get the file from the checkout"
            return Cause(f"{plain(path, 200)} is only a Git LFS pointer in a copy", hint)
    return None


def _paths_in(text: str, file: str, facts: CopyFacts) -> Iterator[str]:
    """Yield the paths that an error message may name: missing modules and files."""
    yield from _module_paths(text, file, facts)
    text = text.replace(f"{facts.copy.resolve()}/", "").replace(f"{facts.copy}/", "")
    words = [first or second for first, second in _QUOTED.findall(text)] + _WORD.findall(text)
    for word in dict.fromkeys(words):
        if ("/" in word or "." in word) and not word.startswith("/"):
            for root in dict.fromkeys(("", facts.folder, facts.root, os.path.dirname(file))):
                yield os.path.normpath(os.path.join(root, word))


def _module_paths(text: str, file: str, facts: CopyFacts) -> Iterator[str]:
    """Yield the possible paths of the modules that an error message reports as missing."""
    names = [*_MODULE.findall(text), *(f"{module}.{name}" for name, module in _NAME.findall(text))]
    for name in dict.fromkeys(names):
        module = name.replace(".", "/")
        for root in dict.fromkeys((*facts.import_roots, facts.folder, facts.root, "src", "", os.path.dirname(file))):
            path = os.path.normpath(os.path.join(root, module))
            yield from (f"{path}.py", path)
            compiled = sorted((facts.top / path).parent.glob(f"{os.path.basename(path)}.*"))
            yield from (os.path.relpath(found, facts.top) for found in compiled if found.suffix in (".so", ".pyd"))


def _is_pointer(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False

"""Why a test cannot run in a fresh copy."""

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
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain, read_python
from swarm_tui.sweep.withheld_variables import missed_variable

_MOST_MODULES: Final = 2_000
_ALTERNATIVES: Final = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def setup_option(paths: Iterable[str], setup: str = "") -> str:
    """Return the option that copies ignored files and folders into every copy, after the set-up that there is."""
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


def modules_of_checkout(loaded: Mapping[str, str], top: Path) -> Iterator[str]:
    """Yield the path from the top of each module that a copy loaded from the checkout."""
    for name, begin in loaded.items():
        place = os.path.normpath(os.path.join(os.path.relpath(begin, top), *name.split(".")))
        if (top / f"{place}.py").is_file():
            yield f"{place}.py"
        elif (top / place).is_dir():
            yield place


def imported_later(repository: Repository, copy: Path, collected: Collected) -> Iterator[str]:
    """Yield the ignored modules that a function in a loaded file imports, where a missing module is an error.

    The tests are not run here, so these imports have not been tried.
    """
    ignored = _ignored_modules(repository)
    if not ignored:
        return
    roots = {os.path.relpath(entry, copy) for entry in collected.path if Path(entry).is_relative_to(copy)}
    names = {os.path.basename(module.removesuffix("/__init__")).encode() for module in ignored}
    for file in collected.files:
        source = read_regular(copy / file)
        if not any(name in source for name in names):
            continue
        module = read_python(source)
        for place in _lazy_imports(module, file, roots) if module is not None else ():
            path = ignored.get(place) or ignored.get(f"{place}/__init__")
            if path:
                yield path


def _ignored_modules(repository: Repository) -> dict[str, str]:
    """Return the path of each module that git ignores, by the path without its ending; from the top."""
    found: dict[str, str] = {}
    for path in ignored_project_files(repository):
        for file in files_below(repository, path):
            if file.endswith(".py"):
                found[file.removesuffix(".py")] = path if file.endswith("/__init__.py") else file
            if len(found) == _MOST_MODULES:
                return found
    return found


def _lazy_imports(module: ast.Module, file: str, roots: Iterable[str]) -> Iterator[str]:
    """Yield the places, from the top and without an ending, of modules that the functions of a file import."""
    for node in _imports_in(module, in_function=False):
        if isinstance(node, ast.Import):
            names, starts = [alias.name for alias in node.names], set(roots)
        else:
            base = [node.module] if node.module else []
            names = [*base, *(".".join([*base, alias.name]) for alias in node.names)]
            above = os.path.join(os.path.dirname(file), *[os.pardir] * (node.level - 1))
            starts = {above} if node.level else set(roots)
        for name in names:
            yield from (os.path.normpath(os.path.join(start, *name.split("."))) for start in starts)


def _imports_in(node: ast.AST, *, in_function: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            if in_function:
                yield child
        elif isinstance(child, ast.Try) and any(_is_alternative(handler) for handler in child.handlers):
            for other in (*child.handlers, *child.orelse, *child.finalbody):
                yield from _imports_in(other, in_function=in_function)
        elif not _is_for_types(child):
            inside = in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports_in(child, in_function=inside)


def _is_alternative(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches the error of a missing module."""
    if handler.type is None:
        return True
    names = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    return bool(names & _ALTERNATIVES)


def _is_for_types(node: ast.AST) -> bool:
    """Whether a statement is read by type checkers only, or ignores a missing module."""
    if isinstance(node, ast.If):
        return any(getattr(part, "id", getattr(part, "attr", "")) == "TYPE_CHECKING" for part in ast.walk(node.test))
    return isinstance(node, ast.With) and any(
        isinstance(part, ast.Name) and part.id in _ALTERNATIVES
        for item in node.items
        for part in ast.walk(item.context_expr)
    )


_UNEXPLAINED: Final = (
    "pytest does not find them in a copy",
    "`git worktree add` makes one in which you can see why",
)
TESTS_NAMED: Final = 3
FILES_NAMED: Final = 5
_MODULE: Final = re.compile(r"No module named '([\w.]+)'")
_NAME: Final = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")
_QUOTED: Final = re.compile(r"'([^'\n]{1,300})'|\"([^\"\n]{1,300})\"")
_WORD: Final = re.compile(r"[\w./@+-]*\w")
_POINTER: Final = b"version https://git-lfs"


def name_tests(tests: Sequence[str]) -> str:
    """Return the number of tests and the names of the first ones."""
    more = "" if len(tests) <= TESTS_NAMED else ", ..."
    return f"{counted(len(tests), 'test')}: {', '.join(plain(test, 100) for test in tests[:TESTS_NAMED])}{more}"


@dataclass(frozen=True, slots=True)
class Difference:
    """Why some tests cannot be worked on in a copy, and what mends it."""

    cause: str
    cure: str
    tests: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Return all of it in one line."""
        tests = f" ({name_tests(self.tests)})" if self.tests else ""
        return f"{self.cause}{tests}: {self.cure}"


@dataclass(frozen=True)
class CopyFacts:
    """A checkout beside a fresh copy of its commit."""

    repository: Repository
    base: str
    copy: Path
    folder: str = ""
    """Where pytest is run, from the top."""
    root: str = ""
    """Where node ids begin, from the top."""
    import_roots: Sequence[str] = ()
    setup: str = ""
    """The set-up command of the copy."""
    has_checkout: bool = True
    """Whether the set-up of an agent's copy finds the checkout: on other hosts it does not."""
    passed: Sequence[str] = ()
    """The names of the variables of `--pass-env`."""
    ignored_modules: dict[str, None] = field(default_factory=dict)
    """The modules that git ignores and the copy has been found to need; folders end with a slash."""
    _causes: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def top(self) -> Path:
        return self.repository.root

    def lacks(self, path: str) -> bool:
        """Return whether the checkout has a file or folder, and the copy has it not or has an empty folder."""
        if path.startswith("../") or path in ("", ".", ".."):
            return False
        there, here = self.top / path, self.copy / path
        if not os.path.lexists(there):
            return False
        is_emptied = here.is_dir() and not any(here.iterdir()) and there.is_dir() and any(there.iterdir())
        return is_emptied or not os.path.lexists(here)

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

    def making(self, paths: Iterable[str]) -> str:
        """Return the option that makes ignored files in every copy."""
        return setup_option(paths, self.setup) if self.has_checkout else "--setup CMD, which makes it on each host"

    def _topmost(self, path: str) -> str:
        """Return a missing path, or the topmost folder above it that is missing as a whole."""
        parent = str(PurePosixPath(path).parent)
        while self.lacks(parent):
            path, parent = parent, str(PurePosixPath(parent).parent)
        return path

    def cause_of(self, path: str) -> tuple[str, str]:
        """Return why the copy lacks a path, and what to do."""
        path = self._topmost(path)
        if path not in self._causes:
            self._causes[path] = self._find_cause(path)
        return self._causes[path]

    def _find_cause(self, path: str) -> tuple[str, str]:
        name = plain(path, 200) + ("/" if (self.top / path).is_dir() else "")
        module = next((module for module in self.submodules if f"{path}/".startswith(f"{module}/")), None)
        if module is not None:
            return (
                f"the submodule {plain(module, 200)} is not filled in a copy",
                f"`git submodule update --init {plain(module, 200)}` here, so that copies can take it from this disk",
            )
        if ignored_files(self.repository, path):
            whole = path + ("/" if (self.top / path).is_dir() else "")
            return (
                f"{name} is ignored by git, so no copy has it",
                f"make it in every copy with {self.making([whole])}, or commit it",
            )
        return f"{name} is not committed, so no copy has it", f"commit it: the agents begin at commit {self.base[:10]}"


def explain(
    missing: Sequence[tuple[str, str]], errors: Mapping[str, str], here: Collection[str], facts: CopyFacts
) -> list[Difference]:
    """Return why tests, each with its file, are not there in a copy, while those of `here` are.

    `errors` are pytest's, by file, "" for all.
    """
    found: dict[tuple[str, str], list[str]] = {}
    cases = {_function_of(test): test for test in sorted(here, reverse=True)}
    for test, file in missing:
        text = errors.get(file) or errors.get("", "")
        cause = _cause(file, text, facts)
        case = cases.get(_function_of(test)) if cause == _UNEXPLAINED else None
        if case is not None:
            cause = (
                f"pytest finds other parameters for them in a copy, such as {plain(case, 150)}",
                "ids must not change from run to run, and what parameters are made of has to be committed, "
                "or made in every copy with --setup CMD",
            )
        found.setdefault(cause, []).append(test)
    return [Difference(cause, cure, tuple(tests)) for (cause, cure), tests in found.items()]


def refuse_ignored_modules(facts: CopyFacts) -> None:
    """Raise UsageError for modules that git ignores and the tests import: every agent would lack them."""
    if not facts.ignored_modules:
        return
    paths = sorted(facts.ignored_modules)
    named = ", ".join(plain(path, 200) for path in paths[:FILES_NAMED])
    more = f" and {len(paths) - FILES_NAMED} more" if len(paths) > FILES_NAMED else ""
    are, them = ("is", "it") if len(paths) == 1 else ("are", "them")
    raise UsageError(
        f"{named}{more} {are} ignored by git, so the agents' copies lack {them}, and the project imports {them}",
        f"add {facts.making(paths)}, or commit {them}",
    )


def _cause(file: str, text: str, facts: CopyFacts) -> tuple[str, str]:
    if facts.lacks(file):
        return facts.cause_of(file)
    if text:
        around = next((path for path in _around(file, facts) if facts.lacks(path)), None)
        likely = facts.cause_of(around) if around is not None else None
        return (
            cause_in(text, file, facts)
            or likely
            or (
                f"{plain(file, 200)} cannot be imported in a copy: {first_exception(text) or plain(text.strip(), 200)}",
                "whatever it needs there has to be committed, or made in every copy with --setup CMD",
            )
        )
    if file in facts.changed:
        return (
            f"they are in your uncommitted changes of {plain(file, 200)}",
            f"commit them: the agents begin at commit {facts.base[:10]}",
        )
    configured = sorted(path for path in facts.changed if path.endswith((".toml", ".ini", ".cfg", "conftest.py")))
    if configured:
        return (
            f"pytest does not find them without your uncommitted changes of {', '.join(configured[:FILES_NAMED])}",
            f"commit those: the agents begin at commit {facts.base[:10]}",
        )
    return _UNEXPLAINED


def _function_of(test: str) -> str:
    """Return a node id without its parameters."""
    file, separator, rest = test.partition("::")
    return file + separator + rest.partition("[")[0]


def _around(file: str, facts: CopyFacts) -> Iterator[str]:
    """Return what a test may use without naming it: conftest.py files, pytest's settings, submodules."""
    folders = [str(folder) for folder in PurePosixPath(file).parents]
    yield from (os.path.normpath(os.path.join(folder, "conftest.py")) for folder in folders)
    settings = ("pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
    yield from (os.path.normpath(os.path.join(facts.root, name)) for name in settings)
    yield from sorted(facts.submodules)


def cause_in(text: str, file: str, facts: CopyFacts) -> tuple[str, str] | None:
    """Return the first thing that an error names and the copy, or its environment, lacks."""
    if name := missed_variable(text, facts.passed):
        return f"{name} is not passed to agents and test runs", f"--pass-env {name} passes it"
    for path in _places_of_modules(text, file, facts):
        facts.add_module(path)
    for path in paths_in(text, file, facts):
        if facts.lacks(path):
            return facts.cause_of(path)
        if _is_pointer(facts.copy / path) and not _is_pointer(facts.top / path):
            return (
                f"{plain(path, 200)} is only a pointer of Git LFS in a copy",
                "install git-lfs where swarm-tui runs, so that copies can take it from this disk",
            )
    return None


def paths_in(text: str, file: str, facts: CopyFacts) -> Iterator[str]:
    """Return the paths below the top that an error may speak of: modules that were not found, files that it names."""
    beside = os.path.dirname(file)
    yield from _places_of_modules(text, file, facts)
    text = text.replace(f"{facts.copy.resolve()}/", "").replace(f"{facts.copy}/", "")
    words = [first or second for first, second in _QUOTED.findall(text)] + _WORD.findall(text)
    for word in dict.fromkeys(words):
        if "/" in word or "." in word:
            for root in dict.fromkeys(("", facts.folder, facts.root, beside)):
                if not word.startswith("/"):
                    yield os.path.normpath(os.path.join(root, word))


def _places_of_modules(text: str, file: str, facts: CopyFacts) -> Iterator[str]:
    """Yield the paths, from the top, of the modules that an error says are missing."""
    for name in _modules_in(text):
        module = name.replace(".", "/")
        for root in dict.fromkeys((*facts.import_roots, facts.folder, facts.root, "src", "", os.path.dirname(file))):
            place = os.path.normpath(os.path.join(root, module))
            yield from (f"{place}.py", place)
            compiled = sorted((facts.top / place).parent.glob(f"{os.path.basename(place)}.*"))
            yield from (os.path.relpath(path, facts.top) for path in compiled if path.suffix in (".so", ".pyd"))


def _modules_in(text: str) -> list[str]:
    names = [f"{module}.{name}" for name, module in _NAME.findall(text)]
    return list(dict.fromkeys([*_MODULE.findall(text), *names]))


def _is_pointer(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False


def left_behind_sentence(paths: Iterable[str]) -> str:
    """Return what is told of files that no copy has, before it is known whether a test misses them; "" for none."""
    named = [plain(path, 100) for path in paths]
    more = f" and {len(named) - FILES_NAMED} more" if len(named) > FILES_NAMED else ""
    what = ", ".join(named[:FILES_NAMED])
    return f"not in the agents' copies, since git ignores them: {what}{more} (--setup can make them)" if named else ""

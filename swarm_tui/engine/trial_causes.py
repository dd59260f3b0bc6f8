"""Why tests of the user's checkout cannot be collected or run in a fresh copy: what the copy lacks, and the cure."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.parts import find_submodules
from swarm_tui.model.formatting import counted
from swarm_tui.model.text import plain
from swarm_tui.regular_file import open_regular

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
_PLAIN_PATH: Final = re.compile(r"[\w.][\w./+-]*", re.ASCII)
_POINTER: Final = b"version https://git-lfs"
_OF_TOOLS: Final = re.compile(
    r"(^|/)(\.?venv|env|node_modules|__pycache__|\.git|\.tox|\.nox|\.eggs|\.idea|\.vscode|\.DS_Store|htmlcov|\.coverage.*"
    r"|\.swarm|\.test_output|\.hypothesis|\.\w+_cache|[^/]*\.egg-info|[^/]*\.py[co]|[^/]*\.log|\.env\.local)(/|$)"
)


@dataclass(frozen=True, slots=True)
class Difference:
    """Why some tests cannot be worked on in a copy, and what mends it."""

    cause: str
    cure: str
    tests: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Return all of it in one line."""
        named = ", ".join(plain(test, 100) for test in self.tests[:TESTS_NAMED])
        more = "" if len(self.tests) <= TESTS_NAMED else ", ..."
        tests = f" ({counted(len(self.tests), 'test')}: {named}{more})" if self.tests else ""
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

    def cause_of(self, path: str) -> tuple[str, str]:
        """Return why the copy lacks a path, and the cure; of a folder that is missing as a whole, its topmost one."""
        parent = str(PurePosixPath(path).parent)
        while self.lacks(parent):
            path, parent = parent, str(PurePosixPath(parent).parent)
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
        if _ignored(self.repository, path):
            return (
                f"{name} is ignored by git, so no copy has it",
                f"make it in every copy with {self._making(path)}, or commit it",
            )
        return f"{name} is not committed, so no copy has it", f"commit it: the agents begin at commit {self.base[:10]}"

    def _making(self, path: str) -> str:
        """Return the option that makes what git ignores in every copy; of a single file that is to copy it."""
        if (self.top / path).is_file() and _PLAIN_PATH.fullmatch(path):
            return f"--setup 'cp \"$SWARM_CHECKOUT/{path}\" {path}'"
        return "--setup CMD (which finds your checkout in $SWARM_CHECKOUT)"


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
                f"{plain(file, 200)} cannot be imported in a copy: {_last_error(text)}",
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
    """Return the first thing that an error names and the copy lacks."""
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
    for name in _modules_in(text):
        module = name.replace(".", "/")
        for root in dict.fromkeys((*facts.import_roots, facts.folder, facts.root, "src", "", beside)):
            place = os.path.normpath(os.path.join(root, module))
            yield from (f"{place}.py", place)
            compiled = sorted((facts.top / place).parent.glob(f"{os.path.basename(place)}.*"))
            yield from (os.path.relpath(path, facts.top) for path in compiled if path.suffix in (".so", ".pyd"))
    text = text.replace(f"{facts.copy.resolve()}/", "").replace(f"{facts.copy}/", "")
    words = [first or second for first, second in _QUOTED.findall(text)] + _WORD.findall(text)
    for word in dict.fromkeys(words):
        if "/" in word or "." in word:
            for root in dict.fromkeys(("", facts.folder, facts.root, beside)):
                if not word.startswith("/"):
                    yield os.path.normpath(os.path.join(root, word))


def _modules_in(text: str) -> list[str]:
    names = [f"{module}.{name}" for name, module in _NAME.findall(text)]
    return list(dict.fromkeys([*_MODULE.findall(text), *names]))


def _is_pointer(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(len(_POINTER)) == _POINTER
    except OSError:
        return False


def _last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    return plain((marked or lines or ["no reason is given"])[-1], 200)


def files_left_behind(repository: Repository) -> list[str]:
    """Return what git ignores in a checkout, without what tools keep for themselves; folders end with a slash."""
    return [path for path in _ignored(repository) if not _OF_TOOLS.search(path)]


def _ignored(repository: Repository, *paths: str) -> list[str]:
    words = ("--others", "--ignored", "--exclude-standard", "--directory", "--", *paths)
    return repository.run("ls-files", "-z", *words, codes=(0, 128)).fields


def left_behind_sentence(paths: Iterable[str]) -> str:
    """Return what is told of files that no copy has, before it is known whether a test misses them; "" for none."""
    named = [plain(path, 100) for path in paths]
    more = f" and {len(named) - FILES_NAMED} more" if len(named) > FILES_NAMED else ""
    what = ", ".join(named[:FILES_NAMED])
    return f"not in the agents' copies, since git ignores them: {what}{more} (--setup can make them)" if named else ""

"""Collect tests."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.history import EVERY_SUBMODULE
from swarm_tui.adapters.git.working_tree import copy_working_tree
from swarm_tui.adapters.processes.environment import passed_variables
from swarm_tui.adapters.processes.run import finish_in_thread
from swarm_tui.adapters.pytest import (
    COPY_VARIABLE,
    NAMED_IN_VARIABLE,
    Collected,
    CollectedTest,
    CollectionError,
    PytestAdapter,
    find_import_path,
    first_exception,
    moved_text,
)
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.errors import NothingConcerned, ProgramMissing, SwarmError, UsageError
from swarm_tui.journal.folder import find_sweep, list_sweeps
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.pulled_files import read_used_code
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import OPEN_RESULTS, Baseline, State, summarize
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.model.used_code import UsedCode
from swarm_tui.sweep.withheld_variables import missed_variable, pass_hint
from swarm_tui.testing.affected import ChangedSource, KnownUse, compare_sources, functions_at, reason_to_run
from swarm_tui.testing.python import (
    find_pythons,
    import_roots,
    named_python,
    path_below,
    refuse_foreign_code,
    roots_below,
)

_SWEEPS_READ = 50


@dataclass(frozen=True, slots=True)
class SeenUse:
    """What a sweep saw of one test."""

    base: str
    used: UsedCode


class ChangedCode:
    """What lies between two commits of a repository, and what is known of its tests."""

    def __init__(self, repository: Repository, revision: str) -> None:
        self._repository = repository
        try:
            self._since = repository.resolve(revision)
        except SwarmError as error:
            raise UsageError(f"--affected-by {revision} names no commit", "give a commit, a branch or a tag") from error
        self._head = repository.head()
        self._changes = cache(self._find_changes)
        self._source = cache(self._read_source)

    def reasons(self, tests: Iterable[tuple[str, str]]) -> dict[str, str]:
        """Return why each test (node id, file) is concerned; an empty reason for one that is not."""
        seen = self._seen()
        return {test: self._reason(file, seen.get(test)) for test, file in tests}

    def _reason(self, file: str, seen: SeenUse | None) -> str:
        changes = self._changes(self._since)
        known = self._known(seen) if seen is not None else None
        reason = reason_to_run(file, known, changes)
        if reason or seen is None or known is None or seen.base == self._since:
            return reason
        # What it used may have changed since it was looked at: then it may use something else now.
        doubt = reason_to_run(file, known, self._changes(seen.base))
        return f"{doubt} since it was last looked at, at {seen.base[:10]}" if doubt else ""

    def _known(self, seen: SeenUse) -> KnownUse | None:
        functions = {}
        for file, lines in seen.used.functions.items():
            source = self._source(seen.base, file)
            functions[file] = functions_at(source, lines) if source is not None else frozenset[str]()
        return KnownUse(seen.used, functions)

    def _find_changes(self, since: str) -> tuple[ChangedSource, ...]:
        names = self._repository.run(
            "diff", "--name-only", "-z", "--no-renames", EVERY_SUBMODULE, since, self._head
        ).fields
        return tuple(compare_sources(name, self._source(since, name), self._source(self._head, name)) for name in names)

    def _read_source(self, commit: str, path: str) -> str | None:
        found = self._repository.run("cat-file", "blob", f"{commit}:{path}", codes=(0, 128))
        return found.stdout.decode("utf-8", "replace") if found.code == 0 else None

    def _seen(self) -> Mapping[str, SeenUse]:
        """Return what is known of each test, from the newest sweep that has looked at it."""
        found: dict[str, SeenUse] = {}
        for folder in reversed(list_sweeps(self._repository.root)[-_SWEEPS_READ:]):
            try:
                opened = open_sweep(folder)
                self._repository.resolve(opened.spec.base)
            except SwarmError:
                continue
            for record in opened.state.tests():
                if record.test not in found and (used := read_used_code(folder, record.agent)) is not None:
                    found[record.test] = SeenUse(opened.spec.base, used)
        return found


Progress = Callable[[str], None]

_BASELINES: Final = {
    "red": frozenset({Baseline.RED}),
    "flaky": frozenset({Baseline.FLAKY, Baseline.CLASH, Baseline.ORDER}),
    "green": frozenset({Baseline.GREEN}),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the collected tests are wanted; all of them when nothing is said."""

    only: Literal["red", "flaky", "green"] | None = None
    """Those whose baseline says so."""
    changed_since: str | None = None
    affected_by: str | None = None
    only_failed_of: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """The tests of a sweep, and how a single one of them is run."""

    tests: tuple[tuple[str, str, int], ...]
    """Node id, file from the top of the repository, line."""
    python: str
    """A path from the top of a copy when the copy has its own."""
    folder: str
    root: str
    run_options: tuple[str, ...]
    import_roots: tuple[str, ...]
    traits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fixtures, markers and parameters of each test, as words."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """The group of each test that has one: by its mark `xdist_group`, or by `--serial`."""
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    """What each test came to in fresh copies."""
    left_out: tuple[str, ...] = ()
    """Sentences on tests that have no agent, and what mends that."""


async def find_tests(
    repository: Repository,
    folder: Path,
    *,
    python: str | None,
    arguments: Sequence[str],
    selection: Selection,
    setup: str | None = None,
    progress: Progress,
    count: Progress = lambda _: None,
    alone: Sequence[str] = (),
    passed: Sequence[str] = (),
) -> Found:
    """Collect in the project's interpreter and choose; files that cannot be imported are left out, and named.

    `count` gets how many tests were found, again and again; `passed` names the variables of `--pass-env`.
    """
    progress("collecting the tests")

    def tell(number: int) -> None:
        count(f"{counted(number, 'test')} so far")

    interpreter, collected = await collect_tests(repository, folder, python, arguments, tell, passed)
    if not collected.tests or any(not error.test for error in collected.errors):
        refuse_errors(collected, passed)
    left_out = tuple(_broken_sentence(error) for error in collected.errors)
    for sentence in left_out:
        progress(f"left out: {sentence}")
    if not collected.tests:
        raise UsageError("pytest finds no tests here", "`pytest --collect-only` shows what it sees")
    top = repository.root.resolve()
    root = checked_root(collected, top)
    in_copy = named_python(python, folder, repository.root)[1] if python else ""
    refuse_foreign_code(repository, collected, in_copy, setup)
    wanted = _chosen(collected, repository, root, selection)
    # pytest lists a test twice when it is told to, or when a plugin gives two the same name.
    lines = {found.test: found.line for found in collected.tests if wanted is None or found.test in wanted}
    tests = tuple((test, _file_of(test, root, top), line) for test, line in lines.items())
    if not tests and selection.affected_by:
        raise NothingConcerned(f"what has changed since {plain(selection.affected_by, 100)} concerns no test")
    if not tests:
        raise UsageError(f"none of the {len(collected.tests)} tests is chosen", _why_none(selection))
    options = options_of(arguments, collected.positional)
    return Found(
        tests=tests,
        traits={found.test: found.traits for found in collected.tests},
        python=in_copy or interpreter,
        folder=path_below(folder.resolve(), top),
        root=path_below(root, top),
        run_options=(*_in_any_copy(options, top, folder.resolve()), *collected.single_run),
        import_roots=import_roots(collected, top),
        groups=groups_of(collected.tests, alone),
        left_out=left_out,
    )


async def collect_tests(
    repository: Repository,
    folder: Path,
    python: str | None,
    arguments: Sequence[str],
    tell: Callable[[int], object] | None = None,
    passed: Sequence[str] = (),
) -> tuple[str, Collected]:
    """Return the project's interpreter, and what its pytest collects in a copy of the checkout.

    A conftest.py may write files when it is imported, so nothing is collected in the checkout. Paths are returned as
    they are in the checkout.
    """
    if repository.is_bare:
        raise UsageError(
            f"{plain(str(repository.root))} is a bare repository, which has no files to test",
            "run swarm-tui in a clone: `git clone`",
        )
    top = repository.root.resolve()
    missing: ProgramMissing | None = None
    scratch = ScratchFolder("swarm-collect-")
    try:
        copy = scratch.path.resolve() / top.name
        await finish_in_thread(lambda: copy_working_tree(repository, copy))
        words = list(_in_copy(arguments, folder.resolve(), top, copy))
        async for candidate in _candidates(repository, folder, python):
            roots = await _editable_roots(candidate, folder, top)
            variables = {NAMED_IN_VARIABLE: str(repository.root), COPY_VARIABLE: str(copy)}
            variables = passed_variables(passed) | variables
            place = copy / path_below(folder.resolve(), top)
            adapter = PytestAdapter(candidate, place, [copy / root for root in roots], (copy, top), variables)
            try:
                collected = (await adapter.collect(words, tell)).moved(copy, top)
                given = dict(zip(words, arguments, strict=True))
                return candidate, replace(
                    collected, positional=tuple(given.get(word, word) for word in collected.positional)
                )
            except ProgramMissing as error:
                missing = missing or error
            except SwarmError as error:
                if outside := _outside_of(arguments, folder, top):
                    raise UsageError(
                        f"{plain(outside, 300)} is outside of the repository {top}", "run swarm-tui in its own project"
                    ) from None
                name = missed_variable(error.message, passed)
                hint = pass_hint(name) if name else moved_text(error.hint, copy, top)
                raise type(error)(moved_text(error.message, copy, top), hint) from None
    finally:
        await asyncio.to_thread(scratch.close)
    raise missing or UsageError("no Python was found for this project", "name one with --python")


def _in_copy(arguments: Sequence[str], folder: Path, top: Path, copy: Path) -> Iterator[str]:
    """Yield pytest's arguments for a copy of the checkout; files outside of the checkout are named as they are."""
    for word in arguments:
        path, separator, rest = word.partition("::")
        if path.startswith(os.pardir) and os.path.exists(folder / path):
            real = os.path.normpath(folder / path)
            word = (real if _is_outside(real, top) else path) + separator + rest
        yield moved_text(word, top, copy)


def _outside_of(arguments: Sequence[str], folder: Path, top: Path) -> str:
    """Return the first argument that names a file or folder outside of the repository; "" if none does."""
    for word in arguments:
        path = word.partition("::")[0]
        real = os.path.normpath(folder.resolve() / path)
        if not word.startswith("-") and os.path.exists(real) and _is_outside(real, top):
            return path
    return ""


def _is_outside(path: str, top: Path) -> bool:
    return not Path(path).is_relative_to(top)


async def _editable_roots(python: str, folder: Path, top: Path) -> tuple[str, ...]:
    """Return the folders of the checkout that an interpreter imports from before pytest is started."""
    prefix, found = await find_import_path(python, folder)
    return roots_below(found, top, prefix)


async def _candidates(repository: Repository, folder: Path, python: str | None) -> AsyncIterator[str]:
    if python:
        yield named_python(python, folder, repository.root)[0]
        return
    async for path in find_pythons(repository.root, folder):
        yield path


def checked_root(collected: Collected, top: Path) -> Path:
    """Return the folder that node ids are relative to; raise UsageError when it is outside of the repository."""
    root = collected.root.resolve()
    if not root.is_relative_to(top):
        raise UsageError(f"pytest's rootdir {root} lies outside of the repository {top}", "give --rootdir after --")
    if collected.outside:
        raise UsageError(
            f"pytest's rootdir is {root}, and {plain(collected.outside[0], 300)} lies outside of it",
            "give --rootdir=. after --, so that every test has a name of its own",
        )
    return root


def refuse_errors(collected: Collected, passed: Sequence[str] = ()) -> None:
    """Raise UsageError for tests that cannot be collected, with pytest's messages."""
    if collected.errors:
        name = missed_variable("\n".join(error.text for error in collected.errors), passed)
        hint = pass_hint(name) if name else "correct this, or leave the files out with pytest's --ignore"
        raise SwarmError(_errors_as_text(collected), hint)


def groups_of(tests: Iterable[CollectedTest], alone: Sequence[str]) -> dict[str, str]:
    """Return the group of each test that must not run beside others of it; a glob makes one of all that fit."""
    groups = {found.test: f"xdist_group {found.group}" for found in tests if found.group}
    for found in tests:
        file, _, name = found.test.partition("::")
        for glob in alone:
            if any(fnmatchcase(word, glob) for word in (found.test, file, name)) or found.test == glob:
                groups[found.test] = f"--serial {glob}"
                break
    return groups


def options_of(arguments: Sequence[str], positional: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments without files and node ids: those say what is collected, not how it is run."""
    left = list(positional)
    options = []
    for word in arguments:
        if word in left:
            left.remove(word)
        elif word != "--":
            options.append(word)
    return tuple(options)


def _in_any_copy(options: Iterable[str], top: Path, folder: Path) -> Iterator[str]:
    """Yield options with the paths of the checkout named from where pytest is run: there every copy has its own."""
    in_checkout = re.compile(re.escape(str(top)) + r"(?![\w.-])")
    for word in options:
        yield in_checkout.sub(lambda _: os.path.relpath(top, folder), word)


def _file_of(test: str, root: Path, top: Path) -> str:
    file = os.path.normpath(root / test.partition("::")[0])
    return os.path.relpath(file, top)


def _chosen(collected: Collected, repository: Repository, root: Path, selection: Selection) -> Collection[str] | None:
    """Return the tests that the selection leaves, or None for all."""
    wanted: set[str] | None = None
    if selection.only_failed_of:
        wanted = _failed_of(repository.root, selection.only_failed_of)
    if selection.changed_since:
        changed = _changed_since(repository, selection.changed_since)
        kept = {found.test for found in collected.tests if _is_affected(found.test, changed, root, repository.root)}
        wanted = kept if wanted is None else wanted & kept
    if selection.affected_by:
        reasons = _reasons(collected, repository, root, selection.affected_by)
        kept = {test for test, reason in reasons.items() if reason}
        wanted = kept if wanted is None else wanted & kept
    return wanted


async def explain_affected(folder: Path, python: str | None, arguments: Sequence[str], revision: str) -> dict[str, str]:
    """Return why the change since a revision concerns each test; an empty reason for one that it does not concern."""
    repository = Repository.open(folder)
    _, collected = await collect_tests(repository, folder, python, arguments)
    return _reasons(collected, repository, checked_root(collected, repository.root.resolve()), revision)


def _reasons(collected: Collected, repository: Repository, root: Path, revision: str) -> dict[str, str]:
    top = repository.root.resolve()
    return ChangedCode(repository, revision).reasons(
        (found.test, _file_of(found.test, root, top)) for found in collected.tests
    )


def choose_by_baseline(found: Found, selection: Selection) -> Found:
    """Return the tests with the selected baseline; raise NothingConcerned when there are none."""
    if selection.only is None:
        return found
    fitting = _BASELINES[selection.only]
    tests = tuple(entry for entry in found.tests if found.baselines.get(entry[0]) in fitting)
    if not tests:
        counts = summarize([found.baselines.get(test, Baseline.UNKNOWN) for test, _, _ in found.tests])
        raise NothingConcerned(f"no test is {selection.only} in a fresh copy ({counts}): nothing to do")
    return replace(found, tests=tests)


def _failed_of(top: Path, sweep: str) -> set[str]:
    state = open_sweep(find_sweep(top, sweep)).state
    return {record.test for record in state.tests() if record.state is State.DONE and record.result in OPEN_RESULTS}


def _changed_since(repository: Repository, revision: str) -> frozenset[str]:
    base = repository.resolve(revision)
    return frozenset(
        repository.run("diff", "--name-only", "-z", "--no-renames", EVERY_SUBMODULE, base, repository.head()).fields
    )


def _is_affected(test: str, changed: Collection[str], root: Path, top: Path) -> bool:
    """Whether the test's file has changed, or a conftest.py above it."""
    file = PurePosixPath(_file_of(test, root, top.resolve()))
    conftests = {str(folder / "conftest.py") for folder in file.parents}
    return str(file) in changed or any(path in conftests for path in changed)


def _why_none(selection: Selection) -> str:
    reasons: Mapping[str, bool] = {
        f"no test file has changed since {selection.changed_since}": bool(selection.changed_since),
        f"none failed in {selection.only_failed_of}": bool(selection.only_failed_of),
    }
    return "; ".join(reason for reason, is_asked in reasons.items() if is_asked)


def _broken_sentence(error: CollectionError) -> str:
    lines = [line.strip() for line in plain_lines(error.text).splitlines() if line.strip()]
    why = first_exception(error.text) or (lines or ["pytest gives no reason"])[-1]
    return f"{plain(error.test, 200)} cannot be collected: {plain(why, 300)}"


def _errors_as_text(collected: Collected) -> str:
    """Return the collection errors as pytest shows them, also where the project has silenced its terminal."""
    text = plain_lines(collected.text).strip()
    if "ERROR" in text:
        return f"pytest cannot collect these tests\n\n{text}\n"
    count = len(collected.errors)
    shown = "\n\n".join(plain_lines(error.text).strip() for error in collected.errors[:20])
    return f"pytest cannot collect these tests ({counted(count, 'error')})\n\n{shown}\n"

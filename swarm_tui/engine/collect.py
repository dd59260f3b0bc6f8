"""Finds the tests of a sweep: the project's interpreter, what pytest collects there, and which of it is chosen."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final, Literal

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.pytest import Collected, CollectedTest, CollectionError, PytestAdapter
from swarm_tui.engine.affected import ChangedCode
from swarm_tui.engine.code_origin import import_roots, path_below, refuse_foreign_code
from swarm_tui.engine.project_python import find_pythons, named_python
from swarm_tui.errors import NothingConcerned, ProgramMissing, SwarmError, UsageError
from swarm_tui.journal.folder import find_sweep
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.baseline import Baseline
from swarm_tui.model.formatting import counted
from swarm_tui.model.states import UNSOLVED_RESULTS, State
from swarm_tui.model.text import plain, plain_lines

Progress = Callable[[str], None]

_BASELINES: Final = {
    "red": frozenset({Baseline.RED}),
    "flaky": frozenset({Baseline.FLAKY, Baseline.CLASH}),
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
    """The group of each test that has one: by its mark `xdist_group`, or by `--alone`."""
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
) -> Found:
    """Collect in the project's interpreter and choose; files that cannot be imported are left out, and named.

    `count` gets how many tests were found, again and again.
    """
    progress("collecting the tests")

    def tell(number: int) -> None:
        count(f"{counted(number, 'test')} so far")

    adapter, collected = await collect_tests(repository, folder, python, arguments, tell)
    if not collected.tests or any(not error.test for error in collected.errors):
        refuse_errors(collected)
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
        python=in_copy or adapter.python,
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
) -> tuple[PytestAdapter, Collected]:
    """Return pytest in the project's interpreter, and what it collects there."""
    missing: ProgramMissing | None = None
    async for candidate in _candidates(repository, folder, python):
        adapter = PytestAdapter(candidate, folder, top=repository.root)
        try:
            return adapter, await adapter.collect(arguments, tell)
        except ProgramMissing as error:
            missing = missing or error
    raise missing or UsageError("no Python was found for this project", "name one with --python")


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


def refuse_errors(collected: Collected) -> None:
    """Raise UsageError for tests that cannot be collected, with pytest's messages."""
    if collected.errors:
        raise SwarmError(_errors_as_text(collected), "correct this, or leave the files out with pytest's --ignore")


def groups_of(tests: Iterable[CollectedTest], alone: Sequence[str]) -> dict[str, str]:
    """Return the group of each test that must not run beside others of it; a glob makes one of all that fit."""
    groups = {found.test: f"xdist_group {found.group}" for found in tests if found.group}
    for found in tests:
        file, _, name = found.test.partition("::")
        for glob in alone:
            if any(fnmatchcase(word, glob) for word in (found.test, file, name)) or found.test == glob:
                groups[found.test] = f"--alone {glob}"
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
    """Return the tests whose baseline is the one that is asked for; raise UsageError when there are none."""
    if selection.only is None:
        return found
    fitting = _BASELINES[selection.only]
    tests = tuple(entry for entry in found.tests if found.baselines.get(entry[0]) in fitting)
    if not tests:
        raise UsageError(f"none of the {len(found.tests)} tests is chosen", f"none is {selection.only} in a fresh copy")
    return replace(found, tests=tests)


def _failed_of(top: Path, sweep: str) -> set[str]:
    state = open_sweep(find_sweep(top, sweep)).state
    return {record.test for record in state.tests() if record.state is State.DONE and record.result in UNSOLVED_RESULTS}


def _changed_since(repository: Repository, revision: str) -> frozenset[str]:
    base = repository.resolve(revision)
    return frozenset(repository.run("diff", "--name-only", "-z", "--no-renames", base, repository.head()).fields)


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
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    why = (marked or lines or ["pytest gives no reason"])[-1]
    return f"{plain(error.test, 200)} cannot be collected: {plain(why, 300)}"


def _errors_as_text(collected: Collected) -> str:
    """Return the collection errors as pytest shows them, also where the project has silenced its terminal."""
    text = plain_lines(collected.text).strip()
    if "ERROR" in text:
        return f"pytest cannot collect these tests\n\n{text}\n"
    count = len(collected.errors)
    shown = "\n\n".join(plain_lines(error.text).strip() for error in collected.errors[:20])
    return f"pytest cannot collect these tests ({counted(count, 'error')})\n\n{shown}\n"

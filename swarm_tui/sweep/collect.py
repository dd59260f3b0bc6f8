"""Collect the tests of a project, select those of a sweep, and find withheld variables that the project needs."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

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
from swarm_tui.journal.pulled_files import UsedCode, read_used_code
from swarm_tui.model.environment import is_allowed_name, withheld_names
from swarm_tui.model.formatting import counted, named
from swarm_tui.model.masking import is_secret_name
from swarm_tui.model.options import RunOptions
from swarm_tui.model.results import OPEN_RESULTS, Baseline, State, summarize
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.testing.affected import ChangedSource, compare_sources, functions_at, reason_to_run
from swarm_tui.testing.python import (
    find_pythons,
    import_roots,
    named_python,
    path_below,
    refuse_foreign_code,
    roots_below,
)
from swarm_tui.testing.reports import FailedRun, read_failed_run

_SETTINGS_AND_CODE: Final = ("*.py", "*.toml", "*.ini", "*.cfg")
_READ: Final = r"(environ|getenv)[^'\"#]{0,20}['\"](%s)['\"]"
_NAMES_NAMED: Final = 5
# As programs report that a variable is missing.
_MISSED: Final = (
    r"KeyError: ['\"]{name}['\"]",
    r"environ\w*\W{{1,6}}(?:get\W{{1,2}})?{name}\b",
    r"(?i:environment variable|env var)[^\n]{{0,30}}\b{name}\b",
    r"\b{name}\b[^\n]{{0,40}}(?i:environment variable|env var|not set|unset|must be set|required|missing|undefined)",
)


def missed_variable(text: str, passed: Collection[str]) -> str:
    """Return the first withheld variable whose absence a message of the project reports, or ""."""
    for name in withheld_names(os.environ, passed):
        if name in text and any(re.search(form.format(name=re.escape(name)), text) for form in _MISSED):
            return name
    return ""


def pass_hint(name: str) -> str:
    """Return the option that passes a withheld variable."""
    return f"`--pass-env {name}` passes {name}, which is set here, to agents and test runs"


def report_withheld(repository: Repository, base: str, passed: Collection[str]) -> list[str]:
    """Return sentences on withheld variables that the project's files read, and on secrets in common variables."""
    names = [name for name in withheld_names(os.environ, passed) if re.fullmatch(r"\w+", name)]
    sentences = [
        f"{name} contains a secret, so that agents and test runs do not get it: --pass-env {name} passes it"
        for name in names
        if is_allowed_name(name) and not is_secret_name(name)
    ]
    found = _names_read(repository, base, names) if names else []
    if found:
        listed = ", ".join(found[:_NAMES_NAMED]) + (", ..." if len(found) > _NAMES_NAMED else "")
        options = " ".join(f"--pass-env {name}" for name in found[:_NAMES_NAMED])
        sentences.append(f"the project reads {listed}, but agents and test runs do not get that: {options}")
    return sentences


def _names_read(repository: Repository, base: str, names: Collection[str]) -> list[str]:
    """Return the names that files of a commit read from the environment."""
    words = ("grep", "-h", "-o", "-I", "-E", _READ % "|".join(names), base, "--", *_SETTINGS_AND_CODE)
    answer = repository.run(*words, environment={"GIT_LITERAL_PATHSPECS": "0"}, codes=(0, 1))
    return sorted({name for line in answer.text.splitlines() for name in re.findall(r"['\"](\w+)['\"]$", line)})


Progress = Callable[[str], None]

_MOST_SWEEPS: Final = 50
_BASELINES: Final = {
    "red": frozenset({Baseline.RED}),
    "flaky": frozenset({Baseline.FLAKY, Baseline.CLASH, Baseline.ORDER}),
    "green": frozenset({Baseline.GREEN}),
}


@dataclass(frozen=True, slots=True)
class Found:
    """The tests of a sweep, and how to run one of them."""

    tests: tuple[tuple[str, str, int], ...]
    """Node id, file relative to the top of the repository, line."""
    python: str
    """The interpreter; a path relative to the top of a copy if each copy has its own."""
    folder: str
    """The working folder of pytest, relative to the top."""
    root: str
    """pytest's rootdir, relative to the top."""
    run_options: tuple[str, ...]
    import_roots: tuple[str, ...]
    traits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The fixtures, markers and parameters of each test, as words."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """The group of each test that must not run at the same time as others: by its mark `xdist_group` or --serial."""
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """Why tests get no agent, and how to change that."""


async def find_tests(
    repository: Repository,
    folder: Path,
    options: RunOptions,
    progress: Progress,
    count: Progress = lambda _: None,
) -> Found:
    """Collect the tests with the project's interpreter and select; files that cannot be imported are left out.

    `count` is called with the number of tests found so far.
    """
    progress("collecting the tests")
    arguments, passed = options.pytest_arguments, options.passed_environment

    def tell(number: int) -> None:
        count(f"{counted(number, 'test')} so far")

    interpreter, collected = await collect_tests(repository, folder, options.python, arguments, tell, passed)
    if not collected.tests or any(not error.test for error in collected.errors):
        refuse_errors(collected, passed)
    left_out = tuple(_error_sentence(error) for error in collected.errors)
    for sentence in left_out:
        progress(f"left out: {sentence}")
    if not collected.tests:
        raise UsageError("pytest finds no tests here", "run `pytest --collect-only` to see what it collects")
    top = repository.root.resolve()
    root = checked_root(collected, top)
    python_in_copy = named_python(options.python, folder, repository.root)[1] if options.python else ""
    refuse_foreign_code(repository, collected, python_in_copy, options.setup)
    report = await asyncio.to_thread(_earlier_report, options, folder, collected)
    if report is not None and report.unknown:
        names = named([plain(name, 200) for name in report.unknown])
        progress(f"not collected here: {counted(len(report.unknown), 'failed test')} of the report: {names}")
    selected = _select(collected, repository, root, options, report)
    # pytest lists a test twice if its arguments do, or if a plugin gives two tests the same name.
    lines = {found.test: found.line for found in collected.tests if selected is None or found.test in selected}
    tests = tuple((test, _file_of(test, root, top), line) for test, line in lines.items())
    if not tests and options.affected_by:
        raise NothingConcerned(f"no test is affected by the changes since {plain(options.affected_by, 100)}")
    if not tests:
        raise UsageError(f"none of the {len(collected.tests)} tests is selected", _why_none(options))
    run_options = _for_any_copy(options_of(arguments, collected.positional), top, folder.resolve())
    return Found(
        tests=tests,
        traits={found.test: found.traits for found in collected.tests},
        python=python_in_copy or interpreter,
        folder=path_below(folder.resolve(), top),
        root=path_below(root, top),
        run_options=(*run_options, *collected.single_run),
        import_roots=import_roots(collected, top),
        groups=groups_of(collected.tests, options.alone),
        baselines=report.baselines if report is not None else {},
        left_out=left_out,
    )


def _earlier_report(options: RunOptions, folder: Path, collected: Collected) -> FailedRun | None:
    """Return the results of the test report that --only-failed-of names, or None if it names a sweep."""
    path = folder / options.only_failed_of if options.only_failed_of else None
    if path is None or not path.is_file():
        return None
    return read_failed_run(path, [found.test for found in collected.tests])


async def collect_tests(
    repository: Repository,
    folder: Path,
    python: str | None,
    arguments: Sequence[str],
    tell: Callable[[int], object] | None = None,
    passed: Sequence[str] = (),
) -> tuple[str, Collected]:
    """Return the project's interpreter, and what its pytest collects in a copy of the checkout.

    A conftest.py may write files when it is imported, so nothing is collected in the checkout itself. The returned
    paths are those of the checkout.
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
            prefix, entries = await find_import_path(candidate, folder)
            roots = [copy / root for root in roots_below(entries, top, prefix)]
            variables = passed_variables(passed) | {NAMED_IN_VARIABLE: str(repository.root), COPY_VARIABLE: str(copy)}
            started_in = copy / path_below(folder.resolve(), top)
            adapter = PytestAdapter(candidate, started_in, roots, (copy, top), variables)
            try:
                collected = (await adapter.collect(words, tell)).moved(copy, top)
                given = dict(zip(words, arguments, strict=True))
                positional = tuple(given.get(word, word) for word in collected.positional)
                return candidate, replace(collected, positional=positional)
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
    raise missing or UsageError("no Python found for this project", "name one with --python")


def _in_copy(arguments: Sequence[str], folder: Path, top: Path, copy: Path) -> Iterator[str]:
    """Yield pytest's arguments for a copy of the checkout; paths outside of the checkout become absolute."""
    for word in arguments:
        path, separator, rest = word.partition("::")
        if path.startswith(os.pardir) and os.path.exists(folder / path):
            real = os.path.normpath(folder / path)
            word = (path if Path(real).is_relative_to(top) else real) + separator + rest
        yield moved_text(word, top, copy)


def _outside_of(arguments: Sequence[str], folder: Path, top: Path) -> str:
    """Return the first argument that names a file or folder outside of the repository, or ""."""
    for word in arguments:
        path = word.partition("::")[0]
        real = Path(os.path.normpath(folder.resolve() / path))
        if not word.startswith("-") and real.exists() and not real.is_relative_to(top):
            return path
    return ""


async def _candidates(repository: Repository, folder: Path, python: str | None) -> AsyncIterator[str]:
    if python:
        yield named_python(python, folder, repository.root)[0]
        return
    async for path in find_pythons(repository.root, folder):
        yield path


def checked_root(collected: Collected, top: Path) -> Path:
    """Return pytest's rootdir; raise UsageError if it or a test is outside of the repository."""
    root = collected.root.resolve()
    if not root.is_relative_to(top):
        raise UsageError(f"pytest's rootdir {root} is outside of the repository {top}", "add --rootdir after --")
    if collected.outside:
        raise UsageError(
            f"pytest's rootdir is {root}, and {plain(collected.outside[0], 300)} is outside of it",
            "add --rootdir=. after --, so that each test has a unique id",
        )
    return root


def refuse_errors(collected: Collected, passed: Sequence[str] = ()) -> None:
    """Raise SwarmError with pytest's messages for tests that cannot be collected."""
    if collected.errors:
        name = missed_variable("\n".join(error.text for error in collected.errors), passed)
        hint = pass_hint(name) if name else "correct the files, or leave them out with pytest's --ignore"
        raise SwarmError(_errors_as_text(collected), hint)


def groups_of(tests: Iterable[CollectedTest], alone: Sequence[str]) -> dict[str, str]:
    """Return the group of each test that must not run at the same time as others of the group.

    Each pattern of `alone` is a group, and so is each mark `xdist_group`.
    """
    groups = {found.test: f"xdist_group {found.group}" for found in tests if found.group}
    for found in tests:
        file, _, name = found.test.partition("::")
        for glob in alone:
            if any(fnmatchcase(word, glob) for word in (found.test, file, name)) or found.test == glob:
                groups[found.test] = f"--serial {glob}"
                break
    return groups


def options_of(arguments: Sequence[str], positional: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments without files and node ids, which select the tests and do not affect how they run."""
    left = list(positional)
    options = []
    for word in arguments:
        if word in left:
            left.remove(word)
        elif word != "--":
            options.append(word)
    return tuple(options)


def _for_any_copy(options: Iterable[str], top: Path, folder: Path) -> Iterator[str]:
    """Yield options with paths of the checkout relative to pytest's working folder, so that they fit any copy."""
    in_checkout = re.compile(re.escape(str(top)) + r"(?![\w.-])")
    for word in options:
        yield in_checkout.sub(lambda _: os.path.relpath(top, folder), word)


def _file_of(test: str, root: Path, top: Path) -> str:
    return os.path.relpath(os.path.normpath(root / test.partition("::")[0]), top)


def _select(
    collected: Collected, repository: Repository, root: Path, options: RunOptions, report: FailedRun | None
) -> Collection[str] | None:
    """Return the selected tests, or None for all."""
    selections: list[set[str]] = []
    if report is not None:
        selections.append(report.failed)
    elif options.only_failed_of:
        state = open_sweep(find_sweep(repository.root, options.only_failed_of)).state
        done = (record for record in state.tests() if record.state is State.DONE)
        selections.append({record.test for record in done if record.result in OPEN_RESULTS})
    if options.changed_since:
        selections.append(set(_changed_tests(collected, repository, root, options.changed_since)))
    if options.affected_by:
        reasons = _reasons(collected, repository, root, options.affected_by)
        selections.append({test for test, reason in reasons.items() if reason})
    return set.intersection(*selections) if selections else None


def _changed_tests(collected: Collected, repository: Repository, root: Path, revision: str) -> Iterator[str]:
    """Yield the tests whose file, or a conftest.py above it, has changed."""
    base, head, top = repository.resolve(revision), repository.head(), repository.root.resolve()
    changed = set(_changed_paths(repository, base, head))
    for found in collected.tests:
        file = PurePosixPath(_file_of(found.test, root, top))
        if changed & {str(file), *(str(folder / "conftest.py") for folder in file.parents)}:
            yield found.test


def _changed_paths(repository: Repository, old: str, new: str) -> Sequence[str]:
    return repository.run("diff", "--name-only", "-z", "--no-renames", EVERY_SUBMODULE, old, new).fields


async def explain_affected(folder: Path, python: str | None, arguments: Sequence[str], revision: str) -> dict[str, str]:
    """Return why the changes since a revision affect each test; "" for a test that they do not affect."""
    repository = Repository.open(folder)
    _, collected = await collect_tests(repository, folder, python, arguments)
    return _reasons(collected, repository, checked_root(collected, repository.root.resolve()), revision)


def _reasons(collected: Collected, repository: Repository, root: Path, revision: str) -> dict[str, str]:
    top, changed = repository.root.resolve(), _ChangedCode(repository, revision)
    return {found.test: changed.reason(found.test, _file_of(found.test, root, top)) for found in collected.tests}


class _ChangedCode:
    """The changes since a revision, and the code that each test used in earlier sweeps."""

    def __init__(self, repository: Repository, revision: str) -> None:
        self._repository = repository
        try:
            self._since = repository.resolve(revision)
        except SwarmError as error:
            raise UsageError(f"unknown revision: --affected-by {revision}", "use a commit, branch or tag") from error
        self._head = repository.head()
        self._changes = cache(self._find_changes)
        self._source = cache(self._read_source)
        self._used = self._read_used_code()

    def reason(self, test: str, file: str) -> str:
        """Return why the changes affect a test, or "" if they do not."""
        base, used = self._used.get(test, ("", None))
        functions = (
            {path: self._functions_at(base, path, lines) for path, lines in used.functions.items()} if used else {}
        )
        reason = reason_to_run(file, used, self._changes(self._since), functions)
        if reason or used is None or base == self._since:
            return reason
        # The code that the test uses may have changed since the recording, so the test may use other code now.
        reason = reason_to_run(file, used, self._changes(base), functions)
        return f"{reason} since its code was recorded at {base[:10]}" if reason else ""

    def _functions_at(self, commit: str, path: str, lines: Iterable[int]) -> frozenset[str]:
        source = self._source(commit, path)
        return functions_at(source, lines) if source is not None else frozenset()

    def _find_changes(self, since: str) -> tuple[ChangedSource, ...]:
        return tuple(
            compare_sources(path, self._source(since, path), self._source(self._head, path))
            for path in _changed_paths(self._repository, since, self._head)
        )

    def _read_source(self, commit: str, path: str) -> str | None:
        found = self._repository.run("cat-file", "blob", f"{commit}:{path}", codes=(0, 128))
        return found.stdout.decode("utf-8", "replace") if found.code == 0 else None

    def _read_used_code(self) -> Mapping[str, tuple[str, UsedCode]]:
        """Return for each test the newest recording, with its commit."""
        used_code: dict[str, tuple[str, UsedCode]] = {}
        for folder in reversed(list_sweeps(self._repository.root)[-_MOST_SWEEPS:]):
            try:
                opened = open_sweep(folder)
                self._repository.resolve(opened.spec.base)
            except SwarmError:
                continue
            for record in opened.state.tests():
                if record.test not in used_code and (used := read_used_code(folder, record.agent)) is not None:
                    used_code[record.test] = (opened.spec.base, used)
        return used_code


def choose_by_baseline(found: Found, only: str | None) -> Found:
    """Return the tests with the selected baseline; raise NothingConcerned if there are none."""
    if only is None:
        return found
    selected = _BASELINES[only]
    tests = tuple(entry for entry in found.tests if found.baselines.get(entry[0]) in selected)
    if not tests:
        counts = summarize([found.baselines.get(test, Baseline.UNKNOWN) for test, _, _ in found.tests])
        raise NothingConcerned(f"no test is {only} in a fresh copy ({counts}); nothing to do")
    return replace(found, tests=tests)


def _why_none(options: RunOptions) -> str:
    reasons = []
    if options.changed_since:
        reasons.append(f"no test file has changed since {options.changed_since}")
    if options.only_failed_of:
        reasons.append(f"none failed in {options.only_failed_of}")
    return "; ".join(reasons)


def _error_sentence(error: CollectionError) -> str:
    lines = [line.strip() for line in plain_lines(error.text).splitlines() if line.strip()]
    why = first_exception(error.text) or (lines or ["pytest gives no reason"])[-1]
    return f"{plain(error.test, 200)} cannot be collected: {plain(why, 300)}"


def _errors_as_text(collected: Collected) -> str:
    """Return the collection errors as pytest shows them, even if the project disables pytest's terminal output."""
    text = plain_lines(collected.text).strip()
    if "ERROR" in text:
        return f"pytest cannot collect these tests\n\n{text}\n"
    count = len(collected.errors)
    shown = "\n\n".join(plain_lines(error.text).strip() for error in collected.errors[:20])
    return f"pytest cannot collect these tests ({counted(count, 'error')})\n\n{shown}\n"

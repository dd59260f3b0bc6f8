"""Collect and run tests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import shlex
import tempfile
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from swarm_tui.adapters.processes.confinement import UNCONFINED, BoundedRunner
from swarm_tui.adapters.processes.environment import NO_BYTECODE, project_environment
from swarm_tui.adapters.processes.run import Finished, InheritedChannel, run_process
from swarm_tui.errors import AdapterError, LimitExceeded, ProgramMissing, UsageError
from swarm_tui.files import read_regular
from swarm_tui.model.text import parse_object, plain, plain_lines

LOOKED_EVERY: Final = 0.3

Tell = Callable[[int], object]


@contextlib.asynccontextmanager
async def told_while_it_grows(read: Callable[[], int], tell: Tell | None) -> AsyncIterator[None]:
    """Call `tell` with a number whenever it has grown, until this is closed. An unreadable number counts as 0."""
    if tell is None:
        yield
        return
    looking = asyncio.create_task(_look(read, tell))
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def _look(read: Callable[[], int], tell: Tell) -> None:
    known = 0
    while True:
        await asyncio.sleep(LOOKED_EVERY)
        number = 0
        with contextlib.suppress(OSError, ValueError):
            number = read()
        if number > known:
            known = number
            tell(number)


PLUGIN_FOLDER: Final = Path(__file__).resolve().parents[1] / "agents" / "live"
COLLECT_TIMEOUT: Final = 900.0
NAMED_IN_VARIABLE: Final = "SWARM_NAMED_IN"
"""The checkout, for our plugin: its path in a node id is replaced by that of the copy."""
TOP_VARIABLE: Final = "SWARM_TOP"
"""Folders for our plugin, separated by colons: it reports the modules from there."""
COPY_VARIABLE: Final = "SWARM_COPY"
"""The copy for our plugin, if it is not an agent's."""

_CONFTEST: Final = re.compile(r"^ImportError while loading conftest '(.+)'", re.MULTILINE)
_USAGE: Final = 4
_INTERNAL_ERROR: Final = "INTERNALERROR"
_EXCEPTION: Final = re.compile(r"(?!INTERNALERROR)(?:\w+\.)*[A-Z]\w*(?:: .*)?")
_ASK_TIMEOUT: Final = 60.0
# Import hooks of setuptools for editable installs have the folders of packages. `site` has imported `os` already.
_ASK: Final = """
import sys, os
found = ["%s=%s" % entry for name, module in list(sys.modules.items()) if name.startswith("__editable__")
         for entry in getattr(module, "MAPPING", {}).items()]
print(sys.prefix, os.pathsep.join(sys.path[1:]), *found, sep="\\0")
"""


@dataclass(frozen=True, slots=True)
class CollectedTest:
    """A test with its node id."""

    test: str
    line: int
    traits: tuple[str, ...] = ()
    """Its fixtures, marks and parameters."""
    group: str = ""
    """The group of its mark `xdist_group`."""


class CollectionError(NamedTuple):
    """A file or folder that pytest cannot collect."""

    test: str
    """The node id; empty if pytest itself failed."""
    text: str


@dataclass(frozen=True, slots=True)
class Collected:
    """The tests that pytest found, and its output."""

    root: Path
    """pytest's rootdir, where node ids begin."""
    tests: tuple[CollectedTest, ...]
    errors: tuple[CollectionError, ...]
    """The error of each file that cannot be collected."""
    single_run: tuple[str, ...]
    """Options that turn off plugins of the project that a run of one test does not need."""
    positional: tuple[str, ...]
    """The arguments that pytest read as files and node ids."""
    outside: tuple[str, ...]
    """Files of tests outside the root. Their node ids look as if they were inside."""
    startup_path: tuple[str, ...]
    """The interpreter's module path before pytest changes it."""
    path: tuple[str, ...]
    loaded: Mapping[str, str]
    """The modules inside the repository, each with the folder where its name begins."""
    compiled: Mapping[str, str]
    """The compiled modules inside the repository, each with its file."""
    installed: frozenset[str]
    """The top-level modules that were loaded from installed packages."""
    installed_compiled: frozenset[str]
    """Those of them with compiled modules."""
    prefix: str
    python_version: str
    text: str
    """The output of pytest."""
    files: tuple[str, ...] = ()
    """The loaded Python files of the project, relative to the copy."""

    def moved(self, old: Path, new: Path) -> Collected:
        """Return this with paths below one folder moved to another folder."""

        def there(text: str) -> str:
            return moved_text(text, old, new)

        return replace(
            self,
            root=Path(there(str(self.root))),
            errors=tuple(CollectionError(error.test, there(error.text)) for error in self.errors),
            outside=tuple(map(there, self.outside)),
            startup_path=tuple(map(there, self.startup_path)),
            path=tuple(map(there, self.path)),
            loaded={name: there(path) for name, path in self.loaded.items()},
            compiled={name: there(file) for name, file in self.compiled.items()},
            text=there(self.text),
        )


def moved_text(text: str, old: Path, new: Path) -> str:
    """Return a text with paths below one folder moved to another folder."""
    return re.sub(re.escape(str(old)) + r"(?![\w.-])", lambda _: str(new), text)


def python_path(*folders: str | Path) -> str:
    """Return PYTHONPATH with these folders before the user's."""
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([*map(str, folders), *([inherited] if inherited else [])])


def run_variables(scratch: str) -> dict[str, str]:
    """Return variables that send other files of a pytest run to a scratch folder."""
    return {
        **NO_BYTECODE,
        # Plugins ask git for the version. It must not refresh the user's index.
        "GIT_OPTIONAL_LOCKS": "0",
        "COVERAGE_FILE": f"{scratch}/.coverage",
        "GCOV_PREFIX": scratch,
        "TESTMON_DATAFILE": f"{scratch}/testmon",
        "HYPOTHESIS_STORAGE_DIRECTORY": f"{scratch}/hypothesis",
    }


def run_environment(scratch: Path, path: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of our pytest runs on this machine."""
    return project_environment({"PYTHONPATH": path, **run_variables(str(scratch)), **given})


def cache_words(scratch: Path | str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return options that keep pytest's cache out of the project."""
    # pytest needs its cache plugin for --lf, --ff and --sw, which the project's options may contain.
    return () if "no:cacheprovider" in options else ("-o", f"cache_dir={scratch}/cache")


def pytest_argument(test: str, file: str, folder: str) -> str:
    """Return the command-line argument for a test, for a pytest that runs in `folder`. It is never an option.

    Node ids begin at pytest's rootdir, but the command line is relative to the current folder. `file` and `folder` are
    relative to the repository. If the file is unknown, return the node id.
    """
    in_id, separator, rest = test.partition("::")
    path = os.path.relpath(file, folder or ".") if file else in_id
    return ("./" if path.startswith("-") else "") + path + separator + rest


class PytestAdapter:
    """Calls the pytest of an interpreter in a folder. Results come from our plugin, not from pytest's output."""

    def __init__(
        self,
        python: str,
        folder: Path,
        import_roots: Sequence[Path] = (),
        tops: Sequence[Path] = (),
        variables: Mapping[str, str] | None = None,
        runner: BoundedRunner = UNCONFINED,
    ) -> None:
        """`import_roots` come first on PYTHONPATH, so that a copy's own code is collected.

        Loaded modules below `tops` are reported.
        """
        self.python = python
        self.folder = folder
        self._import_roots = tuple(import_roots)
        self._tops = tuple(tops)
        self._variables = variables or {}
        self._runner = runner

    async def collect(self, arguments: Sequence[str], tell: Tell | None = None) -> Collected:
        """Collect without running tests. Errors in test files are part of the result.

        `tell` gets the number of collected tests while it grows.
        """
        with tempfile.TemporaryDirectory(prefix="swarm-collect-", ignore_cleanup_errors=True) as folder:
            scratch = Path(folder)
            target = scratch / "collected.json"
            # Name the plugin, because a project can turn off automatic plugins.
            words = [self.python, "-m", "pytest", "-p", "swarm_live", *cache_words(scratch, arguments), *arguments]
            # Collect all files even if one cannot be imported and the project sets -x.
            words += ["--maxfail=0", "--collect-only"]
            tops = os.pathsep.join(map(str, self._tops))
            variables = {"SWARM_COLLECT": str(target), TOP_VARIABLE: tops, **self._variables}
            # Otherwise an editable install in the environment would import the user's checkout.
            environment = run_environment(scratch, python_path(*self._import_roots, PLUGIN_FOLDER), variables)
            count = scratch / "collected.json.count"
            async with told_while_it_grows(lambda: int(read_regular(count, 100) or b"0"), tell):
                finished = await self._runner.run(
                    words, cwd=self.folder, environment=environment, timeout=COLLECT_TIMEOUT, scratch=scratch
                )
            importing = _first_line(scratch / "collected.json.importing")
            try:
                content = json.loads(read_regular(target))
            except (OSError, ValueError):
                raise _explain(self.python, finished, importing) from None
        internal = [error["text"] for error in content["errors"] if error["text"].startswith(_INTERNAL_ERROR)]
        if internal:
            raise _explain_internal(self.python, internal[0], importing)
        # Conftest files, coverage and other plugins can change the exit code. A complete collection is enough.
        if not content.get("is_complete") and (finished.code == _USAGE or not content["errors"]):
            raise _explain(self.python, finished, importing)
        return _read(content, finished)


async def find_import_path(python: str, folder: Path) -> tuple[str, list[str]]:
    """Return an interpreter's prefix, and its module path when it is started in a folder.

    The path includes editable installs, even those with an import hook.
    """
    with contextlib.suppress(AdapterError):
        environment = project_environment(NO_BYTECODE)
        finished = await run_process([python, "-c", _ASK], cwd=folder, environment=environment, timeout=_ASK_TIMEOUT)
        prefix, *found = finished.text.strip("\n").split("\0")
        if finished.code == 0 and found:
            return prefix, [
                *found[0].split(os.pathsep),
                *(folder_of for entry in found[1:] if (folder_of := _begin_of(entry))),
            ]
    return "", []


def _begin_of(entry: str) -> str:
    """Return the folder where a module's name begins: /x for `a.b=/x/a/b.py`, and "" if there is none."""
    name, _, path = entry.partition("=")
    for part in reversed(name.split(".")):
        path, last = os.path.split(path)
        if last not in (part, f"{part}.py"):
            return ""
    return path


def _read(content: Mapping[str, Any], finished: Finished) -> Collected:
    return Collected(
        root=Path(content["root"]),
        tests=tuple(
            CollectedTest(
                item["id"],
                item["line"],
                tuple(plain(trait, 80) for trait in item.get("traits", ())),
                plain(item.get("group", ""), 200),
            )
            for item in content["items"]
        ),
        errors=tuple(CollectionError(error["id"], error["text"]) for error in content["errors"]),
        single_run=tuple(content.get("single_run", ())),
        positional=tuple(content.get("positional", ())),
        outside=tuple(content.get("outside", ())),
        startup_path=tuple(content.get("startup_path", ())),
        path=tuple(content.get("path", ())),
        loaded=content.get("loaded", {}),
        compiled=content.get("compiled", {}),
        installed=frozenset(content.get("installed", ())),
        installed_compiled=frozenset(content.get("installed_compiled", ())),
        prefix=content.get("prefix", ""),
        python_version=content.get("python", ""),
        text=finished.text,
        files=tuple(content.get("files", ())),
    )


def _first_line(file: Path) -> str:
    try:
        return plain(read_regular(file, 4_000).decode(errors="replace").partition("\n")[0], 300)
    except OSError:
        return ""


def _explain_internal(python: str, text: str, importing: str) -> AdapterError:
    why = first_exception(text) or "no reason given"
    if importing:
        return _stopped_by(importing, why)
    hint = f"a plugin or a conftest.py causes it, see `{python} -m pytest --collect-only`"
    return AdapterError(f"pytest stopped with an internal error, {why}", hint)


def first_exception(text: str) -> str:
    """Return the first exception in an output of pytest, which caused the others; "" if there is none."""
    lines = [line.removeprefix(f"{_INTERNAL_ERROR}>").removeprefix(" ") for line in plain_lines(text).splitlines()]
    # pytest marks error lines, except in tracebacks in Python's own style.
    marked = [line[1:].lstrip() for line in lines if line.startswith("E  ")]
    for line in marked or lines:
        if found := _EXCEPTION.fullmatch(line):
            return plain(found[0].strip(), 300)
    return ""


def _stopped_by(importing: str, why: str) -> AdapterError:
    hint = f"correct the file, or leave it out with --ignore={importing} after --"
    return AdapterError(f"importing {importing} stops pytest ({why})", hint)


def _explain(python: str, finished: Finished, importing: str = "") -> AdapterError | UsageError:
    """Return why a collection is incomplete: the first cause in the output."""
    output = plain_lines(finished.error_text).strip() or plain_lines(finished.text).strip()
    if "No module named pytest" in output:
        return ProgramMissing(
            f"pytest is not installed for {python}", f"run `{python} -m pip install pytest`, or use --python"
        )
    lines = output.splitlines()
    conftest = _CONFTEST.search(output)
    if conftest:
        why = first_exception(output) or plain(lines[-1], 300)
        return AdapterError(f"cannot import {plain(conftest.group(1), 300)}: {why}", "pytest needs it for all tests")
    errors = [line for line in lines if "error" in line.lower()]
    if finished.code == _USAGE:
        errors = [line for line in errors if "usage:" not in line]
        why = plain((errors or lines or [f"exit code {_USAGE}"])[0], 400)
        return UsageError(f"invalid options for pytest: {why}", "see `pytest --help`")
    if importing:
        return _stopped_by(importing, f"exit code {finished.code}")
    if f"{_INTERNAL_ERROR}>" in output:
        return _explain_internal(python, output, importing)
    first = first_exception(output) or next(map(plain, errors or lines[-1:]), "")
    why = f"exit code {finished.code}" + (f", {plain(first, 300)}" if first else "")
    hint = f"check whether a conftest.py or a plugin exits: run `{python} -m pytest --collect-only`"
    return AdapterError(f"pytest stopped before it had collected all tests ({why})", hint)


_FAILURE_LIMIT: Final = 400
_FINISH: Final = b'"kind": "finish"'
_PASSED: Final = frozenset({"passed", "xfailed", "xpassed"})


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of one pytest session."""

    outcomes: Mapping[str, str] = field(default_factory=dict)
    """passed, failed or skipped by node id. xfailed and xpassed tests count as passed."""
    unfinished: frozenset[str] = frozenset()
    """The tests that were running when the process exited."""
    overdue: Mapping[str, str] = field(default_factory=dict)
    """The test for which our plugin stopped the process, and the reason."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """One line for each failed or skipped test, with the reason."""
    exit_code: int | None = None
    """The exit code of pytest's session; None if the session did not end."""
    is_forged: bool = False
    """Whether something other than our plugin wrote to the connection."""

    def problem(self, code: int) -> str:
        """Return why the results of a process with an exit code do not count; "" if they count."""
        if self.is_forged:
            return "something other than swarm-tui's plugin wrote results"
        if self.exit_code is None:
            return f"the process exited before the end of pytest's session, with code {code}"
        # A process that crashes during Python's shutdown has run its tests.
        is_crash = code < 0 or code > 128
        if code != self.exit_code and not is_crash:
            return f"pytest exited with code {self.exit_code}, but its process with code {code}"
        return ""


class RunReporter:
    """The connection to one pytest session, and its report so far."""

    def __init__(self) -> None:
        self._secret = secrets.token_hex(16).encode()
        self.channel = InheritedChannel(self._secret + b"\n")

    @property
    def variables(self) -> dict[str, str]:
        """The variable with which the plugin finds the connection."""
        return {"SWARM_RESULTS": str(self.channel.descriptor)}

    @property
    def finished(self) -> int:
        """The number of finished tests."""
        return self.channel.received.count(_FINISH)

    def report(self) -> RunReport:
        """Return the report so far."""
        return read_report(bytes(self.channel.received), self._secret, is_cut=self.channel.is_truncated)


def read_report(content: bytes, secret: bytes, *, is_cut: bool = False) -> RunReport:
    """Parse a report. It is forged if any line is not the plugin's next line."""
    outcomes: dict[str, str] = {}
    begun: dict[str, None] = {}
    overdue: dict[str, str] = {}
    failures: dict[str, str] = {}
    exit_code: int | None = None
    # A killed process can leave an incomplete line.
    lines = content.split(b"\n")[:-1]
    for number, line in enumerate(lines):
        fields = _fields(line, secret)
        if fields.get("number") != number:
            return RunReport(is_forged=True)
        kind, test, text = fields.get("kind"), str(fields.get("test")), str(fields.get("text", ""))
        if kind == "start":
            begun[test] = None
        elif kind == "finish":
            begun.pop(test, None)
            outcome = str(fields.get("outcome"))
            outcomes[test] = "passed" if outcome in _PASSED else outcome
            failures.pop(test, None)
            if outcome in ("failed", "skipped"):
                failures[test] = plain(text, _FAILURE_LIMIT)
        elif kind == "overdue":
            begun.pop(test, None)
            overdue[test] = plain(text, _FAILURE_LIMIT)
        elif kind == "end" and isinstance(fields.get("code"), int):
            exit_code = fields["code"]
    finished = {test: outcome for test, outcome in outcomes.items() if test not in begun}
    return RunReport(finished, frozenset(begun), overdue, failures, exit_code, is_forged=is_cut)


def _fields(line: bytes, secret: bytes) -> dict[str, Any]:
    if not line.startswith(secret):
        return {}
    return parse_object(line[len(secret) :])


RUN_PYTEST_NAME: Final = "swarm_live/run_pytest.py"
RUN_PYTEST: Final = PLUGIN_FOLDER / RUN_PYTEST_NAME
ARGUMENTS_LIMIT: Final = 100_000
"""Bytes of node ids in one command line, which every kernel accepts."""
_RAN_TO_ITS_END: Final = frozenset({0, 1})
_NOTHING_COLLECTED: Final = 5
_UNFINISHED: Final = "unfinished"


@dataclass(frozen=True, slots=True)
class TestRun:
    """The results of some tests."""

    __test__ = False

    outcomes: Mapping[str, str]
    """passed, failed or skipped by node id. Tests with unknown results are missing."""
    complaint: str = ""
    """Why tests are missing: a line of pytest's output."""
    is_complete: bool = True
    """False if pytest was interrupted, so that results can be incomplete."""

    failures: Mapping[str, str] = field(default_factory=dict)
    """One line for each failed or skipped test, with the reason."""

    def is_green(self, test: str) -> bool:
        return self.outcomes.get(test) == "passed"


async def run_tests(sessions: PytestSessions, arguments: Mapping[str, str], tell: Tell | None = None) -> TestRun:
    """Run tests in one session, or in more if a session stops early, until the result of each test is known.

    `arguments` has the command-line argument of each node id. Tests that the copy does not have are missing from the
    results. Only our plugin's report of a complete session counts, because the exit code includes coverage, other
    plugins and other tests. `tell` gets the number of finished tests while it grows.
    """
    outcomes: dict[str, str] = {}
    failures: dict[str, str] = {}
    complaint, is_complete = "", True
    waiting = _parts(list(arguments))
    while waiting:
        part = waiting.pop()
        made = await sessions.run([arguments[test] for test in part], tell, len(outcomes))
        report, found = made.report, _by_asked_name(made.report.outcomes, part)
        ended_by = _by_asked_name(dict.fromkeys([*report.unfinished, *report.overdue], _UNFINISHED), part)
        if not made.problem:
            outcomes |= found
            failures |= report.failures
            is_complete = is_complete and (not found or report.exit_code in _RAN_TO_ITS_END)
            left = [test for test in part if test not in found]
            complaint = (_complaint(made.finished) if left else "") or complaint
            if found:
                # The session stopped early, for example because of --stepwise. Run the others.
                waiting += [left] if left else []
            elif len(left) > 1 and report.exit_code != _NOTHING_COLLECTED:
                # If one id is unknown, pytest runs nothing. Try half of the tests.
                waiting += _halves(left)
            continue
        complaint = made.problem
        blamed = dict(report.overdue) if report.overdue else dict.fromkeys(report.unfinished, made.excess)
        for test, reason in blamed.items() if not report.is_forged else ():
            if reason:
                # This process stopped the session because of a limit.
                outcomes |= dict.fromkeys(_by_asked_name({test: _UNFINISHED}, part), "failed")
                failures[test] = reason
            else:
                complaint = plain(f"pytest exited in the middle of {test}, with code {made.code}", 300)
        # Nothing of that session counts, so run the others without this test.
        rest = [test for test in part if test not in ended_by]
        groups = [[test for test in rest if test in found], [test for test in rest if test not in found]]
        if len(rest) == len(part) or report.is_forged:
            groups = _halves(part) if len(part) > 1 and not made.excess else []
        waiting += [group for group in groups if group]
    return TestRun({test: outcomes[test] for test in arguments if test in outcomes}, complaint, is_complete, failures)


@dataclass(frozen=True, slots=True)
class PytestSession:
    """One call of pytest."""

    report: RunReport
    finished: Finished | None
    """None if the process was stopped because of a limit."""
    excess: str = ""
    """The limit."""

    @property
    def code(self) -> int:
        return self.finished.code if self.finished is not None else 0

    @property
    def problem(self) -> str:
        """Why the results do not count; "" if they count."""
        if self.excess:
            return self.excess
        assert self.finished is not None, "without a limit the process has exited"
        if self.report.exit_code is None and not self.report.outcomes and not self.report.unfinished:
            # The session did not start. pytest prints the reason.
            return _complaint(self.finished)
        return plain(self.report.problem(self.finished.code), 300)


class PytestSessions(Protocol):
    """Calls pytest somewhere."""

    async def run(self, words: Sequence[str], tell: Tell | None, before: int) -> PytestSession:
        """Call pytest with arguments that name tests, after `before` tests of earlier sessions."""


def session_words(scratch: Path | str, options: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the arguments of `run_pytest.py`.

    All tests must run, even if the project sets -x or --maxfail. The workers of xdist get the plugin by name.
    """
    return ["-p", "swarm_live", *options, *cache_words(scratch, options), "--maxfail=0", "--", *words]


@dataclass(frozen=True, slots=True)
class SessionsHere:
    """Calls pytest on this machine, from a folder of the copy."""

    python: str
    copy: Path
    timeout: float
    folder: str = ""
    import_roots: Sequence[str] = (".",)
    first_on_path: Sequence[str] = ()
    """Folders outside the copy."""
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    runner: BoundedRunner = UNCONFINED

    async def run(self, words: Sequence[str], tell: Tell | None, before: int) -> PytestSession:
        with tempfile.TemporaryDirectory(prefix="swarm-tests-", ignore_cleanup_errors=True) as scratch_folder:
            scratch = Path(scratch_folder)
            reporter = RunReporter()
            roots = [self.copy / root for root in self.import_roots]
            path = python_path(*self.first_on_path, *roots, PLUGIN_FOLDER)
            variables = {**self.variables, **reporter.variables, "SWARM_PYTHONPATH": path}
            environment = run_environment(scratch, python_path(*self.first_on_path), variables)
            called = [self.python, str(RUN_PYTEST), *session_words(scratch, self.options, words)]
            finished, excess = None, ""
            try:
                async with told_while_it_grows(lambda: before + reporter.finished, tell):
                    finished = await self.runner.run(
                        called,
                        cwd=self.copy / self.folder,
                        environment=environment,
                        timeout=self.timeout,
                        scratch=scratch,
                        channel=reporter.channel,
                    )
            except LimitExceeded as error:
                excess = str(error)
            finally:
                reporter.channel.close()
        return PytestSession(reporter.report(), finished, excess)


async def run_command(
    command: str,
    copy: Path,
    *,
    import_roots: Sequence[str],
    variables: Mapping[str, str],
    timeout: float,
    runner: BoundedRunner = UNCONFINED,
) -> TestRun:
    """Run a user's command in a copy as if it were a test, which passes with exit code 0."""
    path = os.pathsep.join(str(copy / root) for root in import_roots)
    environment = project_environment({"PYTHONPATH": path, **NO_BYTECODE, **variables})
    words = ["/bin/sh", "-c", command]
    try:
        finished = await runner.run(words, cwd=copy, environment=environment, timeout=timeout)
    except LimitExceeded as error:
        return TestRun({command: "failed"}, failures={command: str(error)})
    if finished.code == 0:
        return TestRun({command: "passed"})
    last = _last_line(finished.text + finished.error_text)
    return TestRun({command: "failed"}, failures={command: f"exit code {finished.code}: {last}"})


def _by_asked_name(outcomes: Mapping[str, str], asked: Collection[str]) -> dict[str, str]:
    """Return the results by the requested names. A parametrized test fails if any of its cases fails."""
    names = frozenset(asked)
    found: dict[str, set[str]] = {}
    for test, result in outcomes.items():
        file, separator, rest = test.partition("::")
        name = test if test in names else file + separator + rest.partition("[")[0]
        if name in names:
            found.setdefault(name, set()).add(result)
    return {
        name: next((result for result in (_UNFINISHED, "failed", "passed") if result in results), min(results))
        for name, results in found.items()
    }


def _complaint(finished: Finished | None) -> str:
    return _last_line(finished.text + finished.error_text) if finished is not None else ""


def _halves(tests: Sequence[str]) -> list[list[str]]:
    middle = len(tests) // 2
    return [list(tests[:middle]), list(tests[middle:])]


def _parts(arguments: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    size = 0
    for word in arguments:
        size += len(word.encode(errors="replace")) + 1
        if size > ARGUMENTS_LIMIT and parts[-1]:
            parts.append([])
            size = 0
        parts[-1].append(word)
    return [part for part in parts if part]


def _last_line(text: str) -> str:
    lines = [line for line in plain_lines(text).splitlines() if line.strip()]
    # If a file cannot be imported, the last line only reports missing tests.
    raised = [line[1:].strip() for line in lines if line.startswith("E ")]
    errors = [line for line in lines if line.startswith("ERROR")]
    return plain((raised or errors or lines or ["no output"])[-1], 300)


CHECKOUT_VARIABLE: Final = "SWARM_CHECKOUT"
"""The user's checkout, for the set-up command."""
LINES_TOLD: Final = 12
# mktemp creates a file with an unpredictable name that only its owner can read.
_LOG: Final = '$(mktemp "${TMPDIR:-/tmp}/swarm-set-up-XXXXXXXXXX")'
_BEGIN, _END = "swarm-tui: the last lines of the set-up:", "swarm-tui: the set-up exited with code"
_FAILURE: Final = re.compile(rf"{_BEGIN}$(.*?)^{_END} (\d+)$", re.MULTILINE | re.DOTALL)


class SetUpFailed(AdapterError):
    """The set-up command failed in a fresh copy."""

    def __init__(self, code: int, output: str) -> None:
        self.lines = [plain(line, 300) for line in plain_lines(output).strip().splitlines()[-LINES_TOLD:]]
        last = next((line.strip() for line in reversed(self.lines) if line.strip()), "no output")
        self.problem = f"the set-up command failed with code {code} in a fresh copy"
        super().__init__(f"{self.problem}: {last}")


def set_up_script(setup: str, checkout: str) -> str:
    """Return a shell script that runs the set-up command, and prints the exit code and the last lines of a failure.

    mngr runs it and shows the output.
    """
    return (
        f"export {CHECKOUT_VARIABLE}={shlex.quote(checkout)}; log={_LOG}; "
        f'if [ -z "$log" ]; then echo "{_BEGIN}" >&2; echo "${{TMPDIR:-/tmp}} cannot be written" >&2; '
        f'echo "{_END} 1" >&2; exit 1; fi; '
        f'({setup}\n) > "$log" 2>&1; code=$?; '
        f'if [ $code != 0 ]; then echo "{_BEGIN}" >&2; '
        f'tail -n {LINES_TOLD} "$log" >&2; echo >&2; echo "{_END} $code" >&2; fi; rm -f "$log"; exit $code'
    )


def read_failure(output: str) -> SetUpFailed | None:
    """Return the failure that the script printed anywhere in an output; None if there is none."""
    found = _FAILURE.search(plain_lines(output))
    return SetUpFailed(int(found.group(2)), found.group(1)) if found else None

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
from swarm_tui.adapters.processes.inherited_channel import InheritedChannel
from swarm_tui.adapters.processes.run import Finished, run_process
from swarm_tui.errors import AdapterError, LimitExceeded, ProgramMissing, UsageError
from swarm_tui.files import read_regular
from swarm_tui.model.text import parse_object, plain, plain_lines

LOOKED_EVERY: Final = 0.3

Tell = Callable[[int], object]


@contextlib.asynccontextmanager
async def told_while_it_grows(read: Callable[[], int], tell: Tell | None) -> AsyncIterator[None]:
    """Call `tell` with the number whenever it has grown, while this is open; what cannot be read is a zero."""
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
"""Names the checkout to our plugin: a path of it that stands in a node id is another one in a copy."""
TOP_VARIABLE: Final = "SWARM_TOP"
"""Names folders to our plugin, between colons: which modules come from there is part of what is collected."""
COPY_VARIABLE: Final = "SWARM_COPY"
"""Names the copy to our plugin, where it is not an agent's."""

_CONFTEST: Final = re.compile(r"^ImportError while loading conftest '(.+)'", re.MULTILINE)
_USAGE: Final = 4
_INTERNAL_ERROR: Final = "INTERNALERROR"
_EXCEPTION: Final = re.compile(r"(?!INTERNALERROR)(?:\w+\.)*[A-Z]\w*(?:: .*)?")
_ASK_TIMEOUT: Final = 60.0
# setuptools' import hooks for editable installs know where packages lie. `os` is imported by `site` already.
_ASK: Final = """
import sys, os
found = ["%s=%s" % entry for name, module in list(sys.modules.items()) if name.startswith("__editable__")
         for entry in getattr(module, "MAPPING", {}).items()]
print(sys.prefix, os.pathsep.join(sys.path[1:]), *found, sep="\\0")
"""


@dataclass(frozen=True, slots=True)
class CollectedTest:
    """One test as pytest names it."""

    test: str
    line: int
    traits: tuple[str, ...] = ()
    """Its fixtures, markers and parameters, as words."""
    group: str = ""
    """The group of its mark `xdist_group`."""


class CollectionError(NamedTuple):
    """What pytest says of a file or folder that it could not collect."""

    test: str
    """Its node id; empty when all of pytest failed."""
    text: str


@dataclass(frozen=True, slots=True)
class Collected:
    """What pytest found, and its output."""

    root: Path
    """pytest's rootdir: node ids begin there."""
    tests: tuple[CollectedTest, ...]
    errors: tuple[CollectionError, ...]
    """What pytest says of each file that could not be collected."""
    single_run: tuple[str, ...]
    """The words by which the project's plugins leave out what a run of one test has no use for."""
    positional: tuple[str, ...]
    """Those of the arguments that pytest read as files and node ids."""
    outside: tuple[str, ...]
    """Files of tests outside of the root: pytest names those as if they were in it."""
    startup_path: tuple[str, ...]
    """Where the interpreter looks for modules before pytest adds anything."""
    path: tuple[str, ...]
    loaded: Mapping[str, str]
    """Modules inside the repository, each with the folder in which its name begins."""
    compiled: Mapping[str, str]
    """Compiled modules inside the repository, each with its file."""
    installed: frozenset[str]
    """Top-level modules that were loaded from where packages are installed."""
    installed_compiled: frozenset[str]
    """Those of them that have compiled modules."""
    prefix: str
    python_version: str
    text: str
    """pytest's output."""
    files: tuple[str, ...] = ()
    """The Python files of the project that were loaded, from the top of the copy."""

    def moved(self, old: Path, new: Path) -> Collected:
        """Return the same with the paths below one folder below another."""

        def there(text: str) -> str:
            return moved_text(text, old, new)

        return replace(
            self,
            root=Path(there(str(self.root))),
            errors=tuple(CollectionError(error.test, there(error.text)) for error in self.errors),
            outside=tuple(map(there, self.outside)),
            startup_path=tuple(map(there, self.startup_path)),
            path=tuple(map(there, self.path)),
            loaded={name: there(place) for name, place in self.loaded.items()},
            compiled={name: there(file) for name, file in self.compiled.items()},
            text=there(self.text),
        )


def moved_text(text: str, old: Path, new: Path) -> str:
    """Return a text with the paths below one folder below another."""
    return re.sub(re.escape(str(old)) + r"(?![\w.-])", lambda _: str(new), text)


def python_path(*folders: str | Path) -> str:
    """Return PYTHONPATH with these folders before those that the user has on it."""
    inherited = os.environ.get("PYTHONPATH")
    return os.pathsep.join([*map(str, folders), *([inherited] if inherited else [])])


def run_variables(scratch: str) -> dict[str, str]:
    """Return the variables by which a pytest run of ours writes what is not its result to a scratch folder."""
    return {
        **NO_BYTECODE,
        # Plugins ask git for the version: it must not refresh the user's index.
        "GIT_OPTIONAL_LOCKS": "0",
        "COVERAGE_FILE": f"{scratch}/.coverage",
        "GCOV_PREFIX": scratch,
        "TESTMON_DATAFILE": f"{scratch}/testmon",
        "HYPOTHESIS_STORAGE_DIRECTORY": f"{scratch}/hypothesis",
    }


def run_environment(scratch: Path, path: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a pytest run of ours on this machine."""
    return project_environment({"PYTHONPATH": path, **run_variables(str(scratch)), **given})


def cache_words(scratch: Path | str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the words that keep pytest's cache out of the project, where there is a cache."""
    # Without its plugin pytest refuses --lf, --ff and --sw, which a project may have set for all its runs.
    return () if "no:cacheprovider" in options else ("-o", f"cache_dir={scratch}/cache")


def pytest_argument(test: str, file: str, folder: str) -> str:
    """Return the command-line word that names a test to a pytest that is run in `folder`; it is never an option.

    Node ids begin at pytest's rootdir, while the command line is read from the folder pytest is run in. `file` and
    `folder` are paths from the top of the repository; when the file is not known, the node id has to do.
    """
    in_id, separator, rest = test.partition("::")
    path = os.path.relpath(file, folder or ".") if file else in_id
    return ("./" if path.startswith("-") else "") + path + separator + rest


class PytestAdapter:
    """The pytest of one interpreter, called in one folder; our plugin reports its results, not its terminal text."""

    def __init__(
        self,
        python: str,
        folder: Path,
        import_roots: Sequence[Path] = (),
        tops: Sequence[Path] = (),
        variables: Mapping[str, str] | None = None,
        runner: BoundedRunner = UNCONFINED,
    ) -> None:
        """`import_roots` come first on PYTHONPATH: in a copy, the copy's own code is what is collected.

        Modules below `tops` are reported.
        """
        self.python = python
        self.folder = folder
        self._import_roots = tuple(import_roots)
        self._tops = tuple(tops)
        self._variables = variables or {}
        self._runner = runner

    async def collect(self, arguments: Sequence[str], tell: Tell | None = None) -> Collected:
        """Collect without running; errors in test files are part of what is returned.

        `tell` gets how many tests were found, again and again.
        """
        with tempfile.TemporaryDirectory(prefix="swarm-collect-", ignore_cleanup_errors=True) as folder:
            scratch = Path(folder)
            target = scratch / "collected.json"
            # The plugin is named, because a project may have switched off those that are found by themselves.
            words = [self.python, "-m", "pytest", "-p", "swarm_live", *cache_words(scratch, arguments), *arguments]
            # A project may have set -x: every file is to be collected, even after one that cannot be imported.
            words += ["--maxfail=0", "--collect-only"]
            tops = os.pathsep.join(map(str, self._tops))
            variables = {"SWARM_COLLECT": str(target), TOP_VARIABLE: tops, **self._variables}
            # A venv into which the project was installed editable would otherwise import the user's checkout.
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
        # A conftest.py may set the exit code, and coverage or other plugins do: a complete collection needs none.
        if not content.get("is_complete") and (finished.code == _USAGE or not content["errors"]):
            raise _explain(self.python, finished, importing)
        return _read(content, finished)


async def find_import_path(python: str, folder: Path) -> tuple[str, list[str]]:
    """Return an interpreter's prefix, and the folders in which it looks for modules when started in a folder.

    Those of editable installs are among them, also of the kind that has an import hook.
    """
    with contextlib.suppress(AdapterError):
        environment = project_environment(NO_BYTECODE)
        finished = await run_process([python, "-c", _ASK], cwd=folder, environment=environment, timeout=_ASK_TIMEOUT)
        prefix, *found = finished.text.strip("\n").split("\0")
        if finished.code == 0 and found:
            return prefix, [*found[0].split(os.pathsep), *(place for entry in found[1:] if (place := _begin_of(entry)))]
    return "", []


def _begin_of(entry: str) -> str:
    """Return the folder in which the name of a module begins: for `a.b=/x/a/b.py` it is /x, and "" if there is none."""
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
    why = first_exception(text) or "it gives no reason"
    if importing:
        return _stopped_by(importing, why)
    hint = f"a plugin or a conftest.py causes it, see `{python} -m pytest --collect-only`"
    return AdapterError(f"pytest stopped with an internal error, {why}", hint)


def first_exception(text: str) -> str:
    """Return the exception that an output of pytest shows first, which caused the others; "" if it shows none."""
    lines = [line.removeprefix(f"{_INTERNAL_ERROR}>").removeprefix(" ") for line in plain_lines(text).splitlines()]
    # pytest marks the lines of errors, unless it shows a traceback as Python does.
    marked = [line[1:].lstrip() for line in lines if line.startswith("E  ")]
    for line in marked or lines:
        if found := _EXCEPTION.fullmatch(line):
            return plain(found[0].strip(), 300)
    return ""


def _stopped_by(importing: str, why: str) -> AdapterError:
    hint = f"correct the file, or leave it out with --ignore={importing} after --"
    return AdapterError(f"importing {importing} stops pytest ({why})", hint)


def _explain(python: str, finished: Finished, importing: str = "") -> AdapterError | UsageError:
    """Return why there is no complete collection, by the first cause that the output names."""
    output = plain_lines(finished.error_text).strip() or plain_lines(finished.text).strip()
    if "No module named pytest" in output:
        return ProgramMissing(
            f"{python} has no pytest", f"`{python} -m pip install pytest`, or name another one with --python"
        )
    lines = output.splitlines()
    conftest = _CONFTEST.search(output)
    if conftest:
        why = first_exception(output) or plain(lines[-1], 300)
        return AdapterError(
            f"{plain(conftest.group(1), 300)} cannot be imported: {why}", "pytest needs it for any test"
        )
    errors = [line for line in lines if "error" in line.lower()]
    if finished.code == _USAGE:
        errors = [line for line in errors if "usage:" not in line]
        why = plain((errors or lines or [f"exit code {_USAGE}"])[0], 400)
        return UsageError(f"pytest refuses this: {why}", "see `pytest --help`")
    if importing:
        return _stopped_by(importing, f"exit code {finished.code}")
    if f"{_INTERNAL_ERROR}>" in output:
        return _explain_internal(python, output, importing)
    first = first_exception(output) or next(map(plain, errors), "")
    why = f"exit code {finished.code}" + (f", {plain(first, 300)}" if first else "")
    hint = f"run `{python} -m pytest --collect-only` to see why"
    return AdapterError(f"pytest stopped before it had collected all tests ({why})", hint)


_FAILURE_LIMIT: Final = 400
_FINISH: Final = b'"kind": "finish"'
_PASSED: Final = frozenset({"passed", "xfailed", "xpassed"})


@dataclass(frozen=True, slots=True)
class RunReport:
    """What was reported of one pytest session."""

    outcomes: Mapping[str, str] = field(default_factory=dict)
    """passed, failed or skipped by node id. A test that met its expected failure, or passed in spite of it, passed."""
    unfinished: frozenset[str] = frozenset()
    """The tests that were running when the process ended."""
    overdue: Mapping[str, str] = field(default_factory=dict)
    """The test because of which our plugin ended the process, and the reason."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why each test failed or was skipped, in a line."""
    exit_code: int | None = None
    """What pytest's session ended with; None when it did not come to its end."""
    is_forged: bool = False
    """Whether something other than our plugin has written to the connection."""

    def problem(self, code: int) -> str:
        """Return why the results do not count, for a process that ended with `code`; empty when they count."""
        if self.is_forged:
            return "something other than swarm-tui's plugin wrote results"
        if self.exit_code is None:
            return f"the process ended before pytest's session did, with code {code}"
        # A process that crashes while Python shuts down has run its tests.
        is_crash = code < 0 or code > 128
        if code != self.exit_code and not is_crash:
            return f"pytest ended with code {self.exit_code}, and its process with code {code}"
        return ""


class RunReporter:
    """The connection to one pytest session, and what came over it so far."""

    def __init__(self) -> None:
        self._secret = secrets.token_hex(16).encode()
        self.channel = InheritedChannel(self._secret + b"\n")

    @property
    def variables(self) -> dict[str, str]:
        """The variable by which the plugin finds the connection."""
        return {"SWARM_RESULTS": str(self.channel.descriptor)}

    @property
    def finished(self) -> int:
        """How many tests have come to their end."""
        return self.channel.received.count(_FINISH)

    def report(self) -> RunReport:
        """Return what was reported so far."""
        return read_report(bytes(self.channel.received), self._secret, is_cut=self.channel.is_truncated)


def read_report(content: bytes, secret: bytes, *, is_cut: bool = False) -> RunReport:
    """Return what records report. Any line that is not the plugin's next one makes the report a forged one."""
    outcomes: dict[str, str] = {}
    begun: dict[str, None] = {}
    overdue: dict[str, str] = {}
    failures: dict[str, str] = {}
    exit_code: int | None = None
    # A process that is killed may leave a part of a line.
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
"""Bytes of node ids in one command line; not every kernel allows more."""
_RAN_TO_ITS_END: Final = frozenset({0, 1})
_NOTHING_COLLECTED: Final = 5
_UNFINISHED: Final = "unfinished"


@dataclass(frozen=True, slots=True)
class TestRun:
    """The outcomes of some tests."""

    __test__ = False

    outcomes: Mapping[str, str]
    """passed, failed or skipped by node id, as pytest reported it; what is not known is missing."""
    complaint: str = ""
    """Why tests are missing: a line of pytest's output."""
    is_complete: bool = True
    """False when pytest was interrupted: what it reported until then may be only a part of a test."""

    failures: Mapping[str, str] = field(default_factory=dict)
    """Why each test failed or was skipped, in a line."""

    def is_green(self, test: str) -> bool:
        return self.outcomes.get(test) == "passed"


async def run_chosen_tests(
    python: str,
    copy: Path,
    arguments: Mapping[str, str],
    *,
    folder: str = "",
    import_roots: Sequence[str] = (".",),
    first_on_path: Sequence[str] = (),
    options: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    timeout: float,
    runner: BoundedRunner = UNCONFINED,
    tell: Tell | None = None,
) -> TestRun:
    """Run the tests once, from a folder of the copy; those that the copy does not have are missing from the outcomes.

    `arguments` maps each node id to the word by which pytest is told of it in that folder; `first_on_path` are folders
    outside of the copy. What counts is our plugin's report on each test in a session that came to its end: the exit
    code also speaks of coverage, of other plugins and of other tests. `tell` gets how many were run, again and again.
    """
    sessions = _SessionsHere(
        python, copy, folder, import_roots, first_on_path, options, variables or {}, timeout, runner
    )
    return await run_in_sessions(sessions, arguments, tell)


async def run_in_sessions(sessions: PytestSessions, arguments: Mapping[str, str], tell: Tell | None = None) -> TestRun:
    """Run tests in as many sessions as it takes to know the outcome of each, one unless something ends it early."""
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
                # It stopped early, as --stepwise does: the others have still to be run.
                waiting += [left] if left else []
            elif len(left) > 1 and report.exit_code != _NOTHING_COLLECTED:
                # pytest runs nothing at all when one id is unknown: half of them may still be fine.
                waiting += _halves(left)
            continue
        complaint = made.problem
        blamed = dict(report.overdue) if report.overdue else dict.fromkeys(report.unfinished, made.excess)
        for test, reason in blamed.items() if not report.is_forged else ():
            if reason:
                # It went over a limit, which this process has seen.
                outcomes |= dict.fromkeys(_by_asked_name({test: _UNFINISHED}, part), "failed")
                failures[test] = reason
            else:
                complaint = plain(f"pytest ended in the middle of {test}, with code {made.code}", 300)
        # The others are run without the test that ended the session, since nothing of that session counts.
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
    """None when it was ended because of a limit."""
    excess: str = ""
    """The limit."""

    @property
    def code(self) -> int:
        return self.finished.code if self.finished is not None else 0

    @property
    def problem(self) -> str:
        """Why nothing of it counts; empty when it does."""
        if self.excess:
            return self.excess
        assert self.finished is not None, "there is no limit without an excess"
        if self.report.exit_code is None and not self.report.outcomes and not self.report.unfinished:
            # It did not begin, and says itself why.
            return _complaint(self.finished)
        return plain(self.report.problem(self.finished.code), 300)


class PytestSessions(Protocol):
    """How and where pytest is called."""

    async def run(self, words: Sequence[str], tell: Tell | None, before: int) -> PytestSession:
        """Call pytest for the tests that these words name; `before` have been run already."""


def session_words(scratch: Path | str, options: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the arguments of `run_pytest.py`.

    A project may have set -x or --maxfail: every test is asked for, whatever the others come to. Workers of xdist get
    the plugin by its name.
    """
    return ["-p", "swarm_live", *options, *cache_words(scratch, options), "--maxfail=0", "--", *words]


@dataclass(frozen=True, slots=True)
class _SessionsHere:
    """Calls pytest on this machine."""

    python: str
    copy: Path
    folder: str
    import_roots: Sequence[str]
    first_on_path: Sequence[str]
    options: Sequence[str]
    variables: Mapping[str, str]
    timeout: float
    runner: BoundedRunner

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
    """Run a person's command in a copy as the one test of that name, which passes when the exit code is 0."""
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
    """Return the outcomes by the names that were asked for: a parametrised test fails with any of its cases."""
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
    # Where a file cannot be imported, the last line only says that its tests were not found.
    raised = [line[1:].strip() for line in lines if line.startswith("E ")]
    errors = [line for line in lines if line.startswith("ERROR")]
    return plain((raised or errors or lines or ["it printed nothing"])[-1], 300)


CHECKOUT_VARIABLE: Final = "SWARM_CHECKOUT"
"""Names the user's checkout to the command, which may copy something from there."""
LINES_TOLD: Final = 12
# mktemp makes it with a name that nobody can predict, for its owner only; it fails where nothing can be written.
_LOG: Final = '$(mktemp "${TMPDIR:-/tmp}/swarm-set-up-XXXXXXXXXX")'
_BEGIN, _END = "swarm-tui: the last lines of the set-up:", "swarm-tui: the set-up ended with code"
_FAILURE: Final = re.compile(rf"{_BEGIN}$(.*?)^{_END} (\d+)$", re.MULTILINE | re.DOTALL)


class SetUpFailed(AdapterError):
    """The set-up command failed in a fresh copy."""

    def __init__(self, code: int, output: str) -> None:
        self.lines = [plain(line, 300) for line in plain_lines(output).strip().splitlines()[-LINES_TOLD:]]
        last = next((line.strip() for line in reversed(self.lines) if line.strip()), "it printed nothing")
        self.problem = f"the set-up command failed with code {code} in a fresh copy"
        super().__init__(f"{self.problem}: {last}")


def set_up_script(setup: str, checkout: str) -> str:
    """Return a shell script that runs the command in its working folder, and prints code and last lines of a failure.

    It is run by somebody else, who shows what it prints.
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
    """Return the failure that the script printed, wherever it stands in an output; None when there is none."""
    found = _FAILURE.search(plain_lines(output))
    return SetUpFailed(int(found.group(2)), found.group(1)) if found else None

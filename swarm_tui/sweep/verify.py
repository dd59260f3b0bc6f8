"""Runs each test on the commit that its agent submitted: until then its result is only a claim."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import posixpath
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from swarm_tui.adapters.git.history import read_commits, read_tree_changes
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.processes.environment import passed_variables
from swarm_tui.adapters.processes.run import Finished
from swarm_tui.adapters.pytest import (
    COPY_VARIABLE,
    NAMED_IN_VARIABLE,
    RUN_PYTEST_NAME,
    PytestSession,
    Tell,
    TestRun,
    pytest_argument,
    read_report,
    run_tests,
    run_variables,
    session_words,
)
from swarm_tui.agents.judging import GONE, OwnRuns, judge_claim
from swarm_tui.errors import AdapterError, SwarmError, UsageError
from swarm_tui.hosts import test_run as far_test_run
from swarm_tui.hosts.preparation import PreparedHost
from swarm_tui.hosts.protocol import HostUnreachable
from swarm_tui.integrator.branches import classify_commit
from swarm_tui.journal.events import ClaimChecked
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.results import LIVING_STATES, Baseline, Result, State
from swarm_tui.model.run_limits import COPIES_NUMBER, OWN_HOME, own_folder, own_variables
from swarm_tui.model.spec import LOCAL_HOST, SweepSpec
from swarm_tui.model.text import plain
from swarm_tui.review.verdicts import review_of_sweep
from swarm_tui.sweep.context import SweepContext
from swarm_tui.testing.copies import COPIES, MISSING, TestCopies
from swarm_tui.testing.measuring_files import LOADED_BEFORE, ChangedFiles, why_not_measured
from swarm_tui.testing.settings import settings_of_sweep

_PROGRAM: Final = inspect.getsource(far_test_run)
# Beyond the run itself: a clone, a checkout and the set-up.
_EXTRA_SECONDS: Final = far_test_run.SET_UP_SECONDS + 2 * far_test_run.GIT_SECONDS
RUNS_IF_FAILED: Final = 3
NOT_FOUND: Final = "not found: "
"""What pytest prints for a test or a file that does not exist."""
LEAST_TIMEOUT: Final = 600.0
"""The shortest time limit of a run, in seconds; else ten times the longest run by the agent."""


def is_unchecked(record: TestRecord) -> bool:
    """Return whether a test's result is a claim that a run of the test would confirm or refute."""
    check = record.pulled.check
    return record.state is State.DONE and record.result is Result.CLAIMED and check is not None and check.is_open


class ClaimChecks:
    """The queue of claims of one sweep that have to be checked, and the checks that are running."""

    def __init__(self, context: SweepContext, after_check: Callable[[str], object]) -> None:
        """`after_check` is called with a test after its check, even if the check was not possible."""
        self._context = context
        self._after_check = after_check
        self._waiting: dict[str, None] = {}
        self.running: dict[str, asyncio.Task[None]] = {}
        """The checks under way, by test."""
        self._runners: dict[str, ClaimRunner] = {}
        self._is_stopping = False

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting or self.running)

    @property
    def groups_at_work(self) -> set[str]:
        """The groups with a running check. No agent of these groups may be launched."""
        return {group for test in self.running if (group := self._context.state.record_of(test).group)}

    @property
    def hosts(self) -> Counter[str]:
        """The number of waiting and running checks of each host."""
        return Counter(_host_of(self._context.state.record_of(test)) for test in (*self._waiting, *self.running))

    def add(self, test: str) -> None:
        """Queue the check of a test. While the sweep is being stopped, the check is left to `resume`."""
        if not self._is_stopping:
            self._waiting[test] = None

    def work(self, group: asyncio.TaskGroup, unreachable: Collection[str], gone: Collection[str]) -> None:
        """Start as many checks as each host may run. Checks on unreachable hosts wait."""
        records = [self._context.state.record_of(test) for test in self._waiting]
        busy = Counter(_host_of(self._context.state.record_of(test)) for test in self.running)
        tests = self._context.state.tests() if any(record.group for record in records) else ()
        busy_groups = {record.group for record in tests if record.state in LIVING_STATES}
        for record in records:
            test, host = record.test, _host_of(record)
            if not is_unchecked(record):
                del self._waiting[test]
                continue
            is_lost = host in unreachable and host not in gone
            is_beside_others = record.group and record.group in busy_groups | self.groups_at_work
            if test in self.running or busy[host] >= COPIES or is_lost or is_beside_others:
                continue
            del self._waiting[test]
            busy[host] += 1
            self.running[test] = task = group.create_task(self._check(record))
            task.add_done_callback(lambda _, test=test: self.running.pop(test, None))  # type: ignore[misc]

    def cancel(self) -> None:
        """Stop all checks and start no more. `resume` checks the remaining claims."""
        self._is_stopping = True
        self._waiting.clear()
        for task in self.running.values():
            task.cancel()

    async def close(self) -> None:
        """Remove the scratch copies."""
        while self._runners:
            _, runner = self._runners.popitem()
            await runner.close()

    async def _check(self, record: TestRecord) -> None:
        try:
            runs = await self._runs(record)
        except HostUnreachable as error:
            host, known = _host_of(record), self._context.state.hosts.get(_host_of(record))
            # A created host does not exist any more after the sweep was stopped.
            if host in self._context.hosts and not (known is not None and known.is_gone):
                self._waiting[record.test] = None
                return
            runs = OwnRuns(impossible=error.message)
        except Exception as error:
            # An error in one check must not stop the others.
            if not isinstance(error, SwarmError | OSError):
                traceback.print_exc()
            said = error.message if isinstance(error, SwarmError) else str(error)
            runs = OwnRuns(impossible=plain(said, 200) or type(error).__name__)
        now = self._context.state.record_of(record.test)
        is_same = (now.launch, now.pulled.tip) == (record.launch, record.pulled.tip)
        check = record.pulled.check
        if check is None or not is_same or not is_unchecked(now):
            # The test was queued again during the check.
            return
        judgement, check = judge_claim(check, runs)
        self._context.record(
            ClaimChecked(test=record.test, result=judgement.result, reason=judgement.reason, check=check)
        )
        self._after_check(record.test)

    async def _runs(self, record: TestRecord) -> OwnRuns:
        context = self._context
        if not context.spec.python:
            return OwnRuns(impossible="the project's Python is unknown")
        if not record.pulled.tip and record.baseline is Baseline.GREEN:
            # The baseline has run it on this commit.
            return OwnRuns(("passed",))
        runs = await run_claimed(context, self._runner_on(_host_of(record)), record)
        if runs.impossible or not record.pulled.tip:
            return runs
        doubts = await asyncio.to_thread(_doubts, context, record)
        return replace(runs, doubts=doubts, is_other_code=any(doubt.endswith(LOADED_BEFORE) for doubt in doubts))

    def _runner_on(self, host: str) -> ClaimRunner:
        if host not in self._runners:
            self._runners[host] = RunsHere(self._context) if host == LOCAL_HOST else RunsOnHost(self._context, host)
        return self._runners[host]


async def run_claimed(context: SweepContext, runner: ClaimRunner, record: TestRecord) -> OwnRuns:
    """Run a test on the commit that its agent submitted, and again if it does not pass."""
    test, base = record.test, context.spec.base
    commit, timeout = record.pulled.tip or base, _timeout(context, record)
    first = await runner.run(commit, test, timeout)
    outcomes, texts = [first.outcomes.get(test, MISSING)], [first.failures.get(test, "") or first.complaint]
    while outcomes[-1] == "failed" and len(outcomes) < RUNS_IF_FAILED:
        again = await runner.run(commit, test, timeout, is_repeated=True)
        outcomes.append(again.outcomes.get(test, MISSING))
        texts.append(again.failures.get(test, "") or again.complaint)
    failure = next(filter(None, texts), "")
    if outcomes == [MISSING] and commit != base and NOT_FOUND in failure:
        outcomes, failure = [GONE], "pytest does not find the test"
    elif outcomes == [MISSING]:
        # If pytest cannot run it on the base either, the agent did not cause this.
        if commit == base or not (await runner.run(base, test, timeout)).outcomes:
            return OwnRuns(impossible=failure or "pytest did not report a result")
    elif "passed" not in outcomes and runner.confinement:
        at_base = first if commit == base else await runner.run(base, test, timeout)
        if not at_base.is_green(test):
            what = f"with {runner.confinement} (--confine) it does not pass on the base either"
            return OwnRuns(impossible=f"{what}: {failure}")
    return OwnRuns(tuple(outcomes), failure, has_uncommitted=record.pulled.has_uncommitted)


def _timeout(context: SweepContext, record: TestRecord) -> float:
    seconds = max((made.seconds for made in record.tries), default=0.0)
    return min(context.spec.timeout, max(LEAST_TIMEOUT, 10 * seconds))


def _doubts(context: SweepContext, record: TestRecord) -> tuple[str, ...]:
    """Return the changes of the agent that affect how tests are run, such as one of conftest.py."""
    repository, base, tip = context.repository, context.spec.base, record.pulled.tip
    files = frozenset(known.file for known in context.state.tests() if known.file)
    try:
        changed = [
            ChangedFiles(commit.changes, classify_commit(commit.message, commit.paths, test_files=files).is_fix)
            for commit in read_commits(repository, base, tip)
        ]
    except SwarmError:
        # The history has merges. Check all changes as one commit.
        changed = [ChangedFiles(read_tree_changes(repository, base, tip))]
    found = (doubt for doubts in why_not_measured(repository, changed) for doubt in doubts)
    return tuple(dict.fromkeys(found))


class RunsHere:
    """Runs tests in scratch copies on this machine."""

    def __init__(self, context: SweepContext) -> None:
        spec = context.spec
        settings = settings_of_sweep(spec)
        confinement = settings.limits.confinement
        self.confinement = confinement.words if confinement is not None else ""
        """What `--confine` takes from the tests, for messages; empty without it."""
        self._repository = context.repository
        self._space = ObjectSpace(context.repository)
        # The integrator and the merge view reuse these results.
        results = review_of_sweep(context.folder.root).results
        self._copies = TestCopies(self._space, settings, base=spec.base, results=results)
        for record in context.state.tests():
            self._copies.arguments[record.test] = pytest_argument(record.test, record.file, spec.folder)

    async def run(self, commit: str, test: str, timeout: float, *, is_repeated: bool = False) -> TestRun:
        """Run a test on a commit; with `is_repeated`, even if the result is in the cache."""
        tree = await asyncio.to_thread(self._repository.tree_of, commit)
        run = self._copies.run_uncached if is_repeated else self._copies.run
        return await run(tree, [test], timeout)

    async def close(self) -> None:
        """Remove the scratch copies."""
        await self._copies.close()
        self._space.close()


class RunsOnHost:
    """Runs tests in scratch copies on an agent's host, as the same user and with the same Python."""

    confinement = ""

    def __init__(self, context: SweepContext, host: str) -> None:
        """Raise SwarmError if the host cannot have the commits of this repository."""
        if context.repository.is_shallow:
            raise UsageError("the repository is a shallow clone, and its objects are not on the host")
        self._context = context
        self._host = context.hosts[host]
        self._free: asyncio.LifoQueue[int] = asyncio.LifoQueue()
        for number in range(COPIES):
            self._free.put_nowait(number)

    async def run(self, commit: str, test: str, timeout: float, *, is_repeated: bool = False) -> TestRun:
        spec, preparation = self._context.spec, self._context.preparation
        host = await preparation.prepared(self._host)
        if commit != spec.base:
            await preparation.push_commit(host, commit)
        number = await self._free.get()
        try:
            file = self._context.state.record_of(test).file
            sessions = SessionsOnHost(spec, host, number, commit, timeout)
            return await run_tests(sessions, {test: pytest_argument(test, file, spec.folder)})
        finally:
            self._free.put_nowait(number)

    async def close(self) -> None:
        """Do nothing: `clean` removes the copies with the sweep's folder on the host."""


ClaimRunner = RunsHere | RunsOnHost


@dataclass(frozen=True, slots=True)
class SessionsOnHost:
    """How pytest is called on a host."""

    spec: SweepSpec
    host: PreparedHost
    number: int
    """The number of the scratch copy, which no other run uses now."""
    commit: str
    timeout: float

    async def run(self, words: Sequence[str], tell: Tell | None, before: int) -> PytestSession:
        spec, host = self.spec, self.host
        copy = posixpath.join(host.folder, f"check{self.number}")
        temporary, number = spec.temporary or host.folder, COPIES_NUMBER + self.number
        own = own_variables(number, temporary, spec.run_limits)
        roots = [posixpath.normpath(posixpath.join(copy, root)) for root in spec.import_roots or (".",)]
        wanted = {
            "copy": copy,
            "seed": host.seed,
            "commit": self.commit,
            # A set-up that created the interpreter need not be repeated in each copy.
            "setup": "" if host.is_set_up else spec.setup or "",
            "checkout": host.project,
            "python": host.python,
            "program": posixpath.join(host.package_dir.live, RUN_PYTEST_NAME),
            "words": session_words("{scratch}", spec.run_options, words),
            "folder": spec.folder,
            "variables": {
                "PYTHONPATH": "",
                "SWARM_PYTHONPATH": ":".join([*roots, host.package_dir.live]),
                "SWARM_RESULTS": "{descriptor}",
                NAMED_IN_VARIABLE: spec.repository,
                COPY_VARIABLE: copy,
                **run_variables("{scratch}"),
                **own,
            },
            "passed": passed_variables(spec.passed_environment),
            "seconds": self.timeout,
            "own": [own_folder(temporary, number), *([own[OWN_HOME]] if OWN_HOME in own else [])],
        }
        called = ["python3", "-c", _PROGRAM]
        content, timeout = json.dumps(wanted).encode(), self.timeout + _EXTRA_SECONDS
        finished = await host.host.run(called, cwd=host.folder, stdin=content, timeout=timeout)
        try:
            answer = json.loads(finished.stdout)
            if "problem" in answer:
                raise AdapterError(f"on {host.settings.name}: {plain(str(answer['problem']), 200)}", "")
            received, output = base64.b64decode(answer["received"]), str(answer["output"]).encode()
            report = read_report(received, str(answer["secret"]).encode())
            return PytestSession(report, Finished(("pytest",), int(answer["code"]), output, b"", 0.0, False))
        except (ValueError, KeyError, TypeError) as error:
            last = (finished.error_text.strip().splitlines() or ["it printed nothing"])[-1]
            raise AdapterError(f"{host.settings.name} cannot run the test: {plain(last, 200)}", "") from error


def _host_of(record: TestRecord) -> str:
    return record.host or LOCAL_HOST

"""Runs chosen tests in a copy of a project, with the copy's own code, and returns the outcome of each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from swarm_tui.adapters.confinement import UNCONFINED, BoundedRunner
from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.growing_number import Tell, told_while_it_grows
from swarm_tui.adapters.process import Finished
from swarm_tui.adapters.pytest import cache_words, read_results, reporting_environment
from swarm_tui.errors import LimitExceeded
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.regular_file import read_regular

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
    """A line on each test that failed."""

    def is_green(self, test: str) -> bool:
        return self.outcomes.get(test) == "passed"


async def run_chosen_tests(
    python: str,
    copy: Path,
    arguments: Mapping[str, str],
    *,
    folder: str = "",
    import_roots: Sequence[str] = (".",),
    options: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    timeout: float,
    runner: BoundedRunner = UNCONFINED,
    tell: Tell | None = None,
) -> TestRun:
    """Run the tests once, from a folder of the copy; those that the copy does not have are missing from the outcomes.

    `arguments` maps each node id to the word by which pytest is told of it in that folder. What counts is our plugin's
    report on each test: the exit code also speaks of coverage, of other plugins and of other tests. `tell` gets how
    many were run, again and again.
    """
    outcomes: dict[str, str] = {}
    failures: dict[str, str] = {}
    complaint, is_complete = "", True
    with tempfile.TemporaryDirectory(prefix="swarm-tests-") as scratch_folder:
        scratch = Path(scratch_folder)
        report = scratch / "results.jsonl"
        roots = [copy / root for root in import_roots]
        environment = reporting_environment(scratch, roots, variables or {}, results=report)
        # A project may have set -x or --maxfail: every test is asked for, whatever the others come to.
        called = [python, "-m", "pytest", "-p", "swarm_live", *options, *cache_words(scratch, options), "--maxfail=0"]
        waiting = _parts(list(arguments))
        while waiting:
            part = waiting.pop()
            report.unlink(missing_ok=True)
            words = [*called, "--", *(arguments[test] for test in part)]
            finished, excess = None, ""
            try:
                async with told_while_it_grows(partial(_count_finished, report, len(outcomes)), tell):
                    finished = await runner.run(
                        words, cwd=copy / folder, environment=environment, timeout=timeout, scratch=scratch
                    )
            except LimitExceeded as error:
                excess = str(error)
            results, unfinished, texts = read_results(report)
            failures |= texts
            if excess:
                # The test in which it happened is known, and the others have still to be run.
                results |= dict.fromkeys(unfinished, "failed")
                failures |= dict.fromkeys(unfinished, excess)
                unfinished = frozenset()
            found = _by_asked_name(results | dict.fromkeys(unfinished, _UNFINISHED), part)
            outcomes |= {test: result for test, result in found.items() if result != _UNFINISHED}
            is_complete = is_complete and (not found or finished is None or finished.code in _RAN_TO_ITS_END)
            if len(found) == len(part) and not unfinished:
                continue
            complaint = excess if finished is None else _complaint(finished, unfinished)
            left = [test for test in part if test not in found]
            if found:
                # It ended before its time: --stepwise, a crash. The others have still to be run.
                waiting += [left] if left else []
            elif len(left) > 1 and finished is not None and finished.code != _NOTHING_COLLECTED:
                # pytest runs nothing at all when one id is unknown: half of them may still be fine.
                middle = len(left) // 2
                waiting += [left[:middle], left[middle:]]
    return TestRun(outcomes, complaint, is_complete, failures)


def _count_finished(report: Path, before: int) -> int:
    return before + read_regular(report).count(b'"kind": "finish"')


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
    environment = scrubbed_environment({"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables})
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


def _complaint(finished: Finished, unfinished: Collection[str]) -> str:
    if unfinished:
        return plain(f"pytest ended in the middle of {min(unfinished)}, with code {finished.code}", 300)
    return _last_line(finished.text + finished.error_text)


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
    marked = [line for line in lines if line.startswith(("ERROR", "E "))]
    return plain((marked or lines or ["it said nothing"])[-1], 300)

"""Runs chosen tests in a copy of a project, with the copy's own code, and returns the outcome of each."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.process import run_process
from swarm_tui.adapters.pytest import reporting_environment
from swarm_tui.model.text import plain, plain_lines

ARGUMENTS_LIMIT: Final = 100_000
"""Bytes of node ids in one command line; not every kernel allows more."""
_RAN_TO_ITS_END: Final = frozenset({0, 1})


@dataclass(frozen=True, slots=True)
class TestRun:
    """The outcomes of some tests."""

    __test__ = False

    outcomes: Mapping[str, str]
    """passed, failed or skipped by node id; a test that was not reported is missing."""
    complaint: str = ""
    """Why tests are missing: a line of pytest's output."""
    is_complete: bool = True
    """False when pytest was interrupted: what it reported until then may be only a part of a test."""

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
    timeout: float,
) -> TestRun:
    """Run the tests once, from a folder of the copy; those that the copy does not have are missing from the outcomes.

    `arguments` maps each node id to the word by which pytest is told of it in that folder.
    """
    outcomes: dict[str, str] = {}
    complaint, is_complete = "", True
    with tempfile.TemporaryDirectory(prefix="swarm-tests-") as results:
        report = Path(results) / "results.json"
        environment = reporting_environment(report, [copy / root for root in import_roots])
        waiting = _parts(list(arguments.values()))
        while waiting:
            part = waiting.pop()
            report.unlink(missing_ok=True)
            words = [python, "-m", "pytest", *options, "-p", "no:cacheprovider", "--", *part]
            finished = await run_process(words, cwd=copy / folder, environment=environment, timeout=timeout)
            found = _read_outcomes(report)
            outcomes |= found
            if found:
                is_complete = is_complete and finished.code in _RAN_TO_ITS_END
                continue
            complaint = _last_line(finished.text + finished.error_text)
            # pytest runs nothing at all when one id is unknown: half of them may still be fine.
            if len(part) > 1:
                middle = len(part) // 2
                waiting += [part[:middle], part[middle:]]
    return TestRun(_by_asked_name(outcomes, arguments), complaint, is_complete)


def _by_asked_name(outcomes: Mapping[str, str], asked: Collection[str]) -> dict[str, str]:
    """Return the outcomes by the names that were asked for: a parametrised test fails with any of its cases."""
    found: dict[str, set[str]] = {}
    for test, result in outcomes.items():
        file, separator, rest = test.partition("::")
        name = test if test in asked else file + separator + rest.partition("[")[0]
        if name in asked:
            found.setdefault(name, set()).add(result)
    return {
        name: next((result for result in ("failed", "passed") if result in results), min(results))
        for name, results in found.items()
    }


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


def _read_outcomes(report: Path) -> dict[str, str]:
    try:
        outcomes = json.loads(report.read_bytes())["outcomes"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return {str(test): str(result) for test, result in outcomes.items()} if isinstance(outcomes, dict) else {}


def _last_line(text: str) -> str:
    lines = [line for line in plain_lines(text).splitlines() if line.strip()]
    marked = [line for line in lines if line.startswith(("ERROR", "E "))]
    return plain((marked or lines or ["pytest said nothing"])[-1], 300)

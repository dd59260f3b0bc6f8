"""Finds patterns: failures, questions and blockers of several tests with the same normalised cause."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import UNSOLVED_RESULTS, Result, State
from swarm_tui.model.text import plain

_VARYING: Final = (
    (re.compile(r"0x[0-9a-fA-F]+"), "0x…"),
    # A word of hexadecimal letters alone is a word, and of digits alone a number.
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{7,64}\b"), "<id>"),
    (re.compile(r"(?:/[\w.+@-]+){2,}/?"), "<path>"),
    (re.compile(r"\d+(?:\.\d+)*"), "N"),
)
FEWEST: Final = 2
"""One test alone is no pattern."""


class Pattern(NamedTuple):
    """Tests with the same cause of failure, question or blocker."""

    cause: str
    tests: tuple[str, ...]
    kind: str
    """What most of them are: failing, waiting, blocked."""
    shared: tuple[str, ...]
    """What they have in common, as words: `all in tests/e2e`, `host modal-3`."""
    representative: str
    example: str
    """The cause of the representative as it was, with its numbers."""


def raw_cause(record: TestRecord) -> str:
    """Return why a test waits, fails or is blocked, as it was reported; "" for a test with no trouble."""
    if record.state is State.WAITING:
        return record.question or "waits for an answer"
    if record.state is State.DONE and record.result is Result.BLOCKED and record.harvest.escalations:
        return record.harvest.escalations[0].title or record.reason
    if record.state is State.DONE and record.result is not None and record.result in UNSOLVED_RESULTS:
        return _last_failure(record) or record.reason or record.result.value
    if record.state is State.RUNNING:
        return _last_failure(record)
    if record.state is State.QUEUED and record.source == "engine":
        # Its last launch failed. Other reasons why a test is queued again are no failures.
        return record.reason
    return ""


def _last_failure(record: TestRecord) -> str:
    if record.tries and record.tries[-1].passed is False:
        return record.tries[-1].failure
    return ""


def cause_of(record: TestRecord) -> str:
    """Return the normalised cause of a test; equal for tests that fail alike."""
    cause = raw_cause(record)
    return normalised_cause(cause) if cause else ""


@lru_cache(maxsize=20_000)
def normalised_cause(text: str) -> str:
    """Return the first line of a text with numbers, ids and paths replaced by placeholders."""
    line = plain(text.strip().split("\n", 1)[0], 300)
    for pattern, replacement in _VARYING:
        line = pattern.sub(replacement, line)
    return line


def find_patterns(records: Iterable[TestRecord]) -> list[Pattern]:
    """Return all patterns, those of the most tests first."""
    groups: dict[str, list[TestRecord]] = {}
    # Sorted, so that the result does not depend on the order of the records.
    for record in sorted(records, key=lambda record: record.test):
        cause = cause_of(record)
        if cause:
            groups.setdefault(cause, []).append(record)
    patterns = [_pattern(cause, group) for cause, group in groups.items() if len(group) >= FEWEST]
    return sorted(patterns, key=lambda pattern: (-len(pattern.tests), pattern.cause))


def _pattern(cause: str, group: list[TestRecord]) -> Pattern:
    representative = max(group, key=lambda record: (record.result is not None, record.since))
    return Pattern(
        cause=cause,
        tests=tuple(record.test for record in group),
        kind=Counter(_kind(record) for record in group).most_common(1)[0][0],
        shared=tuple(_shared(group)),
        representative=representative.test,
        example=plain(raw_cause(representative), 2_000),
    )


def _kind(record: TestRecord) -> str:
    if record.state is State.WAITING:
        return "waiting"
    return "blocked" if record.result is Result.BLOCKED else "failing"


def _shared(group: list[TestRecord]) -> Iterable[str]:
    files = {record.file for record in group}
    if len(files) == 1 and (file := next(iter(files))):
        yield f"all in {plain(file, 120)}"
    elif folder := _common_folder(files):
        yield f"all under {plain(folder, 120)}"
    parameters = [set(_parameters(record.test)) for record in group]
    for parameter in sorted(set.intersection(*parameters)):
        yield f"parameter {plain(parameter, 60)}"
    hosts = {record.host for record in group if record.host}
    if len(hosts) == 1 and len(group) > FEWEST:
        yield f"host {plain(next(iter(hosts)), 60)}"
    times = sorted(record.since for record in group)
    if len(group) > FEWEST and times[-1] - times[0] < 120:
        yield "within two minutes"


def _common_folder(files: set[str]) -> str:
    parts = [file.split("/")[:-1] for file in files]
    common = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    # The top folder of the tests is common to all tests, so it is no common property.
    return "/".join(common) if len(common) > 1 else ""


def _parameters(test: str) -> list[str]:
    _, bracket, rest = test.partition("[")
    return rest.removesuffix("]").split("-") if bracket else []

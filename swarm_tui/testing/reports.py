"""Test reports of other runs: read JUnit XML and CTRF, and write JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final
from xml.etree import ElementTree
from xml.parsers import expat

from swarm_tui.errors import UsageError
from swarm_tui.files import open_regular, read_regular
from swarm_tui.model.results import Baseline
from swarm_tui.model.text import parse_json, plain

_NOT_IN_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OUTCOMES: Final = {
    "failure": "failed",
    "error": "failed",
    "skipped": "skipped",
    # Maven Surefire and others write these for a test that failed first and passed when it was repeated.
    "flakyFailure": "flaky",
    "flakyError": "flaky",
}
_SEVERITY: Final = ("skipped", "passed", "failed", "flaky")
_CTRF_OUTCOMES: Final = {"passed": "passed", "failed": "failed"}


@dataclass(frozen=True, slots=True)
class ReportedTest:
    """One entry of a test report."""

    place: str
    """The dotted path of the module or class, without the name of the test; "" if unknown."""
    name: str
    outcome: str
    """`passed`, `failed`, `skipped` or `flaky`."""


@dataclass(frozen=True, slots=True)
class FailedRun:
    """What a report says about the tests of a project."""

    baselines: Mapping[str, Baseline]
    """The result of each collected test that the report names."""
    unknown: tuple[str, ...]
    """Failed tests of the report that are not collected, or whose name fits several tests."""

    @property
    def failed(self) -> set[str]:
        """Return the tests that failed at least once."""
        return {test for test, baseline in self.baselines.items() if baseline in (Baseline.RED, Baseline.FLAKY)}


def read_failed_run(path: Path, tests: Collection[str]) -> FailedRun:
    """Return the results of a report; raise UsageError for a file that is not JUnit XML or CTRF."""
    with open_regular(path) as file:
        is_json = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
        file.seek(0)
        entries = _read_ctrf(path) if is_json else _read_junit(file, path)
    if not entries:
        raise UsageError(f"{plain(str(path), 200)}: no tests in this report", "use JUnit XML or CTRF of a test run")
    return _match(entries, tests)


def _read_junit(file: BinaryIO, path: Path) -> list[ReportedTest]:
    """Return the entries of a JUnit report, whose size is not limited."""
    entries: list[ReportedTest] = []
    suite: dict[tuple[str, str], list[str]] = {}
    current: dict[str, str] = {}
    outcomes: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "testcase":
            current.clear()
            current.update(attributes)
            outcomes.clear()
        elif tag in _OUTCOMES:
            outcomes.append(_OUTCOMES[tag])

    def end(tag: str) -> None:
        if tag == "testcase" and current.get("name"):
            place = current.get("classname") or _dotted(current.get("file", ""))
            suite.setdefault((place, current["name"]), []).append(_worst(outcomes or ["passed"]))
        elif tag == "testsuite":
            entries.extend(ReportedTest(place, name, _last(runs)) for (place, name), runs in suite.items())
            suite.clear()

    def refuse(*_: object) -> None:
        raise _invalid(path, "it has a document type")

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    # A document type can define entities, which expand without limit or read other files. No test runner writes one.
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.ParseFile(file)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise _invalid(path, str(error)) from error
    return entries


def _read_ctrf(path: Path) -> list[ReportedTest]:
    try:
        return [_ctrf_entry(entry) for entry in parse_json(read_regular(path))["results"]["tests"]]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _invalid(path, "it is not CTRF") from error


def _ctrf_entry(entry: Mapping[str, object]) -> ReportedTest:
    file, _, name = _split(str(entry["name"]))
    outcome = "flaky" if entry.get("flaky") is True else _CTRF_OUTCOMES.get(str(entry.get("status")), "skipped")
    return ReportedTest(_dotted(file or str(entry.get("filePath") or "")), name, outcome)


def _split(name: str) -> tuple[str, str, str]:
    """Split a node id before the name of the test, whose parameters may contain `::`."""
    head, bracket, parameters = name.partition("[")
    file, separator, function = head.rpartition("::")
    return file, separator, function + bracket + parameters


def _invalid(path: Path, reason: str) -> UsageError:
    return UsageError(f"invalid test report {plain(str(path), 200)}: {plain(reason, 200)}", "use JUnit XML or CTRF")


def _last(runs: list[str]) -> str:
    """Return the outcome of a test that a suite lists once for each run.

    pytest-rerunfailures writes the failed runs before the last one without any failure, like passed ones.
    """
    return "flaky" if len(runs) > 1 and runs[-1] == "passed" else runs[-1]


def _worst(outcomes: Iterable[str]) -> str:
    """Return the outcome of several runs: both passed and failed is flaky."""
    found = set(outcomes)
    if {"passed", "failed"} <= found:
        return "flaky"
    return max(found, key=_SEVERITY.index)


def _dotted(path: str) -> str:
    """Return `tests/test_a.py::TestB` as `tests.test_a.TestB`."""
    file, _, rest = path.partition("::")
    module = re.sub(r"\.py$", "", file).strip("./").replace("\\", "/").replace("/", ".")
    return ".".join(part for part in (module, *rest.split("::")) if part)


def _match(entries: Iterable[ReportedTest], tests: Collection[str]) -> FailedRun:
    """Find the collected tests of entries by pytest's names, with a prefix more or less, as long as this is unique."""
    places: dict[str, dict[str, str]] = {}
    for test in tests:
        file, _, name = _split(test)
        places.setdefault(name, {})[_dotted(file)] = test
    outcomes: dict[str, list[str]] = {}
    unknown: dict[str, None] = {}
    for entry in entries:
        found = _find(entry, places.get(entry.name, {}))
        if found is not None:
            outcomes.setdefault(found, []).append(entry.outcome)
        elif entry.outcome in ("failed", "flaky"):
            unknown[f"{entry.place}.{entry.name}".strip(".")] = None
    baselines = {"passed": Baseline.GREEN, "failed": Baseline.RED, "flaky": Baseline.FLAKY, "skipped": Baseline.SKIPPED}
    return FailedRun({test: baselines[_worst(words)] for test, words in outcomes.items()}, tuple(unknown))


def _find(entry: ReportedTest, places: Mapping[str, str]) -> str | None:
    if entry.place in places:
        return places[entry.place]
    similar = [
        test
        for place, test in places.items()
        if not entry.place or f".{place}".endswith(f".{entry.place}") or f".{entry.place}".endswith(f".{place}")
    ]
    return similar[0] if len(similar) == 1 else None


def junit_text(name: str, results: Iterable[tuple[str, str, str]]) -> bytes:
    """Return JUnit XML of tests: node id, outcome (`passed`, `failed`, `skipped`), and the reason."""
    cases = list(_cases(results))
    counts = {tag: sum(case.find(tag) is not None for case in cases) for tag in ("failure", "skipped")}
    suite = ElementTree.Element(
        "testsuite",
        {
            "name": _xml(name),
            "tests": str(len(cases)),
            "failures": str(counts["failure"]),
            "errors": "0",
            "skipped": str(counts["skipped"]),
        },
    )
    suite.extend(cases)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    written = BytesIO()
    ElementTree.ElementTree(root).write(written, encoding="utf-8", xml_declaration=True)
    return written.getvalue() + b"\n"


def _cases(results: Iterable[tuple[str, str, str]]) -> Iterator[ElementTree.Element]:
    for test, outcome, reason in results:
        file, _, name = _split(test)
        path = file.partition("::")[0]
        attributes = {"classname": _xml(_dotted(file)), "name": _xml(name), "file": _xml(path)}
        case = ElementTree.Element("testcase", attributes)
        if outcome in ("failed", "skipped"):
            tag = "failure" if outcome == "failed" else outcome
            ElementTree.SubElement(case, tag, {"message": _xml(reason, 500)})
        yield case


def _xml(text: str, length: int = 2_000) -> str:
    return _NOT_IN_XML.sub("?", plain(text, length))

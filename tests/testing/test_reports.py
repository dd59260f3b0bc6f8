"""Test reports that real runners wrote for one small project: plain, with -n 2, with reruns, unittest, and CTRF."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from swarm_tui.errors import UsageError
from swarm_tui.model.results import Baseline
from swarm_tui.testing.reports import junit_text, read_failed_run

REPORTS = Path(__file__).parent / "reports"
PARAMETERS = ("a::b", "c[d]", "e.f")
FUNCTIONS = ["test_ok", "test_bad", "TestBox::test_broken", "test_sometimes", "test_skipped"]
FUNCTIONS += [f"TestBox::test_param[{value}]" for value in PARAMETERS]
UNITTESTS = ("tests/test_u.py::Sums::test_one", "tests/test_u.py::Sums::test_two")
TESTS = [f"tests/{file}::{name}" for file in ("test_a.py", "sub/test_a.py") for name in FUNCTIONS] + [*UNITTESTS]
RED = {"test_bad", "TestBox::test_param[a::b]", "TestBox::test_broken"}


def names_of(tests: set[str]) -> set[str]:
    return {test.partition("::")[2] for test in tests if "test_u" not in test}


@pytest.mark.parametrize("name", ["plain.xml", "xdist.xml"])
def test_junit_selects_failures_of_both_files(name: str) -> None:
    run = read_failed_run(REPORTS / name, TESTS)
    assert set(run.baselines) == set(TESTS)
    assert len(run.failed) == 2 * len(RED | {"test_sometimes"}) + 1
    assert names_of(run.failed) == RED | {"test_sometimes"}
    assert run.baselines["tests/test_a.py::test_skipped"] is Baseline.SKIPPED
    assert run.unknown == ()


@pytest.mark.parametrize("name", ["reruns.xml", "ctrf.json"])
def test_tests_that_passed_after_reruns_are_flaky(name: str) -> None:
    run = read_failed_run(REPORTS / name, TESTS)
    flaky = {test for test, baseline in run.baselines.items() if baseline is Baseline.FLAKY}
    assert names_of(flaky) == {"test_sometimes"}
    assert names_of(run.failed - flaky) == RED


def test_unittest_report_fits_tests_of_pytest() -> None:
    run = read_failed_run(REPORTS / "unittest.xml", TESTS)
    assert run.baselines == {UNITTESTS[0]: Baseline.GREEN, UNITTESTS[1]: Baseline.RED}


def test_unique_end_of_a_path_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    case = '<testcase classname="{}" name="test_bad"><failure/></testcase>'
    path.write_text(f"<testsuite>{case.format('project.tests.sub.test_a')}{case.format('test_a')}</testsuite>")
    run = read_failed_run(path, TESTS)
    assert run.failed == {"tests/sub/test_a.py::test_bad"}
    assert run.unknown == ("test_a.test_bad",), "this name fits two tests"


def test_suites_of_several_machines_are_combined(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    case = '<testcase classname="tests.test_a" name="test_ok">{}</testcase>'
    path.write_text(
        f"<testsuites><testsuite>{case.format('')}</testsuite><testsuite>{case.format('<error/>')}</testsuite></testsuites>"
    )
    assert read_failed_run(path, TESTS).baselines == {"tests/test_a.py::test_ok": Baseline.FLAKY}
    path.write_text(f"<a><testsuite>{case.format('')}</testsuite><testsuite>{case.format('')}</testsuite></a>")
    assert read_failed_run(path, TESTS).failed == set()


@pytest.mark.parametrize(
    "content",
    [
        '<!DOCTYPE a [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>',
        '<!DOCTYPE a SYSTEM "file:///etc/passwd"><testsuite/>',
        "<testsuite><testcase",
        '<?xml version="1.0" encoding="shift_jis"?><testsuite/>',
        "not xml",
        "",
        "<html/>",
        "[1]",
        '{"results": {"tests": [7]}}',
        '{"results": []}',
        "[" * 100_000,
    ],
)
def test_invalid_report_is_a_usage_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "report"
    path.write_text(content)
    with pytest.raises(UsageError) as caught:
        read_failed_run(path, TESTS)
    assert caught.value.hint


def test_large_report_is_read(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    with path.open("w") as file:
        file.write("<testsuite>")
        for number in range(20_000):
            file.write(
                f'<testcase classname="tests.test_b" name="test_{number}"><failure>{"x" * 500}</failure></testcase>'
            )
        file.write("</testsuite>")
    assert len(read_failed_run(path, ["tests/test_b.py::test_19999"]).failed) == 1


def test_written_junit_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "written.xml"
    results = [(test, "failed" if "bad" in test else "passed", "\x1b[31m<b>&\ud800\uffff") for test in TESTS]
    path.write_bytes(junit_text("swarm/1/integrated", results))
    assert ElementTree.parse(path).getroot().find("testsuite[@failures='2']") is not None
    assert read_failed_run(path, TESTS).failed == {test for test in TESTS if "bad" in test}


def test_ctrf_without_node_ids_is_found_by_file(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    entry = {"name": "test_bad", "status": "failed", "filePath": "tests/test_a.py"}
    path.write_text("\ufeff" + json.dumps({"results": {"tests": [entry]}}), encoding="utf-8")
    assert read_failed_run(path, TESTS).failed == {"tests/test_a.py::test_bad"}

"""Chosen tests of a copy, run for real: what is told of each, and what when some are not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.pytest import ARGUMENTS_LIMIT, SessionsHere, run_tests
from tests.git_project import PYTEST_INI
from tests.waiting import PATIENCE

TESTS = """import pytest
from where import PLACE


def test_good(): pass
def test_bad(): assert PLACE == "elsewhere"
def test_skipped(): pytest.skip("not today")


@pytest.mark.parametrize("text", ["a b", "[x]", "ü", "$(touch x)", "a::b"])
def test_text(text): assert text
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    (tmp_path / "copy/tests").mkdir(parents=True)
    (tmp_path / "copy/where.py").write_text('PLACE = "copy"\n')
    (tmp_path / "copy/tests/test_it.py").write_text(TESTS)
    (tmp_path / "copy/pytest.ini").write_text(f"{PYTEST_INI} -q -p no:terminal\n")
    return tmp_path / "copy"


async def outcomes(copy: Path, *names: str, folder: str = "") -> dict[str, str]:
    tests = {f"tests/test_it.py::{name}": f"{'' if folder else 'tests/'}test_it.py::{name}" for name in names}
    run = await run_tests(SessionsHere(sys.executable, copy, folder=folder, timeout=PATIENCE), tests)
    return {test.partition("::")[2]: result for test, result in run.outcomes.items()}


async def test_progress_counts_each_test(copy: Path) -> None:
    names = ("test_good", "test_bad", "test_skipped", "test_text[a b]", "test_text[$(touch x)]")
    assert await outcomes(copy, *names) == {
        "test_good": "passed",
        "test_bad": "failed",
        "test_skipped": "skipped",
        "test_text[a b]": "passed",
        "test_text[$(touch x)]": "passed",
    }


async def test_parametrized_test_is_one_result(copy: Path) -> None:
    assert await outcomes(copy, "test_text") == {"test_text": "passed"}
    assert await outcomes(copy, "test_text[a::b]") == {"test_text[a::b]": "passed"}


async def test_ids_begin_at_root_in_any_folder(copy: Path) -> None:
    assert await outcomes(copy, "test_good", folder="tests") == {"test_good": "passed"}


async def test_missing_test_does_not_stop_others(copy: Path) -> None:
    assert await outcomes(copy, "test_gone", "test_good", "test_bad") == {"test_good": "passed", "test_bad": "failed"}


async def test_failed_collection_has_reason(copy: Path) -> None:
    (copy / "where.py").write_text("PLACE = \n")
    run = await run_tests(
        SessionsHere(sys.executable, copy, timeout=PATIENCE),
        {"tests/test_it.py::test_good": "tests/test_it.py::test_good"},
    )
    assert run.outcomes == {}
    assert not run.is_green("tests/test_it.py::test_good")


@pytest.mark.slow
async def test_many_ids_run_in_several_sessions(copy: Path) -> None:
    count = ARGUMENTS_LIMIT // 60
    (copy / "tests/test_it.py").write_text(
        f"import pytest\n@pytest.mark.parametrize('n', range({count}))\ndef test_long_name_is_supported(n): pass\n"
    )
    names = [f"test_long_name_is_supported[{number}]" for number in range(count)]
    assert len(await outcomes(copy, *names)) == count

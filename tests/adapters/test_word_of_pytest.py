"""What a project has set for all its runs, and what a test does to its process, changes nothing about the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from swarm_tui.adapters.pytest import PytestAdapter, SessionsHere, TestRun, run_tests
from swarm_tui.errors import AdapterError, UsageError
from tests.git_project import PYTEST_INI
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

TESTS = """import os
import pytest


def test_first(): assert 0, "red"
def test_good(): pass
@pytest.mark.skip(reason="no device")
def test_skipped(): pass
@pytest.mark.xfail(strict=True)
def test_expected(): assert 0
@pytest.mark.xfail(strict=True)
def test_unexpected(): pass
def test_last(): pass
def test_leaves(): os._exit(0)
def test_dies(): os.kill(os.getpid(), 11)
"""
ALL = ("first", "good", "skipped", "expected", "unexpected", "last")
TRUTH = {
    "first": "failed",
    "good": "passed",
    "skipped": "skipped",
    "expected": "passed",
    "unexpected": "failed",
    "last": "passed",
}

# A plugin that makes green runs red, as a threshold of coverage does.
THRESHOLD = """
def pytest_sessionfinish(session):
    session.exitstatus = 1
"""


def make_copy(root: Path, addopts: str = "", conftest: str = "") -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "test_it.py").write_text(TESTS)
    (root / "pytest.ini").write_text(f"{PYTEST_INI} {addopts}\n")
    (root / "conftest.py").write_text(conftest)
    return root


async def run(copy: Path, *names: str, options: tuple[str, ...] = ()) -> TestRun:
    tests = {name: f"test_it.py::test_{name}" for name in names}
    made = await run_tests(
        SessionsHere(sys.executable, copy, options=options, timeout=PATIENCE), {test: test for test in tests.values()}
    )
    named = {test: name for name, test in tests.items()}
    return TestRun({named[test]: result for test, result in made.outcomes.items()}, made.complaint, made.is_complete)


@pytest.mark.parametrize(
    "addopts", ["-x", "--maxfail=1", "--sw", "--lf", "--ff", "--nf", "--lf --lfnf=none", "-p no:cacheprovider", "-n2"]
)
async def test_project_options_change_no_results(tmp_path: Path, addopts: str) -> None:
    copy = make_copy(tmp_path / "copy", addopts)
    collected = await PytestAdapter(sys.executable, copy).collect([])
    made = await run(copy, *ALL, options=collected.single_run)
    assert made.outcomes == TRUTH


async def test_exit_code_is_not_a_result(tmp_path: Path) -> None:
    made = await run(make_copy(tmp_path / "copy", conftest=THRESHOLD), "good", "last")
    assert made.outcomes == {"good": "passed", "last": "passed"}


@pytest.mark.parametrize(("name", "code"), [("leaves", 0), ("dies", -11)])
async def test_exit_in_a_test_costs_only_that_test(tmp_path: Path, name: str, code: int) -> None:
    made = await run(make_copy(tmp_path / "copy"), "good", name, "skipped", "last")
    assert made.outcomes == {"good": "passed", "skipped": "skipped", "last": "passed"}
    assert f"exited in the middle of test_it.py::test_{name}, with code {code}" in made.complaint


async def test_internal_error_is_not_a_collection(tmp_path: Path) -> None:
    broken = "def pytest_collection_modifyitems(items): raise RuntimeError('not sorted')\n"
    copy = make_copy(tmp_path / "copy", conftest=broken)
    with pytest.raises(AdapterError, match="not sorted"):
        await PytestAdapter(sys.executable, copy).collect([])
    late = "def pytest_collection_finish(session): raise RuntimeError('too late')\n"
    (copy / "conftest.py").write_text(late)
    with pytest.raises(AdapterError, match="too late"):
        await PytestAdapter(sys.executable, copy).collect([])


@pytest.mark.parametrize("code", [2, 3, 4, 77])
async def test_complete_collection_counts_whatever_the_exit_code(tmp_path: Path, code: int) -> None:
    conftest = f"def pytest_sessionfinish(session): session.exitstatus = {code}\n"
    copy = make_copy(tmp_path / "copy", conftest=conftest)
    assert len((await PytestAdapter(sys.executable, copy).collect([])).tests) == 8


async def test_collection_goes_on_after_an_import_error_despite_x(tmp_path: Path) -> None:
    copy = make_copy(tmp_path / "copy", "-x")
    (copy / "test_a.py").write_text("import no_such_module\n")
    collected = await PytestAdapter(sys.executable, copy).collect([])
    assert ([error.test for error in collected.errors], len(collected.tests)) == (["test_a.py"], 8)


@pytest.mark.parametrize(
    ("content", "why"),
    [("import os; os._exit(3)", "exit code 3"), ("import sys; sys.exit(3)", "SystemExit: 3")],
)
async def test_file_that_ends_pytest_at_import_is_named(tmp_path: Path, content: str, why: str) -> None:
    copy = make_copy(tmp_path / "copy")
    (copy / "test_a.py").write_text(content)
    with pytest.raises(AdapterError) as caught:
        await PytestAdapter(sys.executable, copy).collect([])
    assert caught.value.message == f"importing test_a.py stops pytest ({why})"
    assert "--ignore=test_a.py" in caught.value.hint


async def test_exit_of_conftest_is_reported_with_its_message(tmp_path: Path) -> None:
    copy = make_copy(tmp_path / "copy", conftest="import sys\nsys.exit('not on this machine')\n")
    with pytest.raises(AdapterError, match=r"\(exit code 1, not on this machine\)") as caught:
        await PytestAdapter(sys.executable, copy).collect([])
    assert "conftest.py" in caught.value.hint


async def test_first_cause_of_an_early_internal_error_is_quoted(tmp_path: Path) -> None:
    conftest = """def pytest_configure():
    try:
        raise KeyError("first cause")
    except KeyError:
        raise RuntimeError("what follows")
"""
    with pytest.raises(AdapterError, match=r"internal error, KeyError: 'first cause'"):
        await PytestAdapter(sys.executable, make_copy(tmp_path / "copy", conftest=conftest)).collect([])


async def test_first_usage_error_of_pytest_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unrecognized arguments: --no-such-option"):
        await PytestAdapter(sys.executable, make_copy(tmp_path / "copy", "--no-such-option")).collect([])


async def test_conftest_that_changes_the_folder_leaves_paths_right(tmp_path: Path) -> None:
    conftest = "import os, sys\nos.chdir('/')\nsys.path.insert(0, 'library')\n"
    collected = await PytestAdapter(sys.executable, make_copy(tmp_path / "copy", conftest=conftest)).collect([])
    assert len(collected.tests) == 8
    assert str(tmp_path / "copy/library") in collected.path


async def test_collection_writes_no_files_of_project(tmp_path: Path) -> None:
    reports = "--junitxml=report.xml --log-file=run.log"
    copy = make_copy(tmp_path / "copy", f"{reports}\nlog_file = settings.log")
    before = {path.name for path in copy.iterdir()}
    assert len((await PytestAdapter(sys.executable, copy).collect([])).tests) == 8
    assert {path.name for path in copy.iterdir()} == before


async def test_single_run_gets_options_of_present_plugins(tmp_path: Path) -> None:
    copy = make_copy(tmp_path / "copy", "-n2 --lf --lfnf=none")
    assert (await PytestAdapter(sys.executable, copy).collect([])).single_run == ("-n0", "--lfnf=all")
    copy = make_copy(tmp_path / "other", "-p no:xdist -p no:cacheprovider")
    assert (await PytestAdapter(sys.executable, copy).collect([])).single_run == ("-p", "no:cacheprovider")


async def test_single_run_omits_configured_files(tmp_path: Path) -> None:
    copy = make_copy(tmp_path / "copy", "-k 'not unexpected' -W ignore test_it.py --ignore=test_it.py.bak")
    collected = await PytestAdapter(sys.executable, copy).collect([])
    kept = "-p no:hypothesispytest -k 'not unexpected' -W ignore --ignore=test_it.py.bak"
    assert collected.single_run == ("-o", f"addopts={kept}")
    made = await run_tests(
        SessionsHere(sys.executable, copy, options=collected.single_run, timeout=PATIENCE),
        {"test_it.py::test_good": "test_it.py::test_good"},
    )
    assert made.outcomes == {"test_it.py::test_good": "passed"}


async def test_renamed_tests_are_selected_by_pytest_names(tmp_path: Path) -> None:
    conftest = """import pytest


class Renamed(pytest.Function):
    @property
    def nodeid(self): return "good and skipped" if self.name in ("test_good", "test_skipped") else self.name[5:]


def pytest_pycollect_makeitem(collector, name):
    return Renamed.from_parent(collector, name=name) if name.startswith("test_") else None
"""
    copy = make_copy(tmp_path / "copy", conftest=conftest)
    collected = await PytestAdapter(sys.executable, copy).collect([])
    assert {f"test_it.py::test_{name}" for name in ALL} <= {found.test for found in collected.tests}
    assert (await run(copy, *ALL)).outcomes == TRUTH


# As SQLAlchemy's plugin does: for each database a class is made whose tests replace those of the original one.
DATABASES = """import os, pytest


def pytest_collection_modifyitems(items):
    os.chdir("/")
    made = []
    for item in items:
        for database in ("sqlite+one", "sqlite[two]"):
            module = item.getparent(pytest.Module)
            name = item.cls.__name__ + "_" + database
            setattr(module.obj, name, type(name, (item.cls,), {"database": database}))
            made += pytest.Class.from_parent(module, name=name).collect()
    items[:] = {test.nodeid: test for test in made}.values()
"""
BACKENDS = """import pytest
class TestQuery:
    @pytest.mark.parametrize("x", ["a::b", "c"])
    def test_select(self, x): assert self.database == "sqlite+one"
    def test_selector(self): pass
"""


async def test_tests_of_plugin_are_selected_by_id(tmp_path: Path) -> None:
    copy = make_copy(tmp_path / "copy", conftest=DATABASES)
    (copy / "test_it.py").write_text(BACKENDS)
    collected = await PytestAdapter(sys.executable, copy).collect([])
    assert collected.single_run == ("-o", "swarm_select=true")
    tests = [found.test for found in collected.tests]
    assert len(tests) == 6
    one, two = (f"test_it.py::TestQuery_{name}::test_select[c]" for name in ("sqlite+one", "sqlite[two]"))
    options = collected.single_run
    made = await run_tests(SessionsHere(sys.executable, copy, options=options, timeout=PATIENCE), {one: one})
    assert (made.outcomes, made.is_complete) == ({one: "passed"}, True)
    made = await run_tests(
        SessionsHere(sys.executable, copy, options=options, timeout=PATIENCE), {test: test for test in tests}
    )
    assert sorted(made.outcomes) == sorted(tests)
    assert (made.outcomes[one], made.outcomes[two]) == ("passed", "failed")


async def test_whole_file_beside_a_selected_test_is_run_whole(tmp_path: Path) -> None:
    copy = make_copy(tmp_path / "copy")
    (copy / "test_other.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    words = ("-o", "swarm_select=true", "test_other.py", "test_it.py::test_good")
    collected = await PytestAdapter(sys.executable, copy).collect(words)
    tests = [found.test for found in collected.tests]
    assert tests == ["test_other.py::test_a", "test_other.py::test_b", "test_it.py::test_good"]


async def test_selected_test_that_does_not_exist_is_not_reported(tmp_path: Path) -> None:
    test = "test_it.py::test_nowhere"
    made = await run_tests(
        SessionsHere(
            sys.executable, make_copy(tmp_path / "copy"), options=("-o", "swarm_select=true"), timeout=PATIENCE
        ),
        {test: test},
    )
    assert made.outcomes == {}

"""Tests of a review: the tests that a fix affects, and cached results of test runs."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.integrator.program import integrate
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.pulled_files import USED_FILE, UsedCode
from swarm_tui.journal.record import TestRecord as Record
from swarm_tui.model.pulled import PulledWork
from swarm_tui.review.review import Review
from swarm_tui.review.tests import ReviewTests
from swarm_tui.review.verdicts import ReviewFolder, review_of_sweep
from swarm_tui.room.fixes.tests import ReviewTestRunner
from swarm_tui.testing.settings import TestSettings
from tests.git_project import PYTEST_INI, GitProject, file_contents
from tests.integrator.integrator_project import CODE, TEST_FILE, SweptProject, changed
from tests.testing.sums import IMPORT_ROOTS, TESTS, CountingPython, make_sums

pytestmark = pytest.mark.slow


@pytest.fixture
def sums(tmp_path: Path) -> GitProject:
    return make_sums(tmp_path / "sums")


@pytest.fixture
def review(sums: GitProject, tmp_path: Path) -> Iterator[Review]:
    folder = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    with Review.open(Repository.open(sums.root), "main", "integrated", folder=folder) as opened:
        yield opened


@pytest.fixture
def python(tmp_path: Path) -> CountingPython:
    return CountingPython(tmp_path)


@pytest.fixture
async def tests(review: Review, python: CountingPython) -> AsyncIterator[ReviewTests]:
    made = ReviewTests(review, TestSettings(python.path, import_roots=IMPORT_ROOTS))
    yield made
    await made.copies.close()


def nothing() -> None:
    """Do nothing."""


async def test_broken_tests_are_found_and_results_cached(
    sums: GitProject, review: Review, tests: ReviewTests, python: CountingPython
) -> None:
    (sums.root / "src/sums.py").write_text("raise SystemExit('the user is in the middle of something')\n")
    before = file_contents(sums.root)
    fix = review.fixes[0]
    run = await ReviewTestRunner(review, tests).run_without_fix(fix, frozenset({fix.id}), nothing)
    assert set(run.tests) == set(TESTS[:2])
    assert run.went_red == (TESTS[0],)
    assert file_contents(sums.root) == before
    calls = len(python.calls)
    again = ReviewTests(review, tests.copies.settings, [Record(test, file="tests/test_sums.py") for test in TESTS[:2]])
    repeated = await ReviewTestRunner(review, again).run_without_fix(fix, frozenset({fix.id}), nothing)
    assert (repeated.before, repeated.after) == (run.before, run.after)
    assert len(python.calls) == calls
    await again.copies.close()


async def test_plan_is_compared_with_branch(review: Review, tests: ReviewTests) -> None:
    runner, shown = ReviewTestRunner(review, tests), list[str]()
    run = await runner.run_plan(
        frozenset({review.fixes[1].id}), lambda: shown.append(runner.running.progress.words if runner.running else "")
    )
    assert run.before == dict.fromkeys(TESTS[:2], "passed")
    assert run.after == {TESTS[0]: "passed", TESTS[1]: "failed"}
    assert (run.is_over, run.went_red, run.complaint) == (True, (TESTS[1],), "")
    assert (shown[0], shown[-1]) == ("the plan: collecting tests", "")
    assert any(words.startswith("the plan: 1 of 2 tests, ~") and words.endswith("s left") for words in shown)


async def test_tests_of_many_fixes_are_collected_once(
    review: Review, tests: ReviewTests, python: CountingPython
) -> None:
    assert set(await tests.affected_by(review.fixes)) == set(TESTS[:2])
    assert len(python.calls) == 1


async def test_folder_named_like_option_is_a_folder(sums: GitProject, tmp_path: Path) -> None:
    sums.commit("tests", {"-p evil/test_dash.py": "from sums import add\ndef test_it(): assert add(1, 1) == 2\n"})
    folder = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    test = "-p evil/test_dash.py::test_it"
    with Review.open(Repository.open(sums.root), "main", "integrated", folder=folder) as review:
        tests = ReviewTests(review, TestSettings(sys.executable, import_roots=IMPORT_ROOTS))
        assert test in await tests.affected_by(review.fixes[:1])
        assert (await tests.copies.run(review.branch.tip_tree, [test])).is_green(test)
        await tests.copies.close()


async def test_collected_tests_run_with_nested_rootdir(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project")
    project.commit("base", {"pkg/pytest.ini": PYTEST_INI, "pkg/lib.py": "ONE = 2\n"})
    test_file = {"pkg/tests/test_lib.py": "from pkg.lib import ONE\ndef test_one(): assert ONE == 1\n"}
    project.commit("[FIX_IMPL] One", {"pkg/lib.py": "ONE = 1\n"} | test_file)
    folder = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    with Review.open(Repository.open(project.root), "main~1", "main", folder=folder) as review:
        tests = ReviewTests(review, TestSettings(sys.executable))
        assert await tests.affected_by(review.fixes) == ("tests/test_lib.py::test_one",)
        run = await tests.copies.run(review.branch.tip_tree, ["tests/test_lib.py::test_one"])
        assert run.is_green("tests/test_lib.py::test_one")
        await tests.copies.close()


async def test_records_of_sweep_select_tests(review: Review) -> None:
    red, green = PulledWork(passing_before=False), PulledWork(passing_before=True)
    records = (
        Record("tests/test_other.py::test_other", file="tests/test_other.py", pulled=red),
        Record("tests/test_other.py::test_green", file="tests/test_other.py", pulled=green),
        Record(TESTS[0], file="tests/test_sums.py", pulled=green),
    )
    tests = ReviewTests(review, TestSettings(sys.executable, import_roots=IMPORT_ROOTS), records)
    assert await tests.affected_by(review.fixes[:1]) == (TESTS[0], "tests/test_other.py::test_other")
    await tests.copies.close()


async def test_traced_code_decides_whether_fix_affects_test(review: Review, tmp_path: Path) -> None:
    sweep = SweepFolder(tmp_path / "sweep")
    # Both import the changed file. `add` begins in its first line, `double` in the eighth.
    for agent, line in (("adder", 1), ("doubler", 8)):
        used = UsedCode(outcome="passed", loaded=frozenset({"src/sums.py"}), functions={"src/sums.py": (line,)})
        sweep.agent(agent).mkdir(parents=True)
        (sweep.agent(agent) / USED_FILE).write_text(used.model_dump_json())
    green = PulledWork(passing_before=True)
    records = [Record(TESTS[0], file="tests/test_sums.py", agent="adder", pulled=green)]
    records += [Record(TESTS[1], file="tests/test_sums.py", agent="doubler", pulled=green)]
    tests = ReviewTests(review, TestSettings(sys.executable, import_roots=IMPORT_ROOTS), records, sweep)
    assert await tests.affected_by(review.fixes[:1]) == (TESTS[0],)
    (sweep.agent("doubler") / USED_FILE).unlink()
    assert await tests.affected_by(review.fixes[:1]) == TESTS[:2]
    await tests.copies.close()


async def test_results_of_integrator_are_reused(tmp_path: Path, python: CountingPython) -> None:
    project = SweptProject(tmp_path / "project")
    project.agent("test_add", [("[FIX_IMPL] Add", {"sums.py": changed(CODE, "first - second", "first + second")})])
    project.agent("test_double", [("[FIX_IMPL] Double", {"sums.py": changed(CODE, "number * 3", "number * 2")})])
    folder = review_of_sweep(tmp_path / "sweep")
    inputs = project.inputs(measure_seconds=600.0, python=python.path, cache=str(folder.results))
    await integrate(project.repository, inputs, lambda line: None)
    measured = len(python.calls)
    with Review.open(project.repository, project.base, inputs.branch, folder=folder) as review:
        tests = ReviewTests(review, inputs.test_settings, [Record(test.test, file=test.file) for test in inputs.tests])
        runner = ReviewTestRunner(review, tests)
        add, double = review.fixes
        plan = await runner.run_plan(frozenset({add.id, double.id}), nothing)
        assert len(plan.before) == len(plan.after) == 5
        assert plan.went_red == tuple(f"{TEST_FILE}::test_{name}" for name in ("add", "add_negative", "double"))
        without = await runner.run_without_fix(double, frozenset({double.id}), nothing)
        assert without.went_red == (f"{TEST_FILE}::test_double",)
        await tests.copies.close()
    # Without a fix, the integrator ran only failing tests; one test was green.
    run_again = [call.rpartition("-- ")[2] for call in python.calls[measured:]]
    assert run_again == [f"{TEST_FILE}::test_halve"] * 2


async def test_command_replaces_pytest(review: Review) -> None:
    settings = TestSettings(sys.executable, import_roots=IMPORT_ROOTS, command="grep -q 'a \\* 2' src/sums.py")
    tests = ReviewTests(review, settings)
    runner = ReviewTestRunner(review, tests)
    runs = [await runner.run_without_fix(fix, frozenset({fix.id}), nothing) for fix in review.fixes]
    assert [run.went_red for run in runs] == [(), (settings.command,)]
    plan = await runner.run_plan(frozenset(), nothing)
    assert list(plan.after) == [settings.command]
    # Results are cached by tree and command.
    assert tests.copies.settings.key != TestSettings(sys.executable, import_roots=IMPORT_ROOTS).key
    await tests.copies.close()


async def test_all_tests_run_if_none_is_affected(sums: GitProject, tmp_path: Path, python: CountingPython) -> None:
    sums.git("switch", "--quiet", "integrated")
    sums.commit("[FIX_IMPL] Add data that no test imports", {"data.json": "{}\n"})
    folder = ReviewFolder(tmp_path / "other/verdicts.jsonl", tmp_path / "other")
    with Review.open(Repository.open(sums.root), "main", "integrated", folder=folder) as review:
        tests = ReviewTests(review, TestSettings(python.path, import_roots=IMPORT_ROOTS))
        assert sorted(await tests.affected_by(review.fixes[-1:])) == sorted(TESTS)
        await tests.copies.close()

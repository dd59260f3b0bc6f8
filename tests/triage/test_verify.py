"""Running tests on previewed trees: the tree's own code is tested, results come live and are never computed twice."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.process import run_process
from swarm_tui.model import state
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.triage.review import Review
from swarm_tui.triage.store import ReviewFolder
from swarm_tui.triage.verify import HowToTest, TestRuns, how_without_sweep
from tests.git_project import GitProject, photograph
from tests.waiting import eventually

pytestmark = pytest.mark.slow

TESTS = "tests/test_sums.py::test_add", "tests/test_sums.py::test_double", "tests/test_other.py::test_other"


@pytest.fixture
def sums(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "sums")
    test_add, test_double = "def test_add(): assert add(1, 2) == 3", "def test_double(): assert double(2) == 4"
    project.commit(
        "base",
        {
            "src/sums.py": "def add(a, b): return a - b\n\n\n\n\n\n\ndef double(a): return a\n",
            "tests/test_sums.py": f"from sums import add, double\n{test_add}\n{test_double}\n",
            "tests/test_other.py": "def test_other(): pass\n",
        },
    )
    project.git("switch", "--quiet", "--create", "integrated")
    added = "def add(a, b): return a + b\n\n\n\n\n\n\ndef double(a): return a\n"
    project.commit("[FIX_IMPL] Add", {"src/sums.py": added})
    project.commit("[FIX_IMPL] Double", {"src/sums.py": added.replace("return a\n", "return a * 2\n")})
    return project


@pytest.fixture
def review(sums: GitProject, tmp_path: Path) -> Iterator[Review]:
    folder = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    with Review.open(Repository.open(sums.root), "main", "integrated", folder=folder) as opened:
        yield opened


@pytest.fixture
async def runs(review: Review) -> AsyncIterator[TestRuns]:
    made = TestRuns(review, HowToTest(sys.executable, import_roots=("src", ".")))
    yield made
    await made.close()


async def test_says_what_goes_red_without_a_fix_and_runs_nothing_twice(
    sums: GitProject, review: Review, runs: TestRuns
) -> None:
    (sums.root / "src/sums.py").write_text("raise SystemExit('the user is in the middle of something')\n")
    before = photograph(sums.root)
    tests = await runs.concerned(review.fixes[0])
    assert set(tests) == set(TESTS[:2])
    consequence = await runs.without(review.fixes[0], tests)
    assert consequence.went_red == (TESTS[0],)
    assert photograph(sums.root) == before
    again = TestRuns(review, HowToTest(sys.executable, import_roots=("src", ".")))
    results = [result async for result in again.run(review.branch.tip_tree, tests)]
    assert all(result.is_known and result.outcome == "passed" for result in results)
    await again.close()


async def test_the_tests_of_many_fixes_are_collected_by_one_call(
    sums: GitProject, review: Review, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho called >> {tmp_path}/calls\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    runs = TestRuns(review, HowToTest(str(python), import_roots=("src", ".")))
    assert set(await runs.concerned_by_any(review.fixes)) == set(TESTS[:2])
    assert (tmp_path / "calls").read_text() == "called\n"
    await runs.close()


async def test_what_was_made_for_previews_is_relied_on_from_the_first_copy_on(review: Review) -> None:
    runs = TestRuns(review, HowToTest(sys.executable, import_roots=("src", ".")))
    assert not review.space.is_held
    for _ in range(2):
        await runs.outcomes(review.branch.tip_tree, TESTS[:1])
        assert review.space.is_held
    await runs.close()
    assert not review.space.is_held


async def test_the_whole_sweeps_tests_run_on_the_final_tree(review: Review, runs: TestRuns) -> None:
    preview = review.preview_of([review.fixes[1].id])
    assert preview.tree is not None
    seen = {result.test: result.outcome async for result in runs.run(preview.tree, [*TESTS, "tests/gone.py::test_x"])}
    assert seen == {
        TESTS[0]: "passed",
        TESTS[1]: "failed",
        TESTS[2]: "passed",
        "tests/gone.py::test_x": "missing",
    }


async def test_leaving_in_the_middle_ends_what_runs(review: Review, runs: TestRuns) -> None:
    results = runs.run(review.branch.tip_tree, TESTS)
    async for result in results:
        assert not result.is_known
        break
    await results.aclose()  # type: ignore[attr-defined]  # an async generator is what it is
    again = [result async for result in runs.run(review.branch.tip_tree, TESTS)]
    assert {result.test for result in again} == set(TESTS)


async def test_leaving_while_a_tree_is_checked_out_spoils_no_later_result(
    review: Review, runs: TestRuns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = review.preview_of([fix.id for fix in review.fixes]).tree
    assert without is not None
    gone = ["tests/gone.py::test_x", "tests/gone.py::test_y"]
    assert [result.outcome async for result in runs.run(review.branch.tip_tree, gone)] == ["missing", "missing"]
    started, go = tmp_path / "started", tmp_path / "go"
    (tmp_path / "attributes").write_text("*.py filter=slow\n")
    (tmp_path / "config").write_text(
        f'[core]\n\tattributesFile = {tmp_path}/attributes\n[filter "slow"]\n'
        f'\tsmudge = "touch {started}; for n in $(seq 600); do test -e {go} && break; sleep 0.1; done; cat"\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    results = runs.run(without, TESTS[:1])
    waiting = asyncio.ensure_future(anext(results))
    await eventually(started.exists, "the filter of git to be asked")
    waiting.cancel()
    await asyncio.sleep(0)
    go.touch()
    await asyncio.wait([waiting])
    again = {result.test: result.outcome async for result in runs.run(review.branch.tip_tree, TESTS[:2])}
    assert again == dict.fromkeys(TESTS[:2], "passed")


async def test_a_folder_that_looks_like_an_option_is_a_folder(sums: GitProject, tmp_path: Path) -> None:
    sums.commit("tests", {"-p evil/test_dash.py": "from sums import add\ndef test_it(): assert add(1, 1) == 2\n"})
    folder = ReviewFolder(tmp_path / "review/verdicts.jsonl", tmp_path / "review")
    with Review.open(Repository.open(sums.root), "main", "integrated", folder=folder) as review:
        runs = TestRuns(review, HowToTest(sys.executable, import_roots=("src", ".")))
        assert "-p evil/test_dash.py::test_it" in await runs.concerned(review.fixes[0])
        await runs.close()


async def test_what_a_closed_terminal_left_behind_is_removed_by_the_next(review: Review) -> None:
    program = (
        "import os, sys; from pathlib import Path; from swarm_tui.adapters.git import Repository;"
        "from swarm_tui.triage.review import Review; from swarm_tui.triage.verify import HowToTest, TestRuns;"
        "runs = TestRuns(Review.open(Repository.open(Path(sys.argv[1])), 'main', 'integrated'), HowToTest('python3'));"
        "print(runs.folder, flush=True); os.kill(os.getpid(), 1)"
    )
    state_home = str(review.store.folder.root / "state")
    killed = await run_process(
        [sys.executable, "-c", program, str(review.repository.root)],
        environment=scrubbed_environment({"XDG_STATE_HOME": state_home}),
    )
    left = Path(killed.text.strip())
    assert left.is_dir()
    runs = TestRuns(review, HowToTest(sys.executable))
    assert not left.exists()
    assert runs.folder.is_dir()
    await runs.close()
    assert not runs.folder.exists()


async def test_a_set_up_that_fails_says_so_each_time(review: Review) -> None:
    runs = TestRuns(review, HowToTest(sys.executable, setup="exit 7"))
    for _ in range(2):
        with pytest.raises(Exception, match="set-up command failed with code 7"):
            await runs.outcomes(review.branch.tip_tree, TESTS[:1])
    await runs.close()


async def test_the_sweeps_records_choose_the_tests(review: Review, runs: TestRuns) -> None:
    records = (
        state.TestRecord(
            "tests/test_other.py::test_other", file="tests/test_other.py", harvest=HarvestReport(passing_before=False)
        ),
        state.TestRecord(
            "tests/test_other.py::test_green", file="tests/test_other.py", harvest=HarvestReport(passing_before=True)
        ),
        state.TestRecord(TESTS[0], file="tests/test_sums.py", harvest=HarvestReport(passing_before=True)),
    )
    assert await runs.concerned(review.fixes[0], records) == (TESTS[0], "tests/test_other.py::test_other")


def test_without_a_sweep_the_projects_own_environment_is_found(review: Review, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    python = review.repository.root / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    how = how_without_sweep(review.repository)
    assert (how.python, how.import_roots) == (str(python), ("src", "."))

"""Running tests on any tree: the tree's own code is tested, results are streamed and cached."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.processes.environment import scrubbed_environment
from swarm_tui.adapters.processes.run import run_process
from swarm_tui.adapters.pytest import SetUpFailed
from swarm_tui.errors import ProgramTimeout
from swarm_tui.testing.copies import TestCopies
from swarm_tui.testing.settings import TestSettings
from tests.git_project import GitProject
from tests.testing.sums import IMPORT_ROOTS, TESTS, CountingPython, make_sums
from tests.waiting import eventually

pytestmark = pytest.mark.slow

MakeCopies = Callable[..., TestCopies]


@pytest.fixture
def sums(tmp_path: Path) -> GitProject:
    return make_sums(tmp_path / "sums")


@pytest.fixture
async def make_copies(sums: GitProject, tmp_path: Path) -> AsyncIterator[MakeCopies]:
    """Return a function that creates copies with some settings, all with one cache."""
    async with AsyncExitStack() as stack:
        space = stack.enter_context(ObjectSpace(Repository.open(sums.root)))

        def make(
            python: str = sys.executable, *, setup: str = "", count: int = 2, parent_folder: Path | None = None
        ) -> TestCopies:
            settings = TestSettings(python, import_roots=IMPORT_ROOTS, setup=setup, checkout=str(sums.root))
            base, results = sums.git("rev-parse", "main"), tmp_path / "cache"
            made = TestCopies(space, settings, base=base, results=results, count=count, parent_folder=parent_folder)
            stack.push_async_callback(made.close)
            return made

        yield make


def tree_of(project: GitProject, revision: str) -> str:
    return project.git("rev-parse", f"{revision}^{{tree}}")


async def outcomes(copies: TestCopies, tree: str, *tests: str) -> dict[str, str]:
    return {result.test: result.outcome async for result in copies.results(tree, tests)}


async def test_code_of_tree_is_tested_and_results_cached(
    sums: GitProject, make_copies: MakeCopies, tmp_path: Path
) -> None:
    python = CountingPython(tmp_path)
    (sums.root / "src/sums.py").write_text("raise SystemExit('the user is in the middle of something')\n")
    copies = make_copies(python.path)
    first, last = tree_of(sums, "integrated~1"), tree_of(sums, "integrated")
    assert await outcomes(copies, first, *TESTS, "tests/gone.py::test_x") == {
        TESTS[0]: "passed",
        TESTS[1]: "failed",
        TESTS[2]: "passed",
        "tests/gone.py::test_x": "missing",
    }
    run = await copies.run(last, TESTS)
    assert (run.outcomes, run.is_complete) == (dict.fromkeys(TESTS, "passed"), True)
    calls = len(python.calls)
    again = [result async for result in make_copies(python.path).results(first, TESTS)]
    assert [(result.test, result.is_cached) for result in again] == [(test, True) for test in TESTS]
    assert (await make_copies(python.path).run(last, TESTS)).outcomes == dict.fromkeys(TESTS, "passed")
    assert len(python.calls) == calls


async def test_single_results_and_runs_share_a_cache(sums: GitProject, make_copies: MakeCopies, tmp_path: Path) -> None:
    python = CountingPython(tmp_path)
    copies, tree = make_copies(python.path), tree_of(sums, "integrated")
    await outcomes(copies, tree, TESTS[0])
    assert (await copies.run(tree, TESTS[:2])).outcomes == dict.fromkeys(TESTS[:2], "passed")
    assert python.calls[-1].endswith(f"-- {TESTS[1]}")
    assert len(python.calls) == 2


async def test_objects_of_space_are_kept_for_copies(sums: GitProject, tmp_path: Path) -> None:
    settings = TestSettings(sys.executable, import_roots=IMPORT_ROOTS)
    with ObjectSpace(Repository.open(sums.root)) as space:
        copies = TestCopies(space, settings, base=sums.git("rev-parse", "main"))
        assert not space.is_retained
        for _ in range(2):
            await copies.run(tree_of(sums, "integrated"), TESTS[:1])
            assert space.is_retained
        await copies.close()
        assert not space.is_retained


@pytest.mark.parametrize("damage", ["shutil.rmtree('.git')", "pathlib.Path('.git/HEAD').write_text('no')"])
async def test_damaged_copy_is_replaced(sums: GitProject, make_copies: MakeCopies, tmp_path: Path, damage: str) -> None:
    tree = tree_of(sums, "integrated")
    sums.commit("Damage", {"tests/test_damage.py": f"import pathlib, shutil\ndef test_it(): {damage}\n"})
    around = GitProject(tmp_path / "around")
    around.commit("Begin", {"mine.txt": "1"})
    around.write({"mine.txt": "2"})
    copies = make_copies(count=1, parent_folder=around.root)
    assert (await copies.run(tree_of(sums, "HEAD"), ["tests/test_damage.py::test_it"])).is_complete
    assert (await copies.run(tree, TESTS[:1])).outcomes == {TESTS[0]: "passed"}
    assert (around.root / "mine.txt").read_text() == "2"


async def test_closed_iterator_stops_remaining_runs(sums: GitProject, make_copies: MakeCopies) -> None:
    copies, tree = make_copies(), tree_of(sums, "integrated")
    results = copies.results(tree, TESTS)
    async for result in results:
        assert not result.is_cached
        break
    await results.aclose()  # type: ignore[attr-defined]  # an async generator is what it is
    assert set(await outcomes(copies, tree, *TESTS)) == set(TESTS)


async def test_interrupted_run_is_not_cached(sums: GitProject, make_copies: MakeCopies) -> None:
    stopping = "import os, signal\ndef test_first(): pass\ndef test_stopped(): os.kill(os.getpid(), signal.SIGINT)\n"
    sums.commit("stops", {"tests/test_stop.py": stopping})
    tree, tests = tree_of(sums, "integrated"), ["tests/test_stop.py::test_first", "tests/test_stop.py::test_stopped"]
    run = await make_copies().run(tree, tests)
    assert (run.outcomes, run.is_complete) == ({tests[0]: "passed"}, False)
    assert [result.is_cached async for result in make_copies().results(tree, tests)] == [False, False]


async def test_timed_out_run_is_not_cached(sums: GitProject, make_copies: MakeCopies) -> None:
    slow = "import time\ndef test_quick(): pass\ndef test_slow(): time.sleep(600)\n"
    sums.commit("slow", {"tests/test_slow.py": slow})
    tree, tests = tree_of(sums, "integrated"), ["tests/test_slow.py::test_quick", "tests/test_slow.py::test_slow"]
    copies = make_copies()
    with pytest.raises(ProgramTimeout):
        await copies.run(tree, tests, timeout=3.0)
    assert [result.is_cached async for result in copies.results(tree, tests[:1])] == [False]


async def test_cancelled_checkout_does_not_affect_later_results(
    sums: GitProject, make_copies: MakeCopies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies, tree, base_tree = make_copies(), tree_of(sums, "integrated"), tree_of(sums, "main")
    gone = ["tests/gone.py::test_x", "tests/gone.py::test_y"]
    assert list((await outcomes(copies, tree, *gone)).values()) == ["missing", "missing"]
    started, go = tmp_path / "started", tmp_path / "go"
    (tmp_path / "attributes").write_text("*.py filter=slow\n")
    (tmp_path / "config").write_text(
        f'[core]\n\tattributesFile = {tmp_path}/attributes\n[filter "slow"]\n'
        f'\tsmudge = "touch {started}; for n in $(seq 600); do test -e {go} && break; sleep 0.1; done; cat"\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    results = copies.results(base_tree, TESTS[:1])
    waiting = asyncio.ensure_future(anext(results))
    await eventually(started.exists, "the filter of git to be asked")
    waiting.cancel()
    await asyncio.sleep(0)
    go.touch()
    await asyncio.wait([waiting])
    assert await outcomes(copies, tree, *TESTS[:2]) == dict.fromkeys(TESTS[:2], "passed")


async def test_leftover_copies_are_removed_by_next_run(sums: GitProject, make_copies: MakeCopies) -> None:
    program = (
        "import os, sys; from pathlib import Path; from swarm_tui.adapters.git import Repository;"
        "from swarm_tui.adapters.git.objects import ObjectSpace; from swarm_tui.testing.copies import TestCopies;"
        "from swarm_tui.testing.settings import TestSettings;"
        "space = ObjectSpace(Repository.open(Path(sys.argv[1])));"
        "copies = TestCopies(space, TestSettings('python3'), base='main');"
        "print(copies.folder, flush=True); os.kill(os.getpid(), 1)"
    )
    killed = await run_process([sys.executable, "-c", program, str(sums.root)], environment=scrubbed_environment())
    left = Path(killed.text.strip())
    assert killed.code == -signal.SIGHUP
    assert left.is_dir()
    copies = make_copies()
    assert not left.exists()
    assert copies.folder.is_dir()
    await copies.close()
    assert not copies.folder.exists()


async def test_failed_set_up_is_reported_each_time(sums: GitProject, make_copies: MakeCopies) -> None:
    copies = make_copies(setup="seq 100; echo no compiler >&2; exit 7")
    for _ in range(2):
        with pytest.raises(
            SetUpFailed, match="set-up command failed with code 7 in a fresh copy: no compiler"
        ) as caught:
            await copies.run(tree_of(sums, "integrated"), TESTS[:1])
        assert caught.value.lines == [*map(str, range(90, 101)), "no compiler"]


async def test_concurrent_copies_have_separate_ports_and_folders(sums: GitProject, make_copies: MakeCopies) -> None:
    sums.git("tag", "-a", "-m", "First", "v1.2", "main")
    words = "$SWARM_AGENT_NUMBER $SWARM_FIRST_PORT $TMPDIR $(git describe) $SWARM_CHECKOUT"
    copies = make_copies(setup=f"touch $TMPDIR/mine && echo {words} > said.txt")
    tree = tree_of(sums, "main")
    async with copies.checked_out(tree) as first, copies.checked_out(tree) as second:
        told = [(folder / "said.txt").read_text().split() for folder in (first, second)]
        assert all(Path(folder, "mine").exists() for _, _, folder, _, _ in told)
    assert [set(pair) for pair in zip(*told, strict=True)][3:] == [{told[0][3]}, {str(sums.root)}]
    assert all(len(set(pair)) == 2 for pair in list(zip(*told, strict=True))[:3])
    assert told[0][3].startswith("v1.2")


async def test_copy_has_no_bytecode(sums: GitProject, make_copies: MakeCopies, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise Python would use it for a source with the same length and timestamp."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    copies = make_copies(setup=f"cd src && {sys.executable} -c 'import sums'", count=1)
    tree = tree_of(sums, "main")
    await copies.run(tree, TESTS[:1])
    async with copies.checked_out(tree) as copy:
        assert list(copy.rglob("*.pyc")) == []


async def test_set_up_files_exist_for_every_tree(sums: GitProject, make_copies: MakeCopies) -> None:
    sums.commit("needy", {"tests/test_other.py": "import ready\ndef test_other(): pass\n"})
    copies = make_copies(setup="test ! -e ready.py && echo > ready.py", count=1)
    for revision in ("integrated", "main", "integrated"):
        assert (await copies.run_uncached(tree_of(sums, revision), TESTS[2:], 60.0)).is_green(TESTS[2]), revision


async def test_hostile_git_settings_do_not_affect_other_trees(
    sums: GitProject, make_copies: MakeCopies, tmp_path: Path
) -> None:
    """A conftest sets a filter in the copy's git settings. The next check-out would run it as the user."""
    seen = tmp_path / "seen"
    hostile = f"""
import pathlib
git = pathlib.Path(__file__).parent / ".git"
with (git / "config").open("a") as config:
    config.write('[filter "evil"]\\n\\tsmudge = touch {seen}; cat\\n\\tclean = touch {seen}; cat\\n')
(git / "info").mkdir(exist_ok=True)
(git / "info/attributes").write_text("* filter=evil\\n")
"""
    sums.git("switch", "--quiet", "--create", "hostile", "main")
    sums.commit("hostile", {"conftest.py": hostile})
    sums.git("switch", "--quiet", "main")
    sums.commit("harmless", {"other.txt": "changed\n"})
    copies = make_copies(count=1)
    assert "passed" in (await outcomes(copies, tree_of(sums, "hostile"), *TESTS)).values()
    assert "passed" in (await outcomes(copies, tree_of(sums, "main"), *TESTS)).values()
    assert not seen.exists()

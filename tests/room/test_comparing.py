"""Two sweeps of a project are compared in the room and on the command line, with their kept fixes."""

import json
import shutil
from pathlib import Path

import pytest

from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import EngineEnded, EngineStarted, Queued
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.results import Baseline
from swarm_tui.review.open import kept_fixes
from swarm_tui.review.verdicts import APPLIED_FILE, Verdict
from tests.cli.command_line import run_swarm_tui
from tests.room.larder import begin_larder
from tests.room.scenes import Scene, press, room_on, shows

LATER = "20261119-061200"
WIDE = Scene("wide", (), 140, 40)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    """Return an integrated sweep with three verdicts. A later sweep next to it has a failing test again."""
    sweep = begin_larder(tmp_path_factory.mktemp("project") / "larder")
    sweep.work()
    sweep.integrate()
    sweep.decide({1: Verdict.KEEP, 2: Verdict.KEEP, 6: Verdict.REVERT})
    later = SweepFolder(sweep.folder.root.parent / LATER)
    later.root.mkdir()
    shutil.copy(sweep.folder.spec, later.spec)
    state = open_sweep(sweep.folder).state
    red = kept_fixes(sweep.folder, state)[0].tests[0]
    with JournalWriter(later.events) as journal:
        for test in state.records:
            journal.append(Queued(test=test, baseline=Baseline.RED if test == red else Baseline.GREEN))
        journal.append(EngineStarted(pid=1, slots=2))
        journal.append(EngineEnded())
    return sweep.folder


def test_kept_fixes_include_all_of_applied_plan(earlier: SweepFolder, tmp_path: Path) -> None:
    state = open_sweep(earlier).state
    kept = kept_fixes(earlier, state)
    assert len(kept) == 2
    assert not any(fix.is_applied for fix in kept)
    assert all(fix.title and set(fix.tests) <= set(state.records) and fix.tests for fix in kept)
    copied = SweepFolder(Path(shutil.copytree(earlier.root, tmp_path / "copied")))
    (copied.root / "review").mkdir(exist_ok=True)
    (copied.root / "review" / APPLIED_FILE).write_text('{"branch": "reviewed", "commit": "abc"}\nno json\n')
    applied = kept_fixes(copied, state)
    assert len(applied) == state.integration.fixes - 1
    assert all(fix.is_applied for fix in applied)
    shutil.rmtree(copied.integrator)
    assert kept_fixes(copied, state) == ()


def test_compare_without_names_uses_two_newest_sweeps(earlier: SweepFolder) -> None:
    repository = earlier.root.parents[2]
    shown = json.loads(run_swarm_tui("compare", "--json", folder=repository).stdout)
    assert (shown["before"]["sweep"], shown["after"]["sweep"]) == (earlier.name, LATER)
    first = kept_fixes(earlier, open_sweep(earlier).state)[0]
    broken = [(fix["commit"], [each["test"] for each in fix["tests"]]) for fix in shown["regressed"]]
    assert (first.commit, [first.tests[0]]) in broken
    assert shown["before"]["kept_fixes"] == 2
    lines = run_swarm_tui("compare", earlier.name, folder=repository).stdout
    assert f"{first.title} ({first.commit[:9]}, kept)\n    {first.tests[0]} is red\n" in lines


async def test_c_lists_other_sweeps_and_shows_differences(earlier: SweepFolder) -> None:
    async with room_on(SweepFolder(earlier.root.parent / LATER), WIDE) as (app, pilot):
        await press(pilot, "C")
        await shows(pilot, f"Compare {LATER} with", earlier.name)
        await press(pilot, "enter")
        await shows(pilot, f"{earlier.name} and {LATER}", "kept fixes whose tests fail again: ", "now green: ")
        test = kept_fixes(earlier, open_sweep(earlier).state)[0].tests[0]
        rows = app.screen.entries  # type: ignore[attr-defined]
        await press(pilot, *["down"] * next(place for place, row in enumerate(rows) if row.value == test))
        await press(pilot, "enter")
        assert app.current_test == test

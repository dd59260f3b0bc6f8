"""The real Claude Code as a good and a bad integrator: the displayed branch, and the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import EngineEnded, EngineStarted, Pulled, Queued
from swarm_tui.journal.folder import SweepFolder, create_runs_folder
from swarm_tui.model.pulled import PulledChange, PulledWork
from swarm_tui.model.results import Result
from swarm_tui.model.spec import SweepSpec
from tests.claude.lab import SHOP, ClaudeLab, claude_lab
from tests.claude.plays.integrators import playing
from tests.claude.plays.task import FIXES
from tests.isolation import IsolatedMngr, isolate_mngr

pytestmark = pytest.mark.slow

SWEEP: Final = "20261118-061200"
FIXED: Final = ("discount", "stock", "vat")
TESTS: Final = {name: f"tests/test_shop.py::test_{name}" for name in (*FIXED, "total")}


@pytest.fixture
def lab(mngr_path: str, claude: Path, tmp_path: Path) -> Iterator[ClaudeLab]:
    """Return a lab with a sweep whose agents submitted three fixes and one clean test."""
    with (
        isolate_mngr(mngr_path) as mngr,
        claude_lab(mngr, claude, tmp_path / "shop", list(TESTS)) as lab,
    ):
        pulled(lab, mngr)
        yield lab


def pulled(lab: ClaudeLab, mngr: IsolatedMngr) -> None:
    """Write the journal of a sweep whose agents are done."""
    git, folder = lab.project, SweepFolder(create_runs_folder(lab.project.root) / SWEEP)
    base = git.git("rev-parse", "HEAD")
    spec = SweepSpec(
        sweep=SWEEP,
        repository=str(git.root),
        base=base,
        created_at=1.0,
        agent_type="claude",
        python=sys.executable,
        identity=("Ada Lovelace", "ada@example.org"),
        is_load_ignored=True,
        measures_strength=False,
        needed_environment=("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        unapproved_servers=("notes",),
        outside_imports=(str(git.root.with_name("rates.md")),),
        mngr=mngr.settings,
    )
    folder.write_spec(spec)
    writer = JournalWriter(folder.events)
    writer.append(EngineStarted(pid=1, slots=4))
    for name, test in TESTS.items():
        branch, tip = f"swarm/{SWEEP}/{name}", ""
        writer.append(Queued(test=test, agent=f"swarm-{SWEEP}-{name}", branch=branch, file="tests/test_shop.py"))
        if name in FIXES:
            old, new, title = FIXES[name]
            git.git("checkout", "--quiet", "--detach", base)
            tip = git.commit(f"[FIX_IMPL] {title}", {"shop.py": SHOP.replace(old, new)})
            git.git("update-ref", f"refs/{branch}", tip)
        changes = (PulledChange(kind="FIX_IMPL", status="SUCCEEDED"),) if tip else ()
        report = PulledWork(tip=tip, changes=changes, passing_before=not tip, passing_after=True)
        result = Result.IMPL_FIX if tip else Result.CLEAN
        writer.append(Pulled(test=test, result=result, pulled=report))
    writer.append(EngineEnded(why="finished"))
    writer.close()
    git.git("checkout", "--quiet", "main")


@pytest.mark.parametrize(
    ("mode", "refused"),
    [
        ("honest", ""),
        ("lie", ""),
        ("undo", "3 tests that pass on the built-in integrator's branch fail on its: "),
        ("no report", "it submitted no report"),
        ("garbage report", "invalid report: "),
    ],
)
def test_branch_of_an_integrator_is_measured(lab: ClaudeLab, mode: str, refused: str) -> None:
    lab.model.play = playing(mode)
    done = lab.program.call("integrate", "--integrator", "agent", timeout=500.0)
    story = done.stderr + lab.program.call("events").stdout
    assert done.returncode == 0, story

    shown = lab.program.status()["integration"]
    assert (shown["by"], shown["problems"]) == ("builtin" if refused else "agent", []), story
    assert refused in shown["refused"], story
    printed = lab.program.call("status").stdout
    assert ("the coding agent's branch is not used: " in printed) == bool(refused)

    listed: dict[str, Any] = json.loads(lab.program.call("fixes", "--json").stdout)
    effects = {fix["title"]: (fix["effect"]["turned_green"], fix["by_integrator"]) for fix in listed["fixes"]}
    assert all(fix["effect"]["is_measured"] for fix in listed["fixes"])
    expected: dict[str, tuple[list[str], str]] = {FIXES[name][2]: ([TESTS[name]], "") for name in FIXED}
    assert effects == expected, story
    text = lab.program.call("fixes", "--pr").stdout
    assert "With all of these changes, 4 of 4 tests of the sweep pass." in text
    assert "4000" not in text

    kept = lab.project.git("branch", "--list", f"swarm/{SWEEP}/integrator")
    assert bool(kept) == bool(refused)

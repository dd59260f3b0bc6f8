"""What an engine does when its sweep is over: changed tests are measured, unless another engine begins."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

import pytest

from swarm_tui.integrator.events import Integrated
from swarm_tui.journal.append import EngineLock, JournalWriter
from swarm_tui.journal.events import EngineEnded
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.report.integrated import CommitDiffs, read_integration
from swarm_tui.review.open import review_sweep
from swarm_tui.strength.review import strength_of_review, turn_of_sweep
from swarm_tui.sweep.engine import measure_strength
from tests.git_project import PYTEST_INI, GitProject

TEST = "from lib import double\n\n\ndef test_double():\n    assert double(2) {} 4\n"


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    """A sweep that is over; on its branch one test was made weaker."""
    project = GitProject(tmp_path / "project")
    project.commit(
        "base",
        {"pytest.ini": PYTEST_INI, "lib.py": "def double(x):\n    return x + x\n", "test_lib.py": TEST.format("==")},
    )
    base = project.git("rev-parse", "HEAD")
    project.git("switch", "--quiet", "--create", "integrated")
    tip = project.commit("[TEST/DOC] tests", {"test_lib.py": TEST.format(">")})
    folder = SweepFolder(tmp_path / "20261118-061200")
    settings = MngrSettings(path="")
    root, name = str(project.root), folder.name
    folder.write_spec(
        SweepSpec(sweep=name, repository=root, base=base, created_at=1.0, python=sys.executable, mngr=settings)
    )
    with JournalWriter(folder.events) as journal:
        journal.append(Integrated(branch="integrated", tip=tip))
        journal.append(EngineEnded())
    return folder


def unmeasured(folder: SweepFolder) -> int:
    with review_sweep(folder) as review:
        return strength_of_review(review, folder)[0].unmeasured


@pytest.mark.slow
async def test_changed_tests_are_measured_when_no_engine_works_any_more(folder: SweepFolder, tmp_path: Path) -> None:
    engine = EngineLock(folder.lock)
    engine.acquire()
    await measure_strength(folder)
    assert unmeasured(folder) == 1
    engine.release()
    await measure_strength(folder)
    assert unmeasured(folder) == 0
    assert turn_of_sweep(folder).progress() is None
    # Whoever is sent the page reads it too.
    with closing(CommitDiffs(tmp_path / "project")) as diffs:
        section, _ = read_integration(open_sweep(folder), diffs, lambda name, content: None)
    assert any(
        doubt.startswith("weaker test: test_lib.py::test_double: a check was loosened") for doubt in section["doubts"]
    )


async def test_a_sweep_without_its_branch_is_left_alone(folder: SweepFolder, capfd: pytest.CaptureFixture[str]) -> None:
    with JournalWriter(folder.events, last_seq=2) as journal:
        journal.append(Integrated(branch=None, tip="f" * 40))
    await measure_strength(folder)
    assert "the changed tests are not measured: " in capfd.readouterr().err

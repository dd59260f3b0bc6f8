"""An agent's commits and uncommitted changes, even while it is running. No code of its copy is run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from msgspec import structs

from swarm_tui.adapters.git import Repository
from swarm_tui.e2e import E2eSession
from swarm_tui.journal.events import EngineEnded, Launched, Launching, Pulled, Stopped
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.results import Result, State
from swarm_tui.room.agent.changes import AgentChanges, ChangesReader
from tests.git_project import GitProject, file_contents
from tests.room.larder import begin_larder


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    made = GitProject(tmp_path / "project")
    made.commit("base", {"lib.py": "one\ntwo\nthree\n", "tests/test_lib.py": "old\n"})
    return made


@pytest.fixture
def copy(project: GitProject, tmp_path: Path) -> GitProject:
    """Return the working copy of an agent with one commit."""
    project.git("clone", "--quiet", ".", str(tmp_path / "copy"))
    made = GitProject(tmp_path / "copy")
    made.commit("[FIX_IMPL] Say zwei", {"lib.py": "one\nzwei\nthree\n"})
    return made


def read(project: GitProject, record: TestRecord) -> AgentChanges:
    repository = Repository.open(project.root)
    reader = ChangesReader(repository, repository.resolve("main"), record)
    try:
        return reader.read(record)
    finally:
        reader.close()


def running(copy: GitProject) -> TestRecord:
    return TestRecord("t", state=State.RUNNING, launched_at=1.0, work_dir=str(copy.root))


def test_changes_include_commits_and_uncommitted_work(project: GitProject, copy: GitProject) -> None:
    copy.write({"lib.py": "one\nzwei\ndrei\n", "new.py": "new\n", ".test_output/log.txt": "ours\n"})
    before = file_contents(copy.root)
    changes = read(project, running(copy))
    assert changes.is_live
    assert [(row.kind, row.title, row.added, row.removed) for row in changes.rows] == [
        ("all", "all changes", 3, 2),
        ("uncommitted", "not committed", 2, 1),
        ("FIX_IMPL", "Say zwei", 1, 1),
    ]
    assert file_contents(copy.root) == before
    assert project.git("count-objects", "-v").split("\n")[0] == "count: 5"


def test_reading_changes_runs_no_code_of_copy(project: GitProject, copy: GitProject, tmp_path: Path) -> None:
    trace = tmp_path / "it_was_run"
    for name in (
        "filter.evil.clean",
        "filter.evil.process",
        "diff.evil.command",
        "diff.evil.textconv",
        "core.fsmonitor",
    ):
        copy.git("config", name, f"touch {trace}; cat")
    copy.write({".gitattributes": "* filter=evil diff=evil\n", "lib.py": "one\nzwei\ndrei\n"})
    hook = copy.root / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trace}\n")
    hook.chmod(0o755)
    changes = read(project, running(copy))
    assert [row.kind for row in changes.rows] == ["all", "uncommitted", "FIX_IMPL"]
    assert not trace.exists()


def test_pulled_changes_are_shown_without_copy(project: GitProject, copy: GitProject) -> None:
    project.git("fetch", "--quiet", str(copy.root), "HEAD:refs/swarm/s/t")
    tip = copy.git("rev-parse", "HEAD")
    record = TestRecord("t", state=State.DONE, launched_at=1.0, work_dir=str(copy.root / "gone"))
    pulled = structs.replace(record, pulled=PulledWork(tip=tip, has_uncommitted=True))
    changes = read(project, pulled)
    assert [(row.kind, row.commit) for row in changes.rows] == [("FIX_IMPL", tip)]
    assert (changes.is_live, changes.problem) == (False, "uncommitted changes were not saved")
    assert read(project, record).problem == "the agent submitted no commit"
    assert read(project, structs.replace(record, host="box", state=State.RUNNING)).problem.startswith(
        "the agent runs on box: "
    )


def test_unreadable_copy_shows_reason(project: GitProject, tmp_path: Path) -> None:
    (tmp_path / "torn/.git").mkdir(parents=True)
    record = TestRecord("t", state=State.RUNNING, launched_at=1.0, work_dir=str(tmp_path / "torn"))
    assert read(project, record).problem == "the agent's working copy does not exist yet"


@pytest.mark.slow
def test_d_shows_changes_and_enter_opens_commit(e2e: E2eSession) -> None:
    sweep = begin_larder(e2e.folder / "larder")
    name = "soon_includes_today"
    test = sweep.tests[name]
    sweep.project.git("switch", "--quiet", "--create", "agent")
    sweep.project.commit("[FIX_IMPL] Count today", {"larder/more.py": "counted = 1\n"})
    tip = sweep.project.commit("[IMPROVE_TEST] Look closer", {"tests/e2e/test_more.py": "looked = 2\n"})
    sweep.project.git("switch", "--quiet", "main")
    sweep.append(
        *(Stopped(test=other.test, reason="x") for other in sweep.tests.values() if other is not test),
        Launching(test=test.test),
        Launched(test=test.test, host="localhost"),
        Pulled(test=test.test, result=Result.ERROR, pulled=PulledWork(tip=tip, errored=True)),
        EngineEnded(),
    )
    terminal = e2e.tmux(f"cd larder && {sys.executable} -m swarm_tui", width=120, height=35)
    terminal.wait_for("27")
    terminal.send_keys("w")
    terminal.wait_for("soon_includes_today")
    terminal.send_keys("d")
    terminal.wait_for("Changes · 2 commits")
    terminal.wait_for("better test")
    terminal.wait_for("all changes")
    terminal.send_keys("j")
    terminal.wait_for("+looked = 2")
    terminal.send_keys("j", "Enter")
    terminal.wait_for("+counted = 1")
    terminal.wait_until_gone("Changes · 2 commits")
    terminal.send_keys("Escape")
    terminal.wait_for("Changes · 2 commits")
    terminal.send_keys("Escape", "q")

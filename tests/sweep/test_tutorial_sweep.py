"""Agents write what a tutorial lacks, with the real mngr and no model: tests for blocks, commands for comments."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.git_project import GitProject
from tests.isolation import IsolatedMngr
from tests.sweep.sweeping import Program, kill_engine, offline
from tests.sweep.tutorial_project import line_of, out_of_step, record_fill, record_sync, unfilled

pytestmark = pytest.mark.slow


def sweep(program: Program, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a tutorial command to its end, and leave no engine behind."""
    try:
        return program.call("tutorial", *words, "--headless", "--json")
    finally:
        kill_engine(program.newest())


@pytest.fixture(scope="module")
def synced(
    isolated_mngr: IsolatedMngr, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Program, GitProject, subprocess.CompletedProcess[str]]:
    """Return a project whose tests were brought in step with its tutorial as far as agents could."""
    project = out_of_step(tmp_path_factory.mktemp("sync") / "larder")
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    words = offline(str(record_sync(project)), "--speed", "50", "--batch", "2", "--slots", "2")
    return program, project, sweep(program, "sync", "tutorial.sh", "tests/e2e", *words)


Synced = tuple[Program, GitProject, subprocess.CompletedProcess[str]]


def by_title(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {test["test"].partition(" ")[2]: test for test in status["tests"]}


def test_the_check_and_the_tests_decide_what_a_batch_came_to(synced: Synced) -> None:
    _, _, done = synced
    assert done.returncode == 1, done.stderr
    found = by_title(json.loads(done.stdout))
    assert found["Milk does not keep: say until when. (+1)"]["result"] == "better"
    second = found["Always keep some of these, and say what to buy. (+1)"]
    assert second["result"] == "unresolved"
    assert "0 of 2 blocks" in second["reason"]


def test_each_block_is_one_commit_and_removals_are_a_commit_of_their_own(synced: Synced) -> None:
    program, project, _ = synced
    branch = f"swarm/{program.newest().name}/integrated"
    assert project.git("log", "--reverse", "--format=%s", f"main..{branch}").splitlines() == [
        "Say until when milk keeps",
        "Find what is left",
        "Remove a test of blocks that are gone from tests/e2e/test_change.py",
    ]
    moments = project.git("log", "--format=%at", f"main..{branch}").split()
    assert all(int(moment) > 0 for moment in moments), "a block's commit keeps the time at which its agent made it"
    assert project.git("diff", "--name-only", "main", branch).splitlines() == [
        "tests/e2e/test_change.py",
        "tests/e2e/test_fill.py",
        "tests/e2e/test_was_there_any_of_that_left.py",
    ]
    assert "test_rename" not in project.git("show", f"{branch}:tests/e2e/test_change.py")
    assert project.git("status", "--porcelain") == ""


def test_only_reported_blocks_are_hard_to_use(synced: Synced) -> None:
    program, project, done = synced
    shop, share = line_of(project, "# Always keep"), line_of(project, "# Let the family")
    status = json.loads(done.stdout)
    (wrong,), (hard,) = status["unfinished_blocks"], status["usability_reports"]
    assert wrong["title"] == f"tutorial.sh:{shop} Always keep some of these, and say what to buy."
    assert "test_shop.py::test_shop does not pass" in wrong["detail"]
    assert hard["title"] == f"tutorial.sh:{share} Let the family see it."
    assert hard["detail"].startswith("`share` needs a folder that only one machine has.")
    for shown in (done.stderr, program.call("status").stdout):
        assert "hard to use here: 1" in shown
        assert "unfinished blocks: 1" in shown
    outcome = json.loads((program.newest().integrator / "integrator_outcome.json").read_text())
    titles = {each["kind"]: each["title"] for each in outcome["escalations"]}
    assert (titles["HARD_TO_USE"], titles["UNFINISHED_BLOCK"]) == (hard["title"], wrong["title"])


def test_each_block_is_walked_like_a_fix(synced: Synced) -> None:
    program, project, _ = synced
    listed = program.call("fixes", "--revert", "1", "--json")
    assert listed.returncode == 0, listed.stderr
    fixes = json.loads(listed.stdout)["fixes"]
    assert [fix["title"] for fix in fixes][:2] == ["Say until when milk keeps", "Find what is left"]
    assert fixes[0]["agents"] == [
        f"swarm-{program.newest().name}-{line_of(project, '# Milk')}-milk-does-not-keep-say-until-when-1"
    ]
    applied = program.call("fixes", program.newest().name, "--revert", "1", "--apply")
    assert applied.returncode == 0, applied.stderr
    reviewed = f"swarm/{program.newest().name}/reviewed"
    assert "2026-03-04" in project.git("show", f"{reviewed}:tests/e2e/test_fill.py")
    assert "2026-03-05" not in project.git("show", f"{reviewed}:tests/e2e/test_fill.py")


def test_integrating_again_gives_the_same_branch(synced: Synced) -> None:
    program, project, _ = synced
    branch = f"swarm/{program.newest().name}/integrated"
    tree = project.git("rev-parse", f"{branch}^{{tree}}")
    again = program.call("integrate")
    assert again.returncode == 0, again.stderr
    assert project.git("rev-parse", f"{branch}^{{tree}}") == tree


def test_comments_get_their_commands(isolated_mngr: IsolatedMngr, tmp_path: Path) -> None:
    project = unfilled(tmp_path / "larder")
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    records = offline(str(record_fill(project)), "--speed", "50")
    done = sweep(program, "fill", "tutorial.sh", *records)
    # One of two comments is still without a command.
    assert done.returncode == 1, done.stderr
    status = json.loads(done.stdout)
    (test,) = status["tests"]
    assert test["result"] == "tutorial_fix"
    share = line_of(project, "# Let the family")
    assert [each["title"] for each in status["usability_reports"]] == [f"tutorial.sh:{share} Let the family see it."]
    change = project.git("diff", "--unified=0", "main", status["integrated"]).splitlines()
    assert [line for line in change if line.startswith(("+", "-")) and "tutorial.sh" not in line] == [
        "+larder find FLOUR"
    ]


def test_tests_of_removed_blocks_need_no_agent(isolated_mngr: IsolatedMngr, tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project")
    tests = "".join(
        f'def test_{name}(e2e):\n    """Tutorial block:\n        # {name} it\n        {name}\n    """\n\n\n'
        for name in ("list", "frobnicate")
    )
    project.commit("Begin", {"t.sh": "# list it\nlist\n", "tests/test_it.py": tests})
    program = Program(project.root, {**isolated_mngr.environment, "SWARM_MNGR": isolated_mngr.settings.path})
    done = sweep(program, "sync", "t.sh", "tests", "--agent", "offline", "--python", sys.executable)
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)
    assert (status["tests"], status["state"]) == ([], "finished")
    shown = project.git("show", "--format=%s", status["integrated"])
    assert shown.startswith("Remove a test of blocks that are gone from tests/test_it.py")
    assert "-def test_frobnicate" in shown
    assert program.call("fixes", "--list").returncode == 0

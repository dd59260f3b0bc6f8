"""Row 0 in a real terminal: test changes are reviewed, left out, or kept with one key."""

from __future__ import annotations

import re
import sys

import pytest

from swarm_tui.e2e import E2eSession
from tests.git_project import GitProject

pytestmark = pytest.mark.slow

ROOM = f"{sys.executable} -m swarm_tui fixes --base main integrated"
PARTS = 40


def long_branch(e2e: E2eSession) -> GitProject:
    """A project with a commit of 40 test changes and eleven fixes on the branch `integrated`."""
    project = GitProject(e2e.folder / "project")
    project.commit("base", {f"part{number}.py": f"VALUE = {number}\n" for number in range(11)})
    project.git("switch", "--quiet", "--create", "integrated")
    tests = {f"tests/test_{number:02}.py": f"def test_{number:02}(): pass\n" for number in range(PARTS)}
    project.commit("[TEST/DOC] 40 better tests", tests)
    for number in range(11):
        project.commit(f"[FIX_IMPL] Fix part {number}", {f"part{number}.py": f"VALUE = {number * 100}\n"})
    project.git("switch", "--quiet", "main")
    return project


def test_eleven_fixes_and_forty_test_changes_take_twelve_keys(e2e: E2eSession) -> None:
    long_branch(e2e)
    terminal = e2e.tmux(f"cd project && {ROOM}", comment="review the branch", width=120, height=35)
    terminal.wait_for("[TEST/DOC] 40 test changes: 40 better tests")
    terminal.wait_for("11 fixes · 0 keep · 0 revert · 11 open · 40 test changes open")
    for _ in range(11):
        terminal.send_keys("y")
    terminal.wait_for("11 fixes · 11 keep · 0 revert · 0 open · 40 test changes open")
    terminal.send_keys("y")
    terminal.wait_for("every fix has a verdict: press A to apply the plan")
    terminal.wait_for(re.compile(r"11 keep · 0 revert · 0 open +plan clean"))
    terminal.send_keys("q")
    terminal.wait_for("reviewed 11 of 11, 0 reverted, 0 open")


def test_left_out_test_change_is_not_on_branch(e2e: E2eSession) -> None:
    project = long_branch(e2e)
    terminal = e2e.tmux(f"cd project && {ROOM}", comment="review the branch", width=80, height=24)
    terminal.wait_for("[TEST/DOC] 40 test changes")
    terminal.send_keys("g", "Enter")
    terminal.wait_for("[TEST/DOC] 40 hunks, combined")
    terminal.wait_for("+def test_00(): pass")
    terminal.send_keys("y", "n")
    terminal.wait_for("+def test_02(): pass")
    terminal.wait_for("1 test change out")
    terminal.send_keys("Escape")
    terminal.wait_for("Ranked 11")
    terminal.wait_for("1 left out")
    terminal.send_keys("A")
    terminal.wait_for("a new branch without them")
    terminal.send_keys("d")
    terminal.wait_for("[TEST/DOC] 39 of 40 hunks")
    terminal.send_keys("y")
    terminal.wait_for("Created. To check it out: git switch swarm/")
    terminal.send_keys("q")
    terminal.wait_for_exit()
    branch = project.git("branch", "--list", "swarm/*", "--format=%(refname:short)")
    assert project.git("diff", "--stat", "--name-only", "integrated", branch) == "tests/test_01.py"
    assert project.git("log", "--format=%s", f"main..{branch}").split("\n")[-1] == (
        "[TEST/DOC] 39 of 40 hunks of test and doc changes"
    )

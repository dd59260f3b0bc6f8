"""Hunks in a real terminal: a fix is reviewed as with `git add -p`, and its kept hunks are applied."""

from __future__ import annotations

import sys

import pytest

from swarm_tui.e2e import E2eSession
from tests.git_project import GitProject
from tests.review.conftest import number_lines

pytestmark = pytest.mark.slow

ROOM = f"{sys.executable} -m swarm_tui fixes --base main integrated"


def test_fix_is_kept_in_part(e2e: E2eSession) -> None:
    project = GitProject(e2e.folder / "project")
    project.commit("base", {"lines.txt": number_lines({})})
    project.git("switch", "--quiet", "--create", "integrated")
    project.commit("[FIX_IMPL] Two places", {"lines.txt": number_lines({5: "five", 30: "thirty"})})
    project.commit("[FIX_IMPL] One place", {"other.txt": "other\n"})
    project.git("switch", "--quiet", "main")
    terminal = e2e.tmux(f"cd project && {ROOM}", comment="review the branch", width=80, height=24)
    terminal.wait_for("2 fixes · 0 keep · 0 revert · 2 open")
    terminal.send_keys("H")
    terminal.wait_for("#1 2 hunks")
    terminal.wait_for("+five")
    terminal.send_keys("n")
    terminal.wait_for("+thirty")
    terminal.send_keys("y")
    terminal.wait_for("every hunk has a verdict: press Esc to return to the fixes")
    terminal.send_keys("Escape")
    terminal.wait_for("Ranked 2")
    terminal.wait_for("2 fixes · 0 keep · 1 partly · 0 revert · 1 open")
    terminal.wait_for("1 hunk out")
    terminal.send_keys("j")
    terminal.wait_for("+other")
    terminal.send_keys("H")
    terminal.wait_for("this fix has one hunk, new file other.txt: press y or n")
    terminal.send_keys("A")
    terminal.wait_for("Apply: 0 reverted, 1 in part")
    terminal.send_keys("r")
    terminal.wait_for("Revert 1 of 2 hunks of")
    terminal.send_keys("y")
    terminal.wait_for("Created. To check it out: git switch swarm/")
    terminal.send_keys("q")
    terminal.wait_for_exit()
    branch = project.git("branch", "--list", "swarm/*", "--format=%(refname:short)")
    assert project.git("show", f"{branch}:lines.txt") + "\n" == number_lines({30: "thirty"})

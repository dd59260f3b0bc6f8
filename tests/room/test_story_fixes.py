"""A user reviews ten fixes with ten keys in a real terminal, undoes one verdict, and applies the plan."""

from __future__ import annotations

import re
import sys

import pytest

from swarm_tui.e2e import E2eSession, expect
from tests.git_project import GitProject

pytestmark = pytest.mark.slow

ROOM = f"{sys.executable} -m swarm_tui fixes --base main integrated"


def ten_fixes(e2e: E2eSession) -> GitProject:
    """A project with ten fixes on the branch `integrated`, each in a separate file."""
    project = GitProject(e2e.folder / "project")
    project.commit("base", {f"part{number}.py": f"VALUE = {number}\n" for number in range(1, 11)})
    project.git("switch", "--quiet", "--create", "integrated")
    for number in range(1, 11):
        project.commit(f"[FIX_IMPL] Fix part {number}", {f"part{number}.py": f"VALUE = {number * 100}\n"})
    project.git("switch", "--quiet", "main")
    return project


def test_ten_fixes_are_reviewed_with_ten_keys(e2e: E2eSession) -> None:
    project = ten_fixes(e2e)
    terminal = e2e.tmux(f"cd project && {ROOM}", comment="review the branch", width=100, height=30)
    terminal.wait_for("10 fixes · 0 keep · 0 revert · 10 open")
    terminal.wait_for("+VALUE = 100")
    for key in "yynyyyynyy":
        terminal.send_keys(key)
    terminal.wait_for("10 fixes · 8 keep · 2 revert · 0 open")
    terminal.wait_for("every fix has a verdict: press A to apply the plan")
    terminal.send_keys("z")
    terminal.wait_for("10 fixes · 7 keep · 2 revert · 1 open")
    terminal.send_keys("Z")
    terminal.wait_for(re.compile(r"8 keep · 2 revert · 0 open +plan clean, 12 commits"))
    terminal.send_keys("A")
    terminal.wait_for("revert commits on top")
    terminal.send_keys("r")
    terminal.wait_for("Your checkout is unchanged")
    terminal.send_keys("y")
    terminal.wait_for("Created. To check it out: git switch swarm/")
    terminal.send_keys("q")
    expect(terminal.wait_for("reviewed 10 of 10, 2 reverted, 0 open")).not_to_contain("Traceback")
    assert terminal.wait_for_exit() == 0

    branch = project.git("branch", "--list", "swarm/*", "--format=%(refname:short)")
    assert project.git("log", "--format=%s", f"integrated..{branch}").split("\n") == [
        'Revert "[FIX_IMPL] Fix part 3"',
        'Revert "[FIX_IMPL] Fix part 8"',
    ]
    assert project.git("status", "--porcelain") == ""
    assert project.git("branch", "--show-current") == "main"


def test_fixes_command_reports_invalid_branch(e2e: E2eSession) -> None:
    ten_fixes(e2e)
    terminal = e2e.tmux(
        f"cd project && {sys.executable} -m swarm_tui fixes --base integrated main", width=100, height=10
    )
    terminal.wait_for("swarm-tui: ")
    assert terminal.wait_for_exit() == 2


def test_pager_opens_and_returns_to_room(e2e: E2eSession) -> None:
    ten_fixes(e2e)
    terminal = e2e.tmux(f"cd project && {ROOM}", env={"GIT_PAGER": "less"}, width=100, height=30)
    terminal.wait_for("+VALUE = 100")
    terminal.send_keys("o")
    terminal.wait_for("(END)")
    terminal.send_keys("q")
    terminal.wait_for("10 fixes · 0 keep")
    terminal.send_keys("y")
    terminal.wait_for("10 fixes · 1 keep")


HALF_AN_EDITOR = """\
#!/bin/sh
if grep -q 'half done' "$1"; then echo 'VALUE = 5' > "$1"; else echo '# half done' >> "$1"; fi
"""


def test_half_resolved_conflict_can_be_finished(e2e: E2eSession) -> None:
    project = GitProject(e2e.folder / "project")
    for number, message in enumerate(("base", "[FIX_IMPL] One", "[FIX_IMPL] Two"), 1):
        project.commit(message, {"part.py": f"VALUE = {number}\n"})
    project.git("branch", "integrated")
    project.git("reset", "--quiet", "--hard", "HEAD~2")
    editor = e2e.folder / "editor"
    editor.write_text(HALF_AN_EDITOR)
    editor.chmod(0o755)
    terminal = e2e.tmux(f"cd project && {ROOM}", env={"EDITOR": str(editor)}, width=100, height=30)
    terminal.wait_for("conflicts with #2 in part.py")
    terminal.send_keys("c")
    terminal.wait_for("resolve it in the editor")
    terminal.send_keys("e")
    terminal.wait_for("Use this as the revert of #1?")
    terminal.send_keys("y")
    terminal.wait_for("part.py still contains conflict markers")
    terminal.send_keys("y")
    terminal.wait_for("Use this as the revert of #1?")
    terminal.send_keys("y")
    terminal.wait_for(re.compile(r"1 revert · 1 open +plan clean, 3 commits"))
    terminal.send_keys("q")
    terminal.wait_for_exit()

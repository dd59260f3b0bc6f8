"""Files that act by themselves are known before anybody keeps the fix that brings them."""

from __future__ import annotations

import os

import pytest

from swarm_tui.model.fixes import FileChange
from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.room.draw.fixes import draw_report
from swarm_tui.triage.risky_files import LINK_MODE, leads_out, risk_of
from tests.triage.conftest import Integrated


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".gitattributes", "git acts on it"),
        ("src/.GitAttributes", "git acts on it"),
        (".gitmodules", "git acts on it"),
        (".mailmap", "git acts on it"),
        (".github/workflows/ci.yml", "CI runs it"),
        (".gitlab-ci.yml", "CI runs it"),
        ("Jenkinsfile", "CI runs it"),
        (".pre-commit-config.yaml", "git hooks"),
        (".husky/pre-commit", "git hooks"),
        (".claude/settings.json", "coding agent"),
        (".envrc", "a shell"),
        ("src/sitecustomize.py", "every Python"),
        ("swarm.pth", "every Python"),
    ],
)
def test_a_file_that_something_acts_on_is_risky_unless_it_is_removed(path: str, words: str) -> None:
    assert words in risk_of(FileChange(path, "A", "000000", "100644", "", ""))
    assert risk_of(FileChange(path, "D", "100644", "000000", "", "")) == ""


@pytest.mark.parametrize("path", ["src/app.py", "gitattributes.md", ".gitignore", "ci/readme.md", "tests/conftest.py"])
def test_an_ordinary_file_is_not(path: str) -> None:
    assert risk_of(FileChange(path, "M", "100644", "100644", "", "")) == ""


@pytest.mark.parametrize(
    ("path", "target", "is_out"),
    [
        ("a/b/link", "../c", False),
        ("link", "a/../b", False),
        ("a/link", "../../x", True),
        ("link", "..", True),
        ("link", "/etc/passwd", True),
        ("link", ".git/config", True),
        ("a/link", "../.GIT/hooks", True),
        ("link", "", True),
    ],
)
def test_where_a_link_leads(path: str, target: str, is_out: bool) -> None:
    assert leads_out(path, target) is is_out
    assert bool(risk_of(FileChange(path, "A", "000000", LINK_MODE, "", ""), target)) is is_out


def test_a_review_names_risky_files_with_their_fix_and_so_does_the_report(integrated: Integrated) -> None:
    project = integrated.project
    os.symlink("/etc/passwd", project.root / "link")
    os.symlink("lines.txt", project.root / "inside")
    project.commit("[FIX_IMPL] Helpful", {".github/workflows/x.yml": "on: push\n", "code.py": "x = 1\n"})
    with integrated.open() as review:
        assert review.branch.risk_lines == (
            "#6: .github/workflows/x.yml: CI runs it",
            "#6: link is a link that leads out of the tree, to /etc/passwd",
        )
        lines = draw_report(IntegratorOutcome(), review.branch, lambda _: "", 100)
        text = "\n".join("".join(part.text for part in line) for line in lines)
        assert "look at these files" in text
        assert "leads out of the tree, to /etc/passwd" in text


def test_an_ordinary_branch_has_no_risky_files(integrated: Integrated) -> None:
    with integrated.open() as review:
        assert review.branch.risks == {}

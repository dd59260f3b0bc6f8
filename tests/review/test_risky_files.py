"""Files that take effect automatically are reported before a fix is kept."""

from __future__ import annotations

import os

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.model.commits import FileChange
from swarm_tui.model.report import IntegratorReport
from swarm_tui.review.ranking import read_measured_effects
from swarm_tui.review.review import LINK_MODE, ExpectedOrigin, Review, leads_out, risk_of
from swarm_tui.room.fixes.draw import draw_report
from tests.review.conftest import Integrated


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".gitattributes", "git reads it automatically"),
        ("src/.GitAttributes", "git reads it automatically"),
        (".gitmodules", "git reads it automatically"),
        (".mailmap", "git reads it automatically"),
        (".github/workflows/ci.yml", "CI runs it"),
        (".gitlab-ci.yml", "CI runs it"),
        ("Jenkinsfile", "CI runs it"),
        (".pre-commit-config.yaml", "git hook"),
        (".husky/pre-commit", "git hook"),
        (".claude/settings.json", "coding agent"),
        (".envrc", "a shell"),
        ("src/sitecustomize.py", "every Python"),
        ("swarm.pth", "every Python"),
    ],
)
def test_automatic_file_is_risky_unless_removed(path: str, words: str) -> None:
    assert words in risk_of(FileChange(path, "A", "000000", "100644", "", ""))
    assert risk_of(FileChange(path, "D", "100644", "000000", "", "")) == ""


@pytest.mark.parametrize("path", ["src/app.py", "gitattributes.md", ".gitignore", "ci/readme.md", "tests/conftest.py"])
def test_ordinary_file_is_not_risky(path: str) -> None:
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
def test_outside_links_are_detected(path: str, target: str, is_out: bool) -> None:
    assert leads_out(path, target) is is_out
    assert bool(risk_of(FileChange(path, "A", "000000", LINK_MODE, "", ""), target)) is is_out


def test_review_and_report_name_risky_files(integrated: Integrated) -> None:
    project = integrated.project
    os.symlink("/etc/passwd", project.root / "link")
    os.symlink("lines.txt", project.root / "inside")
    project.commit("[FIX_IMPL] Helpful", {".github/workflows/x.yml": "on: push\n", "code.py": "x = 1\n"})
    with integrated.open() as review:
        assert review.branch.risk_lines == (
            "#6: .github/workflows/x.yml: CI runs it",
            "#6: link is a symbolic link to /etc/passwd, outside of the repository",
        )
        lines = draw_report(IntegratorReport(), review.branch, lambda _: "", 100)
        text = "\n".join("".join(part.text for part in line) for line in lines)
        assert "check these commits" in text
        assert "is a symbolic link to /etc/passwd" in text


def test_fix_of_conftest_is_risky_and_unmeasured(integrated: Integrated) -> None:
    commit = integrated.project.commit("[FIX_IMPL] Helpful", {"conftest.py": "def pytest_runtest_setup(): pass\n"})
    with integrated.open() as review:
        assert review.branch.risk_lines == ("#6: not measured: changes conftest.py",)
        said = IntegratorReport(ranking=[{"commit": commit, "turned_green": ["a"], "is_measured": True}])  # type: ignore[call-arg]
        (effect,) = read_measured_effects(said, review.branch.not_measured).values()
        assert (effect.is_measured, effect.why) == (False, "not measured: changes conftest.py")


@pytest.mark.parametrize(
    ("identity", "date", "doubts"),
    [
        ("Ada Lovelace <ada@example.org>", "1700000500 +0000", ()),
        ("Ada <ada@example.org>", "1700000500 +0100", ()),
        ("Linus <linus@example.org>", "1700000500 +0000", ("Linus <linus@example.org>, not Ada",)),
        ("Ada Lovelace <ada@example.org>", "4102444800 +0000", ("dated it 2100-01-01, which is outside of",)),
        ("Ada Lovelace <ada@example.org>", "0 +0000", ("dated it 1970-01-01",)),
        ("Ada Lovelace <ada@example.org>", "99999999999999 +0000", ("dated it @99999999999999",)),
        ("Linus <linus@example.org>", "0 +0000", ("Linus", "1970")),
    ],
)
def test_forged_author_or_date_is_risky(
    integrated: Integrated, identity: str, date: str, doubts: tuple[str, ...]
) -> None:
    project = integrated.project
    tree = project.git("rev-parse", "HEAD^{tree}")
    raw = f"tree {tree}\nparent {integrated.base}\nauthor {identity} {date}\ncommitter {identity} 1700000500 +0000\n\n"
    raw += "[FIX_IMPL] Fix\n"
    commit = project.git("hash-object", "-t", "commit", "-w", "--stdin", stdin=raw.encode())
    origin = ExpectedOrigin("Ada Lovelace", "ada@example.org", since=1_700_000_000.0)
    opened = Review.open(Repository.open(project.root), "main", commit, folder=integrated.folder, origin=origin)
    with opened as review:
        risks = review.branch.risks_of(commit)
    assert len(risks) == len(doubts)
    assert all(doubt in risk for doubt, risk in zip(doubts, risks, strict=True))

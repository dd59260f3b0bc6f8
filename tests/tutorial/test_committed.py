"""Reading a tutorial and its tests from a commit."""

from __future__ import annotations

import os
from pathlib import Path

from swarm_tui.adapters.git import Repository
from swarm_tui.tutorial.citations import BrokenFile, TestFile
from swarm_tui.tutorial.read import CommittedTutorialReader
from tests.git_project import GitProject
from tests.tutorial.test_open_work import cite


def test_commit_is_read_instead_of_checkout(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project")
    first = project.commit(
        "One",
        {
            "doc/t.sh": "# one\nrun\n",
            "tests/test_a.py": cite("test_a", "# one", "run"),
            "tests/deep/b_test.py": "def test_b(: pass",
            "tests/other.py": "def test_c(): pass",
            "tests_too/test_d.py": "def test_d(): pass",
        },
    )
    project.write({"doc/t.sh": "# changed\n"})
    reader = CommittedTutorialReader(Repository.open(project.root), "doc/t.sh", "tests")
    found = reader.read(first)
    assert found.text == "# one\nrun\n"
    assert found.paths == ("tests/deep/b_test.py", "tests/test_a.py")
    broken, good = found.files
    assert isinstance(broken, BrokenFile)
    assert isinstance(good, TestFile)
    assert good.tests[0].file == "tests/test_a.py"
    second = project.commit("Two", {"tests/test_a.py": None})
    assert reader.read(second).paths == ("tests/deep/b_test.py",)
    assert reader.read(second).files[0] is broken


def test_binary_file_is_not_a_tutorial(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project")
    os.symlink("/etc/passwd", project.root / "link.sh")
    commit = project.commit("Begin", {"latin.sh": b"# caf\xe9\n", "real.sh": "# yes\n"})
    repository = Repository.open(project.root)
    for name in ("link.sh", "latin.sh", "missing.sh"):
        assert CommittedTutorialReader(repository, name).read(commit).text is None
    whole = CommittedTutorialReader(repository, "real.sh", ".").read(commit)
    assert (whole.text, whole.paths) == ("# yes\n", ())

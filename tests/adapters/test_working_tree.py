"""The copy of a checkout in which tests are collected."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.working_tree import copy_working_tree
from tests.git_project import GitProject


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "project")
    files = {
        ".gitignore": "*.bin\n/build/\n.venv\n/data/\n",
        "a.py": "1\n",
        "gone.py": "",
        "run.sh": "",
        "folder/b.py": "",
    }
    project.commit("Begin", files)
    return project


def copied(project: GitProject) -> Path:
    copy = project.root.parent / "copy"
    copy_working_tree(Repository.open(project.root), copy)
    return copy


def test_copy_has_the_files_of_the_checkout_as_they_are_now(project: GitProject) -> None:
    project.write({"a.py": "2\n", "new.py": "3\n", "gone.py": None, "x.bin": b"\0", "build/deep/made.py": "4\n"})
    (project.root / "run.sh").chmod(0o755)
    (project.root / "link").symlink_to("a.py")
    copy = copied(project)
    assert (copy / "a.py").read_text() == "2\n"
    assert (copy / "new.py").read_text() == "3\n"
    assert (copy / "build/deep/made.py").read_text() == "4\n"
    assert (copy / "x.bin").read_bytes() == b"\0"
    assert os.readlink(copy / "link") == "a.py"
    assert os.access(copy / "run.sh", os.X_OK)
    assert not (copy / "gone.py").exists()


def test_copy_has_same_git_status(project: GitProject) -> None:
    project.git("tag", "v1")
    project.write({"a.py": "2\n", "new.py": "3\n", "gone.py": None})
    before = Repository.open(project.root)
    copy = Repository.open(copied(project))
    assert (copy.head(), sorted(copy.dirty_paths())) == (before.head(), sorted(before.dirty_paths()))
    assert copy.refs("refs/tags") == before.refs("refs/tags")
    assert copy.run("diff-files", "--name-only").text.split() == ["a.py", "gone.py"]


def test_environments_caches_and_nested_repositories_are_not_copied(project: GitProject) -> None:
    tools = (
        ".venv/bin/python",
        "data/own/pyvenv.cfg",
        "data/own/lib/x.py",
        "__pycache__/a.pyc",
        "data/node_modules/x.js",
    )
    project.write(dict.fromkeys(tools, "") | {"data/kept.txt": "", "folder/__pycache__/b.pyc": ""})
    GitProject(project.root / "nested").commit("Other", {"test_other.py": ""})
    GitProject(project.root / "data/clone").commit("Other", {"test_other.py": ""})
    copy = copied(project)
    found = {
        path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file() and ".git" not in path.parts
    }
    assert found == {".gitignore", "a.py", "gone.py", "run.sh", "folder/b.py", "data/kept.txt"}


def test_very_large_ignored_file_is_not_copied(project: GitProject) -> None:
    project.write({"large.bin": "", "small.bin": "1"})
    os.truncate(project.root / "large.bin", 60_000_000)
    copy = copied(project)
    assert (copy / "small.bin").exists()
    assert not (copy / "large.bin").exists()


def test_pipe_in_the_checkout_is_skipped(project: GitProject) -> None:
    os.mkfifo(project.root / "pipe")
    assert not (copied(project) / "pipe").exists()


def test_files_of_a_submodule_are_copied(project: GitProject, tmp_path: Path) -> None:
    library = GitProject(tmp_path / "library")
    library.commit("Library", {"lib/__init__.py": "X = 1\n"})
    project.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.root), "vendor")
    project.commit("Add library")
    copy = copied(project)
    assert (copy / "vendor/lib/__init__.py").read_text() == "X = 1\n"
    assert not (copy / "vendor/.git").exists()

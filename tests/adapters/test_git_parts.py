"""Copies get the submodules that the checkout has, from this disk; what is not here is told."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.checkouts import clone_into, fill_commands, find_submodules, uses_lfs
from swarm_tui.sweep.copies import copy_variables
from tests.git_project import GitProject, quiet_environment

ALLOW = ("-c", "protocol.file.allow=always")


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    """Return a project with a submodule in a submodule, whose names are awkward."""
    inner = GitProject(tmp_path / "inner")
    inner.commit("Inner", {"inner.txt": "inner\n"})
    middle = GitProject(tmp_path / "middle")
    middle.commit("Middle", {"middle.txt": "middle\n"})
    middle.git(*ALLOW, "submodule", "--quiet", "add", "--name", "in ner", str(inner.root), "deep/in $(touch x) ner")
    middle.commit("Link")
    project = GitProject(tmp_path / "project")
    project.commit("Begin", {"top.txt": "top\n"})
    project.git(*ALLOW, "submodule", "--quiet", "add", str(middle.root), "vendor")
    project.commit("Link")
    project.git(*ALLOW, "submodule", "--quiet", "update", "--init", "--recursive")
    for gone in (inner, middle):
        shutil.rmtree(gone.root)
    return project


def fill(project: GitProject, folder: Path) -> Path:
    repository = Repository.open(project.root)
    clone_into(repository, folder, commit="HEAD")
    for command in fill_commands(repository, repository.head()):
        subprocess.run(["sh", "-c", command], cwd=folder, env=quiet_environment(), check=True)
    return folder


def test_copy_gets_nested_submodules(project: GitProject, tmp_path: Path) -> None:
    folder = fill(project, tmp_path / "copy")
    assert (folder / "vendor/middle.txt").read_text() == "middle\n"
    assert (folder / "vendor/deep/in $(touch x) ner/inner.txt").read_text() == "inner\n"
    assert not list(tmp_path.rglob("x"))
    copy = GitProject(folder)
    copy.git("add", "--all")
    assert copy.git("status", "--porcelain") == ""


def test_copy_has_commit_of_base(project: GitProject, tmp_path: Path) -> None:
    inside = GitProject(project.root / "vendor")
    inside.commit("Elsewhere", {"middle.txt": "another\n"})
    assert (fill(project, tmp_path / "copy") / "vendor/middle.txt").read_text() == "middle\n"


def test_missing_submodule_is_listed(project: GitProject) -> None:
    repository = Repository.open(project.root)
    assert [module.path for module in find_submodules(repository, "HEAD")] == [
        "vendor",
        "vendor/deep/in $(touch x) ner",
    ]
    project.git("submodule", "--quiet", "deinit", "--force", "--all")
    shutil.rmtree(project.root / ".git/modules")
    assert [(module.path, module.store) for module in find_submodules(repository, "HEAD")] == [("vendor", None)]
    assert fill_commands(repository, "HEAD") == ()


def test_repository_without_submodules_is_fast(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project")
    project.commit("Begin", {"a.txt": "a"})
    repository = Repository.open(project.root)
    assert (find_submodules(repository, "HEAD"), uses_lfs(repository, "HEAD")) == ([], False)
    project.commit("Large", {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    assert uses_lfs(repository, "HEAD")


def test_lfs_files_come_from_local_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """git runs `git-lfs`, of which a copy needs one verb here; a stand-in shows where it looks."""
    project = GitProject(tmp_path / "project")
    project.commit("Begin", {".gitattributes": "*.bin filter=lfs\n", "a.bin": "version https://git-lfs\n"})
    assert fill_commands(Repository.open(project.root), "HEAD") == ()
    (tmp_path / "bin").mkdir()
    lfs = tmp_path / "bin/git-lfs"
    lfs.write_text('#!/bin/sh\ncat "$(git config lfs.storage)/objects/a" > a.bin\n')
    lfs.chmod(0o755)
    (project.root / ".git/lfs/objects").mkdir(parents=True)
    (project.root / ".git/lfs/objects/a").write_text("large\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    assert (fill(project, tmp_path / "copy") / "a.bin").read_text() == "large\n"
    assert copy_variables(Repository.open(project.root), fill_commands(Repository.open(project.root), "HEAD")) == {
        "GIT_LFS_SKIP_SMUDGE": "1"
    }

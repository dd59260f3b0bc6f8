"""The adapter to git: what it says of a repository, what it refuses, and that it leaves everything as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from swarm_tui.adapters.git import (
    GitError,
    Identity,
    RefMoved,
    Repository,
    checked_branch,
    clone_into,
    create_bundle,
    fetch_bundle,
    init_repository,
)
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.errors import AdapterError, ProgramTimeout, SwarmError, UsageError
from tests.git_project import GitProject, file_contents


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    made = GitProject(tmp_path / "project")
    made.commit("first", {"a.txt": "one\n", "folder/b.txt": "two\n"})
    return made


@pytest.fixture
def repository(project: GitProject) -> Repository:
    return Repository.open(project.root / "folder")


def test_repository_opens_from_any_folder(project: GitProject, repository: Repository) -> None:
    assert repository.root == project.root
    assert repository.head() == project.git("rev-parse", "HEAD")
    assert repository.current_branch() == "main"
    assert repository.tree_of("HEAD") == project.git("rev-parse", "HEAD^{tree}")
    assert repository.version >= (2, 38)


def test_folder_outside_repository_has_hint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="git init"):
        Repository.open(tmp_path)
    with pytest.raises(UsageError, match="folder not found"):
        Repository.open(tmp_path / "gone")


def test_repository_without_commits_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no commits yet"):
        Repository.open(GitProject(tmp_path / "empty").root).head()


@pytest.mark.parametrize("revision", ["--output=/tmp/x", "-h", "", "a\nb", "HEAD\0"])
def test_revision_like_option_is_rejected(repository: Repository, revision: str) -> None:
    with pytest.raises(UsageError, match="invalid revision"):
        repository.resolve(revision)


def test_unknown_revision_is_shown_without_escapes(repository: Repository) -> None:
    with pytest.raises(UsageError, match=r"unknown commit .*'gone'"):
        repository.resolve("gone")
    assert repository.find("gone") is None


@pytest.mark.parametrize(
    "name", ["-x", "a..b", "a b", "x.lock", "/x", "x/", "a//b", "@", "a@{b", "HEAD", ".x", "x\x1b[1m", "a/.b"]
)
def test_invalid_branch_names_are_rejected(project: GitProject, name: str) -> None:
    assert project.run("check-ref-format", f"refs/heads/{name}").returncode != 0 or name in ("-x", "@", "HEAD")
    with pytest.raises(UsageError, match="invalid branch name"):
        checked_branch(name)


@pytest.mark.parametrize("name", ["swarm/20261118-061200/reviewed", "fix-1", "a.b", "ünïcode", "a@b", "lock"])
def test_good_branch_names_pass(project: GitProject, name: str) -> None:
    project.git("check-ref-format", f"refs/heads/{name}")
    assert checked_branch(name) == name


def test_ref_is_set_only_from_expected_commit(project: GitProject, repository: Repository) -> None:
    first = repository.head()
    second = project.commit("second", {"a.txt": "1\n"})
    repository.update_ref("refs/heads/new", first, old=None)
    with pytest.raises(RefMoved):
        repository.update_ref("refs/heads/new", second, old=None)
    with pytest.raises(RefMoved):
        repository.update_ref("refs/heads/new", first, old=second)
    assert repository.branches() == {"main": second, "new": first}
    repository.update_ref("refs/heads/new", second, old=first)
    with pytest.raises(RefMoved):
        repository.delete_ref("refs/heads/new", old=first)
    repository.delete_ref("refs/heads/new", old=second)
    assert repository.ref("refs/heads/new") is None


def test_no_hook_runs_when_a_ref_is_set(project: GitProject, repository: Repository) -> None:
    hook = project.root / ".git/hooks/reference-transaction"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    repository.update_ref("refs/heads/new", repository.head(), old=None)
    assert "new" in repository.branches()


def test_hook_environment_selects_no_repository(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = GitProject(tmp_path / "other")
    other.commit("other", {"x": "x"})
    monkeypatch.setenv("GIT_DIR", str(other.root / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.root / ".git/index"))
    repository = Repository.open(project.root)
    assert repository.head() == project.git("rev-parse", "main")
    assert repository.dirty_paths() == ()


@pytest.mark.parametrize("name", ["$OTHER", "${OTHER}", "~", "a $OTHER b"])
def test_folder_named_like_variable_is_not_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    other = GitProject(tmp_path / "other")
    other.commit("other", {"x": "x"})
    monkeypatch.setenv("OTHER", str(other.root))
    monkeypatch.setenv("HOME", str(other.root))
    monkeypatch.chdir(tmp_path)
    made = init_repository(Path(name), branch="main", identity=("Ada", "ada@example.org"))
    assert made.root == tmp_path / name
    assert Repository.open(Path(name)).root == Repository.open(tmp_path / name).root == tmp_path / name
    assert sorted(os.listdir(other.root)) == [".git", "x"]


def test_hook_variables_do_not_reach_git(project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = GitProject(tmp_path / "other")
    other.commit("other", {"x": "x"})
    tip = project.git("rev-parse", "main")
    git = str(other.root / ".git")
    hook = {"GIT_DIR": git, "GIT_COMMON_DIR": git, "GIT_WORK_TREE": str(other.root), "GIT_PREFIX": "x/"}
    hook |= {"GIT_OBJECT_DIRECTORY": f"{git}/objects", "GIT_QUARANTINE_PATH": f"{git}/objects", "GIT_NAMESPACE": "n"}
    for variable, value in hook.items():
        monkeypatch.setenv(variable, value)
    repository = Repository.open(project.root)
    assert (repository.root, repository.common_directory) == (project.root, project.root / ".git")
    assert repository.head() == tip
    repository.update_ref("refs/heads/new", tip, old=None)
    assert repository.branches() == {"main": tip, "new": tip}
    with ObjectSpace(repository) as space:
        assert space.entry(repository.tree_of("HEAD"), "a.txt") is not None
    assert {name: os.environ[name] for name in hook} == hook


def test_worktree_shares_git_directory(project: GitProject, tmp_path: Path) -> None:
    project.git("worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    side = Repository.open(tmp_path / "side")
    assert side.root == tmp_path / "side"
    assert side.common_directory.resolve() == project.root / ".git"
    assert side.current_branch() == "side"


def test_looking_changes_nothing(project: GitProject, repository: Repository) -> None:
    (project.root / "a.txt").write_text("dirty\n")
    (project.root / "folder/b.txt").touch()
    (project.root / "new\x1b[2J.txt").write_text("x")
    before = file_contents(project.root)
    assert set(repository.dirty_paths()) == {"a.txt", "new\x1b[2J.txt"}
    assert repository.dirty_paths(has_untracked=False) == ("a.txt",)
    repository.refs("refs/heads", "refs/swarm")
    repository.list_commits("HEAD", "main")
    repository.checked_out_branches()
    assert file_contents(project.root) == before


def test_missing_identity_has_hint(
    project: GitProject, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert str(repository.identity()) == "Ada Lovelace <ada@example.org>"
    project.git("config", "--unset", "user.email")
    project.git("config", "user.useConfigOnly", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("EMAIL", raising=False)
    with pytest.raises(UsageError, match=r"user\.email"):
        repository.identity()


def test_missing_objects_have_hint(project: GitProject, repository: Repository) -> None:
    tree = project.git("rev-parse", "HEAD^{tree}")
    (project.root / ".git/objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(SwarmError, match="git fsck"):
        repository.run("ls-tree", "-r", "HEAD")


def test_bundle_brings_only_one_branch(project: GitProject, repository: Repository, tmp_path: Path) -> None:
    base = repository.head()
    project.git("switch", "--quiet", "--create", "swarm/s/one")
    tip = project.commit("[FIX_IMPL] one", {"a.txt": "fixed\n"})
    file = tmp_path / "branch.bundle"
    assert create_bundle(repository, file, base=base, branch="swarm/s/one")
    other = Repository.open(GitProject(tmp_path / "other").root)
    with pytest.raises(GitError, match="did not receive expected object"):
        fetch_bundle(other, file, branch="swarm/s/one", into="refs/swarm/s/one")
    project.git("switch", "--quiet", "main")
    project.git("branch", "-D", "swarm/s/one")
    assert fetch_bundle(repository, file, branch="swarm/s/one", into="refs/swarm/s/one") == tip
    assert repository.ref("refs/swarm/s/one") == tip
    assert not (project.root / ".git/FETCH_HEAD").exists()


def test_empty_branch_has_no_bundle(repository: Repository, tmp_path: Path) -> None:
    assert not create_bundle(repository, tmp_path / "b.bundle", base="main", branch="main")
    assert not (tmp_path / "b.bundle").exists()


def test_bundle_with_other_branch_is_rejected(project: GitProject, repository: Repository, tmp_path: Path) -> None:
    project.git("branch", "evil")
    project.git("bundle", "create", "--quiet", str(tmp_path / "b.bundle"), "evil", "main")
    with pytest.raises(UsageError, match="the branch good is not in"):
        fetch_bundle(repository, tmp_path / "b.bundle", branch="good", into="refs/swarm/s/good")


def test_bundle_with_missing_objects_is_rejected(project: GitProject, repository: Repository, tmp_path: Path) -> None:
    project.commit("two", {"a.txt": "2\n"})
    project.git("bundle", "create", "--quiet", str(tmp_path / "b"), "--filter=blob:none", "main")
    with pytest.raises(GitError, match="objects were filtered"):
        fetch_bundle(repository, tmp_path / "b", branch="main", into="refs/swarm/x")


def test_lone_head_counts_as_branch(project: GitProject, repository: Repository, tmp_path: Path) -> None:
    project.git("bundle", "create", "--quiet", str(tmp_path / "b.bundle"), "HEAD")
    commit = fetch_bundle(repository, tmp_path / "b.bundle", branch="one", into="refs/swarm/s/one")
    assert commit == repository.head()


def test_file_that_is_not_a_bundle_is_rejected(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "b.bundle").write_bytes(b"\x1b]0;owned\x07" * 10)
    with pytest.raises(AdapterError, match="is not a bundle") as caught:
        fetch_bundle(repository, tmp_path / "b.bundle", branch="main", into="refs/swarm/x")
    assert "\x1b" not in str(caught.value)


def test_clone_has_commit_but_no_remote(project: GitProject, repository: Repository, tmp_path: Path) -> None:
    clone = clone_into(repository, tmp_path / "copy", commit="HEAD", branch="swarm/s/one")
    assert clone.current_branch() == "swarm/s/one"
    assert (clone.root / "a.txt").read_text() == "one\n"
    assert clone.run("remote").text == ""
    with pytest.raises(UsageError, match="not empty"):
        clone_into(repository, tmp_path / "copy", commit="HEAD")


def test_copy_ignores_user_settings_for_clones(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("[clone]\n\tdefaultRemoteName = upstream\n\trejectShallow = true\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    clone = clone_into(repository, tmp_path / "copy", commit="HEAD")
    assert clone.head() == repository.head()
    assert clone.run("remote").text == ""


def test_copy_of_shallow_clone_has_unreferenced_commits(project: GitProject, tmp_path: Path) -> None:
    project.commit("second", {"a.txt": "three\n"})
    project.git("clone", "--quiet", "--depth=1", f"file://{project.root}", str(tmp_path / "shallow"))
    project.git("config", "--file", str(tmp_path / "shallow/.git/config"), "user.name", "Ada")
    project.git("config", "--file", str(tmp_path / "shallow/.git/config"), "user.email", "ada@example.org")
    shallow = Repository.open(tmp_path / "shallow")
    with ObjectSpace(shallow) as space:
        made = space.commit(shallow.tree_of("HEAD"), [shallow.head()], b"x\n", author=Identity("Ada", "a@example.org"))
        space.copy_to_repository(made, known=[shallow.head()])
    copy = clone_into(shallow, tmp_path / "copy", commit=made)
    assert copy.run("log", "--format=%s").text.split("\n") == ["x", "second"]
    assert (copy.root / "a.txt").read_text() == "three\n"


def test_symbolic_branch_is_not_followed(project: GitProject, repository: Repository) -> None:
    first = repository.head()
    project.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    second = project.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "second")
    assert repository.is_symbolic("refs/heads/alias")
    assert not repository.is_symbolic("refs/heads/main")
    repository.update_ref("refs/heads/alias", second, old=first)
    assert (repository.ref("refs/heads/main"), repository.ref("refs/heads/alias")) == (first, second)


def test_branch_of_any_worktree_counts_as_checked_out(
    project: GitProject, repository: Repository, tmp_path: Path
) -> None:
    project.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
    assert repository.checked_out_branches() == {"main": project.root, "other": tmp_path / "tree"}
    assert Repository.open(tmp_path / "tree").current_branch() == "other"


@pytest.mark.parametrize(
    ("said", "words"),
    [("git version 2.37.1", "git 2.37.1 is too old; 2.38"), ("nonsense", "git reports no version")],
)
def test_old_git_is_rejected(
    project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, words: str
) -> None:
    old = tmp_path / "bin/git"
    old.parent.mkdir()
    old.write_text(f"#!/bin/sh\necho '{said}'\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent), prepend=os.pathsep)
    with pytest.raises(AdapterError, match=words):
        Repository.open(project.root)


def test_timeout_stops_git_and_its_helpers(repository: Repository) -> None:
    with pytest.raises(ProgramTimeout, match="did not exit within"):
        repository.run("-c", "alias.wait=!sleep 1000; true", "wait", timeout=0.2)


def test_repository_of_other_user_is_not_empty(project: GitProject, monkeypatch: pytest.MonkeyPatch) -> None:
    project.commit("base", {"file": "x"})
    repository = Repository.open(project.root)
    assert repository.find("gone") is None
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(UsageError, match="which belongs to another user"):
        repository.find("HEAD")

"""What an agent has not committed is kept whole or left where it is, and only its own copy is ever looked into."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from swarm_tui.adapters.git import GitError, Repository, fetch_bundle
from swarm_tui.adapters.git.checkouts import FILE_LIMIT
from swarm_tui.agents.contract import OUTPUT_FOLDER
from swarm_tui.errors import SwarmError
from swarm_tui.hosts.copies import patch_without_git, uncommitted_patch
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress, AgentStatus
from swarm_tui.journal.record import TestRecord as Record
from swarm_tui.model.pulled import PulledWork
from swarm_tui.model.results import State
from swarm_tui.model.spec import MngrSettings
from swarm_tui.sweep.clean import losses_with
from swarm_tui.sweep.pull import (
    DETACHED_HEAD,
    NO_BRANCH,
    PATCH_LIMIT,
    FetchedCommits,
    fetch_agent_commits,
    unfetched_commits,
)
from tests.git_project import GitProject, file_contents


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    project = GitProject(tmp_path / "copy")
    project.commit("Begin", {"a": "1\n"})
    return project


def address(copy: Path) -> AgentAddress:
    return AgentAddress("a", "agent-a", "mngr-a", str(copy.parent / "state"), str(copy))


def sparse(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


async def test_what_is_too_large_for_a_patch_is_said_and_left_where_it_is(project: GitProject) -> None:
    sparse(project.root / "core/dump", PATCH_LIMIT + 1)
    host = LocalHost(MngrSettings(path="mngr", host_dir=str(project.root)))
    with pytest.raises(SwarmError, match=r"too large to be copied \(it stays in"):
        await uncommitted_patch(host, str(project.root), without=OUTPUT_FOLDER, limit=PATCH_LIMIT)
    assert project.git("count-objects").startswith("3 objects")


@pytest.mark.parametrize(("is_kept", "losses"), [(True, 0), (False, 1)])
async def test_work_that_no_patch_holds_is_a_loss_also_of_a_finished_agent(
    project: GitProject, tmp_path: Path, is_kept: bool, losses: int
) -> None:
    project.write({"new": "not committed\n"})
    record = Record("t", agent="a", state=State.DONE, pulled=PulledWork(has_uncommitted=is_kept))
    host = LocalHost(MngrSettings(path="mngr", host_dir=str(tmp_path)))
    found = await losses_with(host, AgentStatus(address(project.root), "STOPPED"), record)
    assert len(found) == losses
    assert all("uncommitted work" in loss for loss in found)


MALFORMED = [
    (".git", "hasDotgit"),
    (".GIT", "hasDotgit"),
    ("..", "hasDotdot"),
    (".", "hasDot"),
    ("sub/file", "fullPathname"),
]


def commit_with_entry(project: GitProject, name: str) -> str:
    """Commit a tree with an entry that git itself never writes, on a branch of the agent."""
    blob = project.git("hash-object", "-w", "--stdin", stdin=b"x\n")
    row = b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)
    tree = project.git("hash-object", "-t", "tree", "--literally", "-w", "--stdin", stdin=row)
    commit = project.git("commit-tree", tree, "-p", "HEAD", "-m", "[FIX_IMPL] Mend")
    project.git("update-ref", "refs/heads/swarm/1/test", commit)
    return commit


@pytest.mark.parametrize("source", ["bundle", "copy"])
@pytest.mark.parametrize(("name", "problem"), MALFORMED)
async def test_malformed_tree_never_reaches_the_repository(
    tmp_path: Path, name: str, problem: str, source: str
) -> None:
    project = GitProject(tmp_path / "project")
    base = project.commit("Begin", {"a": "1\n"})
    project.git("clone", "--quiet", str(project.root), str(tmp_path / "copy"))
    theirs = GitProject(tmp_path / "copy")
    commit_with_entry(theirs, name)
    bundle = tmp_path / "branch.bundle"
    theirs.git("bundle", "create", "--quiet", str(bundle), f"{base}..swarm/1/test")
    before = file_contents(project.root)
    fetched = await fetch_agent_commits(
        Repository.open(project.root),
        LocalHost(MngrSettings(path="mngr", host_dir=str(tmp_path))),
        address(theirs.root),
        base=base,
        branch="swarm/1/test",
        ref="refs/swarm/1/test",
        held="refs/swarm-held/1/test",
        bundle=bundle if source == "bundle" else None,
    )
    assert problem in fetched.problem
    assert not fetched.tip
    assert file_contents(project.root) == before


def test_bundle_with_a_huge_file_is_refused(tmp_path: Path, project: GitProject) -> None:
    other = GitProject(tmp_path / "other")
    other.commit("[FIX_IMPL] Mend", {"zeros": bytes(FILE_LIMIT + 1)})
    other.git("bundle", "create", "--quiet", str(tmp_path / "b.bundle"), "main")
    assert (tmp_path / "b.bundle").stat().st_size < 1_000_000
    before = file_contents(project.root)
    with pytest.raises(GitError, match="contain a file of 100 MB"):
        fetch_bundle(Repository.open(project.root), tmp_path / "b.bundle", branch="main", into="refs/swarm/1/test")
    assert file_contents(project.root) == before


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# v2 git bundle\n",
        b"# v2 git bundle\n\n",
        b"# v2 git bundle\n" + b"a" * 40 + b" HEAD\n\n",
        b"# v2 git bundle\n" + b"a" * 40 + b" HEAD\n\nPACK\0\0\0\2\0\0\0\0",
        b"# v9 git bundle\n" + b"a" * 40 + b" HEAD\n\nPACK",
        b"# v3 git bundle\n@x\n" + b"-" * 3_000_000,
        b"# v2 git bundle\n--help HEAD\n\nPACK",
    ],
)
def test_broken_bundle_is_refused_and_leaves_nothing(tmp_path: Path, project: GitProject, content: bytes) -> None:
    bundle = tmp_path / "b.bundle"
    bundle.write_bytes(content)
    before = file_contents(project.root)
    with pytest.raises(SwarmError) as caught:
        fetch_bundle(Repository.open(project.root), bundle, branch="one", into="refs/swarm/1/test")
    assert len(str(caught.value)) < 700
    assert file_contents(project.root) == before


def test_bundle_is_fetched_into_a_partial_clone(tmp_path: Path) -> None:
    origin = GitProject(tmp_path / "origin")
    origin.git("config", "uploadpack.allowFilter", "true")
    origin.commit("Begin", {"a/kept": "1\n", "a/changed": "1\n"})
    origin.git("clone", "--quiet", "--no-checkout", "--filter=blob:none", origin.root.as_uri(), str(tmp_path / "user"))
    base = origin.git("rev-parse", "HEAD")
    tip = origin.commit("[FIX_IMPL] Mend", {"a/changed": "2\n"})
    origin.git("bundle", "create", "--quiet", str(tmp_path / "b"), f"{base}..main")
    user = Repository.open(tmp_path / "user")
    assert fetch_bundle(user, tmp_path / "b", branch="main", into="refs/swarm/1/test") == tip
    assert user.ref("refs/swarm/1/test") == tip


class Clone:
    """A repository of the user, and an agent's copy of it with the agent's branch checked out."""

    def __init__(self, root: Path) -> None:
        self.user = GitProject(root / "user")
        self.base = self.user.commit("Begin", {"a": "1\n"})
        self.user.git("branch", "of-the-user")
        self.user.git("clone", "--quiet", "--no-local", str(self.user.root), str(root / "copy"))
        self.copy = GitProject(root / "copy")
        self.copy.git("branch", "--quiet", "of-the-user", "origin/of-the-user")
        self.copy.git("checkout", "--quiet", "-b", OWN)
        self.repository = Repository.open(self.user.root)
        self.host = LocalHost(MngrSettings(path="mngr", host_dir=str(root)))

    def fetch(self) -> FetchedCommits:
        names = {"branch": OWN, "ref": REF, "held": HELD}
        made = fetch_agent_commits(
            self.repository, self.host, address(self.copy.root), base=self.base, bundle=None, **names
        )
        return asyncio.run(made)

    def unfetched(self) -> list[str]:
        return asyncio.run(unfetched_commits(self.repository, self.host, address(self.copy.root)))

    def held(self) -> list[str]:
        return self.user.git("for-each-ref", "--format=%(objectname)", HELD).split()


OWN = "swarm/1/test"
REF = "refs/swarm/1/test"
HELD = "refs/swarm-held/1/test"


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_only_other_branch_is_used(clone: Clone) -> None:
    clone.copy.git("checkout", "--quiet", "-b", "feature/fix")
    tip = clone.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    fetched = clone.fetch()
    assert (fetched.tip, [commit.subject for commit in fetched.commits]) == (tip, ["[FIX_IMPL] Mend"])
    assert fetched.remarks == ("it committed on the branch feature/fix, not on the expected branch",)
    assert clone.user.git("rev-parse", REF) == tip
    assert clone.held() == []
    assert clone.fetch() == fetched


def test_unrelated_branch_is_kept_and_not_used(clone: Clone) -> None:
    clone.copy.git("checkout", "--quiet", "--orphan", "unrelated")
    tip = clone.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    fetched = clone.fetch()
    assert (fetched.tip, fetched.used_branch) == ("", "")
    assert [(left.where, left.tip) for left in fetched.elsewhere] == [("the branch unrelated", tip)]


def test_commits_elsewhere_are_kept_beside_those_of_own_branch(clone: Clone) -> None:
    git = clone.copy.git
    own = clone.copy.commit("[FIX_TEST] Mend", {"b": "1\n"})
    git("checkout", "--quiet", "-b", "one", clone.base)
    one = clone.copy.commit("One", {"a": "one\n"})
    git("checkout", "--quiet", "--detach", clone.base)
    clone.copy.commit("Detached 1", {"a": "2\n"})
    detached = clone.copy.commit("Detached 2", {"a": "3\n"})
    clone.copy.write({"a": "4\n"})
    git("stash", "--quiet")
    stash = git("rev-parse", "stash")
    fetched = clone.fetch()
    assert fetched.tip == own
    left = [(left.where, left.tip, left.commits) for left in fetched.elsewhere]
    assert left == [("the branch one", one, 1), (DETACHED_HEAD, detached, 2), ("a stash", stash, 1)]
    assert set(clone.held()) == {one, detached, stash}
    assert fetched.elsewhere[1].words == f"the agent left 2 commits on a detached HEAD, kept as {HELD}/{detached[:12]}"
    # A second pull of the same copy, as after a killed engine, finds the same.
    assert clone.fetch() == fetched
    assert clone.unfetched() == []


def test_every_stash_is_kept(clone: Clone) -> None:
    for text in ("2\n", "3\n"):
        clone.copy.write({"a": text})
        clone.copy.git("stash", "--quiet")
    stashes = {clone.copy.git("rev-parse", f"stash@{{{number}}}") for number in (0, 1)}
    fetched = clone.fetch()
    assert {left.tip for left in fetched.elsewhere} == stashes
    assert fetched.used_branch == ""


def test_commit_that_only_the_reflog_knows_is_kept(clone: Clone) -> None:
    clone.copy.git("checkout", "--quiet", "--detach")
    clone.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    clone.copy.git("commit", "--quiet", "--amend", "--message=[FIX_IMPL] Mend all")
    tip = clone.copy.git("rev-parse", "HEAD")
    clone.copy.git("checkout", "--quiet", OWN)
    fetched = clone.fetch()
    assert [(left.where, left.tip, left.commits) for left in fetched.elsewhere] == [(NO_BRANCH, tip, 1)]
    assert clone.held() == [tip]
    assert fetched.remarks == ()


def test_copy_without_new_commits_has_nothing_elsewhere(clone: Clone) -> None:
    assert clone.fetch() == FetchedCommits()
    clone.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    clone.copy.git("branch", "same")
    assert clone.fetch().elsewhere == ()


def test_deleted_git_directory_is_named(clone: Clone) -> None:
    clone.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    shutil.rmtree(clone.copy.root / ".git")
    fetched = clone.fetch()
    words = f"its copy has no .git directory any more; its files are in {clone.copy.root}"
    assert (fetched.problem, fetched.remarks) == (words, (words,))
    assert clone.unfetched() == [f"a: its copy has no .git directory any more, and its files are in {clone.copy.root}"]


def test_files_of_a_copy_without_git_are_kept_as_a_patch(clone: Clone, tmp_path: Path) -> None:
    clone.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    clone.copy.write({"new": "new\n", f"{OUTPUT_FOLDER}/log": "x", "__pycache__/a.pyc": "x"})

    def patched() -> bytes:
        bounds = {"base": clone.base, "without": OUTPUT_FOLDER}
        return asyncio.run(
            patch_without_git(clone.host, str(clone.copy.root), clone.repository, limit=1_000_000, **bounds)
        )

    assert patched() == b""
    shutil.rmtree(clone.copy.root / ".git")
    before = file_contents(clone.copy.root)
    patch = patched()
    assert file_contents(clone.copy.root) == before
    (tmp_path / "patch").write_bytes(patch)
    clone.user.git("apply", str(tmp_path / "patch"))
    assert clone.user.git("status", "--porcelain") == " M a\n?? new"
    assert (clone.user.root / "a").read_text() == "2\n"


def test_branch_checked_out_in_a_worktree_is_used(clone: Clone, tmp_path: Path) -> None:
    clone.user.git("worktree", "add", "--quiet", "-b", OWN, str(tmp_path / "tree"))
    clone.copy = GitProject.__new__(GitProject)
    clone.copy.root = tmp_path / "tree"
    clone.copy.git("checkout", "--quiet", "-b", "feature")
    tip = clone.copy.commit("[FIX_IMPL] Mend", {"a": "2\n"})
    fetched = clone.fetch()
    assert (fetched.tip, fetched.used_branch) == (tip, "the branch feature")


def test_commits_made_after_pull_are_listed_as_lost(clone: Clone) -> None:
    clone.fetch()
    clone.copy.git("checkout", "--quiet", "-b", "late")
    tip = clone.copy.commit("Late", {"a": "2\n"})
    assert clone.unfetched() == [f"a has commits on the branch late that were never fetched, up to {tip[:12]}"]


def test_malformed_commit_elsewhere_gets_no_ref(clone: Clone) -> None:
    tip = commit_with_entry(clone.copy, ".git")
    clone.copy.git("update-ref", "refs/heads/elsewhere", tip)
    clone.copy.git("update-ref", f"refs/heads/{OWN}", clone.base)
    fetched = clone.fetch()
    assert (fetched.tip, clone.held()) == ("", [])
    assert "hasDotgit" in fetched.remarks[0]

"""The throw-away object directory: trees as git makes them, merges by git's rules, and nothing kept unasked."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarm_tui.adapters.git import GitError, Identity, Repository
from swarm_tui.adapters.git.command import KeptProcess
from swarm_tui.adapters.git.history import DiffReader, read_commits
from swarm_tui.adapters.git.merging import MergeResult, MergeWay, best_merge_way, read_answer
from swarm_tui.adapters.git.objects import ObjectSpace
from swarm_tui.adapters.git.trees import TreeEntry, parse_tree, read_object
from swarm_tui.adapters.scratch import ScratchFolder
from tests.git_project import GitProject, file_contents


@pytest.fixture
def project(tmp_path: Path) -> GitProject:
    made = GitProject(tmp_path / "project")
    made.commit(
        "first", {"a.txt": "one\n", "folder/b.txt": "two\n", "folder/deep/c.txt": "three\n", "folder.txt": "4\n"}
    )
    return made


@pytest.fixture
def space(project: GitProject) -> Iterator[ObjectSpace]:
    with ObjectSpace(Repository.open(project.root)) as made:
        yield made


def test_changed_tree_equals_that_of_git(project: GitProject, space: ObjectSpace) -> None:
    tree = project.git("rev-parse", "HEAD^{tree}")
    blob = space.write("blob", b"new\n")
    changed = space.with_entries(
        tree,
        {
            "folder/deep/c.txt": None,
            "folder/b.txt": TreeEntry("100755", blob),
            "new/x/y.txt": TreeEntry("100644", blob),
        },
    )
    project.write({"folder/deep/c.txt": None, "folder/b.txt": "new\n", "new/x/y.txt": "new\n"})
    (project.root / "folder/b.txt").chmod(0o755)
    project.git("add", "--all")
    assert changed == project.git("write-tree")
    assert space.entry(changed, "folder/deep/c.txt") is None
    assert space.entry(changed, "a.txt/below") is None
    assert space.with_entries(tree, {}) == tree


def test_name_like_row_of_other_file_is_safe(space: ObjectSpace) -> None:
    old, new = space.write("blob", b"old\n"), space.write("blob", b"new\n")
    held = {"a100644 b": TreeEntry("100644", old), "b": TreeEntry("100644", old)}
    tree = space.with_entries(space.write("tree", b""), dict(held))
    changed = space.with_entries(tree, {"b": TreeEntry("100644", new)})
    assert parse_tree(space.read(changed)[1], 20) == held | {"b": TreeEntry("100644", new)}


NAMES = st.sampled_from(["a", "a.b", "a-", "b", "b/c", "a/b", "a/b/c", "a/d", "\u00fc/-rf", "z"])


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(NAMES, st.integers(0, 3)), st.lists(st.dictionaries(NAMES, st.integers(-1, 3)), max_size=3))
def test_any_change_gives_same_tree_as_git(files: dict[str, int], steps: list[dict[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = GitProject(Path(folder))
        modes = "100644", "100755", "120000", "100644"
        with ObjectSpace(Repository.open(project.root)) as space:
            blobs = [space.write("blob", f"{number}\n".encode()) for number in range(4)]
            tree, held = space.write("tree", b""), dict[str, int]()
            for step in [files, *steps]:
                changes = {name: how for name, how in step.items() if fits(name, how, held, step)}
                held = {name: how for name, how in (held | changes).items() if how >= 0}
                entries = {
                    name: TreeEntry(modes[how], blobs[how]) if how >= 0 else None for name, how in changes.items()
                }
                tree = space.with_entries(tree, entries)
                rows = "".join(f"{modes[how]} {blobs[how]}\t{name}\n" for name, how in held.items())
                space.repository.run("read-tree", "--empty")
                space.repository.run("update-index", "--add", "--index-info", stdin=rows.encode())
                assert tree == space.repository.run("write-tree").text


def fits(name: str, how: int, held: dict[str, int], step: dict[str, int]) -> bool:
    """Whether no other file stands where this one needs a folder, or the other way round."""
    others = [other for other in (*held, *step) if other != name]
    return not any(other.startswith(f"{name}/") or name.startswith(f"{other}/") for other in others)


def test_removing_all_leaves_empty_tree(project: GitProject, space: ObjectSpace) -> None:
    files = project.git("ls-files").split("\n")
    tree = project.git("rev-parse", "HEAD^{tree}")
    assert space.with_entries(tree, dict.fromkeys(files)) == project.git("mktree", stdin=b"")


def test_new_objects_are_temporary(project: GitProject) -> None:
    before = file_contents(project.root)
    head = project.git("rev-parse", "HEAD")
    with ObjectSpace(Repository.open(project.root)) as space:
        blob = space.write("blob", b"made here\n")
        assert space.read(blob) == ("blob", b"made here\n")
        commit = space.commit(project.git("rev-parse", "HEAD^{tree}"), [head], b"x")
        assert space.read(commit)[0] == "commit"
        folder = space.object_folders[0]
    assert not folder.exists()
    assert file_contents(project.root) == before


def test_write_after_close_leaves_no_folder(project: GitProject) -> None:
    project.commit("base", {"a": "1"})
    with ObjectSpace(Repository.open(project.root)) as space:
        folder = space.object_folders[0]
        space.write("blob", b"made")
    with pytest.raises(GitError, match="is closed"):
        space.write("blob", b"made later by a thread")
    assert not folder.parent.exists()


def test_only_copied_commits_reach_repository(project: GitProject, space: ObjectSpace) -> None:
    head = project.git("rev-parse", "HEAD")
    before = int(project.git("count-objects").split(" ")[0])
    blob = space.write("blob", b"kept\n")
    space.write("blob", b"not kept\n")
    tree = space.with_entries(project.git("rev-parse", "HEAD^{tree}"), {"kept.txt": TreeEntry("100644", blob)})
    author = Identity("Grace Hopper", "grace@example.org")
    commit = space.commit(tree, [head], b"Keep it\n", author=author, authored="@1700000000 +0100")
    assert project.git("cat-file", "-t", commit, codes=None) == ""
    space.copy_to_repository(commit, known=[head])
    assert project.git("log", "-1", "--format=%an %ae %ad %cn", "--date=raw", commit) == (
        "Grace Hopper grace@example.org 1700000000 +0100 Ada Lovelace"
    )
    assert project.git("show", f"{commit}:kept.txt") == "kept"
    blob_tree_commit = 3
    assert int(project.git("count-objects").split(" ")[0]) == before + blob_tree_commit


@pytest.mark.parametrize(
    ("name", "authored", "shown"),
    [
        ("...", "@1700000000 +0100", "unknown 1700000000 +0100"),
        ("", "@9999999999 +0000", "unknown 9999999999 +0000"),
        ("Grace", "@", "Grace 0 +0000"),
        ("Grace", "@99999999999999999999 +0000", "Grace 0 +0000"),
        ("Grace", "2286-11-20T17:46:39+00:00", "Grace 0 +0000"),
    ],
)
def test_invalid_author_does_not_prevent_commit(
    project: GitProject, space: ObjectSpace, name: str, authored: str, shown: str
) -> None:
    tree, head = project.git("rev-parse", "HEAD^{tree}"), project.git("rev-parse", "HEAD")
    commit = space.commit(tree, [head], b"x\n", author=Identity(name, "grace@example.org"), authored=authored)
    space.copy_to_repository(commit, known=[head])
    assert project.git("log", "-1", "--format=%an %ad", "--date=raw", commit) == shown


def test_full_object_space_is_cleared(project: GitProject) -> None:
    tree = project.git("rev-parse", "HEAD^{tree}")
    with ObjectSpace(Repository.open(project.root), size_limit=1_000) as space:
        assert not space.clear_if_full()
        blob = space.write("blob", b"x" * 2_000)
        with space.retained():
            assert not space.clear_if_full()
            assert space.read(blob)[0] == "blob"
        assert space.clear_if_full()
        with pytest.raises(GitError, match="is missing"):
            space.read(blob)
        blob = space.write("blob", b"small\n")
        changed = space.with_entries(tree, {"a.txt": TreeEntry("100644", blob)})
        assert space.merge(base=tree, ours=changed, theirs=tree).tree == changed
        assert not space.clear_if_full()


def test_missing_object_and_invalid_id_are_errors(space: ObjectSpace) -> None:
    with pytest.raises(GitError, match="is missing"):
        space.read("1" * 40)
    with pytest.raises(GitError, match="invalid object id"):
        space.read("HEAD\n")
    assert space.read(space.write("blob", b""))[1] == b""


@pytest.mark.parametrize(
    ("version", "way"),
    [
        ((2, 38, 1), MergeWay.MADE_UP_BASE),
        ((2, 39, 5), MergeWay.MADE_UP_BASE),
        ((2, 40), MergeWay.BASE_COMMIT),
        ((2, 47, 1), MergeWay.BARE_TREES),
        ((2, 55), MergeWay.KEPT_PROCESS),
        ((3, 0), MergeWay.KEPT_PROCESS),
    ],
)
def test_fastest_merge_of_each_git_is_used(version: tuple[int, ...], way: MergeWay) -> None:
    assert best_merge_way(version) is way


class Trickle(io.BytesIO):
    """A stream of which each reading gives one byte."""

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(1)


def test_answer_of_git_is_read_to_its_end(project: GitProject) -> None:
    base = project.git("rev-parse", "HEAD")
    one = project.commit("one", {"lines.txt": "one\n"})
    project.git("reset", "--quiet", "--hard", base)
    two = project.commit("two", {"lines.txt": "two\n"})
    ask = ("merge-tree", "--write-tree", "-z", "--messages", "--stdin")
    clean, conflict = (project.run(*ask, stdin=f"{one} {other}\n".encode()).stdout for other in (one, two))
    assert b"CONFLICT" in conflict
    for answers in ((clean, conflict), (conflict, clean)):
        stream = Trickle(b"".join(answers))
        assert (read_answer(stream), read_answer(stream)) == answers
    with pytest.raises(EOFError):
        read_answer(Trickle(conflict[:-1]))


def test_advice_of_git_is_not_next_answer(project: GitProject) -> None:
    commits = []
    for number in "123":
        project.git("update-index", "--add", "--cacheinfo", f"160000,{number * 40},vendored")
        commits.append(project.git("commit-tree", project.git("write-tree"), "-m", number))
    base, one, two = commits
    with ObjectSpace(Repository.open(project.root)) as space:
        trees = [project.git("rev-parse", f"{commit}^{{tree}}") for commit in (base, one, two)]
        conflict, clean = space.merger.merge_many([(trees[0], trees[1], trees[2]), (trees[0], trees[1], trees[0])])
        assert (conflict.is_clean, conflict.conflict_paths) == (False, ("vendored",))
        assert clean == MergeResult(trees[1])
        assert space.merge(base=trees[0], ours=trees[1], theirs=trees[2]) == conflict


def test_merge_uses_gitattributes_of_target(project: GitProject, space: ObjectSpace) -> None:
    base = project.git("rev-parse", "HEAD^{tree}")
    ours, theirs = (
        space.with_entries(base, {"folder/b.txt": TreeEntry("100644", space.write("blob", content))})
        for content in (b"ours\n", b"theirs\n")
    )
    union = TreeEntry("100644", space.write("blob", b"*.txt merge=union\n"))
    assert not space.merge(base=base, ours=ours, theirs=theirs).is_clean
    with_union = space.with_entries(ours, {"folder/.gitattributes": union})
    merge = space.merge(base=base, ours=with_union, theirs=theirs)
    assert merge.is_clean
    entry = space.entry(merge.tree, "folder/b.txt")
    assert entry is not None
    assert space.read(entry.id)[1] == b"ours\ntheirs\n"
    assert space.merge(base=base, ours=ours, theirs=theirs).conflict_paths == ("folder/b.txt",)
    many = space.merger.merge_many([(base, ours, theirs), (base, base, theirs)])
    assert [merge.is_clean for merge in many] == [False, True]
    assert many[1].tree == theirs


def test_sha256_worktrees_and_bare_repositories_work_too(tmp_path: Path) -> None:
    project = GitProject(tmp_path / "project", "--object-format=sha256")
    base = project.commit("base", {"a": "1\n2\n3\n", "d/b": "b\n"})
    project.commit("one", {"a": "1\n2\nthree\n"})
    tip = project.commit("two", {"d/b": "B\n"})
    project.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    project.git("worktree", "add", "--quiet", str(tmp_path / "tree"), base)
    for repository in (Repository.open(tmp_path / "tree"), Repository.open(tmp_path / "bare")):
        one, two = read_commits(repository, base, tip)
        with ObjectSpace(repository) as space:
            merge = space.merge(base=one.tree, ours=two.tree, theirs=one.parent_tree)
            wanted = project.git("rev-parse", f"{base}:a")
            assert space.entry(merge.tree, "a") == TreeEntry("100644", wanted)
            blob = TreeEntry("100644", wanted)
            assert space.with_entries(two.tree, {"a": blob}) == merge.tree


def test_diffs_ignore_user_settings(project: GitProject, space: ObjectSpace) -> None:
    for name, value in (
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "false"),
        ("color.ui", "always"),
        ("diff.context", "0"),
        ("diff.algorithm", "patience"),
        ("diff.renames", "false"),
        ("core.abbrev", "4"),
    ):
        project.git("config", name, value)
    first = project.git("rev-parse", "HEAD^{tree}")
    project.git("mv", "a.txt", "renamed.txt")
    project.commit("second", {"folder/b.txt": "two\nend of this diff\n"})
    second = project.git("rev-parse", "HEAD^{tree}")
    reader = DiffReader(space)
    for _ in range(3):
        diff = reader.diff(first, second)
        assert [(file.path, file.old_path) for file in diff.files] == [
            ("folder/b.txt", "folder/b.txt"),
            ("renamed.txt", "a.txt"),
        ]
        assert "+end of this diff" in diff.lines
        assert reader.diff(first, first).lines == ()
        with pytest.raises(GitError):
            reader.raw_diff(first, "2" * 40)
    reader.close()


def test_folder_of_killed_process_is_removed(tmp_path: Path) -> None:
    living = ScratchFolder("swarm-test-", tmp_path)
    program = (
        "import os, pathlib, sys; from swarm_tui.adapters.scratch import ScratchFolder;"
        "folder = ScratchFolder('swarm-test-', pathlib.Path(sys.argv[1]));"
        "print(folder.path, flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    left = Path(killed.stdout.strip())
    assert left.is_dir()
    ScratchFolder("swarm-test-", tmp_path).close()
    assert not left.exists()
    assert living.path.is_dir()
    living.close()
    assert not living.path.exists()


def test_exited_git_process_is_restarted(project: GitProject) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        started.append(Repository.open(project.root).start("cat-file", "--batch"))
        return started[-1]

    kept = KeptProcess(start)
    question = project.git("rev-parse", "HEAD:a.txt").encode() + b"\n"
    assert kept.request(question, read_object) == ("blob", b"one\n")
    started[0].kill()
    started[0].wait()
    assert kept.request(question, read_object) == ("blob", b"one\n")
    assert len(started) == 2
    kept.close()
    assert started[1].poll() is not None


def test_git_process_without_answer_is_an_error(project: GitProject) -> None:
    kept = KeptProcess(lambda: Repository.open(project.root).start("cat-file", "--no-such-option"))
    with pytest.raises(GitError, match="no-such-option"):
        kept.request(b"x\n", read_object)


def test_merges_keep_times_of_packs(project: GitProject) -> None:
    base = project.git("rev-parse", "HEAD^{tree}")
    project.commit("ours", {"a.txt": "ours\n"})
    ours = project.git("rev-parse", "HEAD^{tree}")
    project.git("switch", "--quiet", "--detach", "HEAD~1")
    project.commit("theirs", {"folder/b.txt": "theirs\n"})
    theirs = project.git("rev-parse", "HEAD^{tree}")
    # The very tree that the merge leads to is in a pack.
    project.commit("both", {"a.txt": "ours\n"})
    project.git("branch", "both")
    project.git("repack", "-a", "-d", "--quiet")
    packs = list((project.root / ".git/objects/pack").iterdir())
    for path in packs:
        os.utime(path, (1_600_000_000, 1_600_000_000))
    with ObjectSpace(Repository.open(project.root)) as space:
        merged = space.merge(base=base, ours=ours, theirs=theirs)
        assert merged.tree == project.git("rev-parse", "both^{tree}")
    assert {path.stat().st_mtime for path in packs} == {1_600_000_000}

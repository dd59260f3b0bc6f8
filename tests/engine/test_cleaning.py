"""Cleaning says what would be lost, removes only what the sweep made, and believes no file about what it may remove."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from swarm_tui.engine.cleaning import find_leftovers, original_of, private_home, remove_folder, remove_leftovers
from swarm_tui.engine.names import harvest_ref
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.sweep import MngrSettings, SweepSpec
from tests.engine.rehearsal import QuickMngr, rehearse
from tests.git_project import GitProject


async def test_commits_that_are_nowhere_else_are_a_loss_and_kept_ones_are_not(tmp_path: Path) -> None:
    context = rehearse(tmp_path, 2, QuickMngr(tmp_path / "mngr"))
    project = GitProject(tmp_path / "project")
    first, second = (harvest_ref(context.spec, record.branch) for record in context.state.tests())
    commit = project.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "alone")
    project.git("update-ref", first, commit)
    kept = project.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "kept on a branch")
    project.git("update-ref", second, kept)
    project.git("branch", "mine", kept)
    opened = open_sweep(context.folder)
    leftovers = await find_leftovers(opened)
    assert dict(leftovers.refs) == {first: commit, second: kept}
    assert leftovers.losses == (
        f"{first} holds 1 commits that are on no branch and in no bundle of the sweep's folder",
    )
    assert await remove_leftovers(opened, leftovers) == []
    assert project.git("for-each-ref", "refs/swarm") == ""
    assert project.git("rev-parse", "mine") == kept
    assert (await find_leftovers(opened)).is_nothing


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="sw") as folder:
        yield Path(folder)


def private(root: Path, **changes: object) -> SweepSpec:
    """Return a sweep with a mngr home of its own, as the demo makes it."""
    for name in ("home", "t"):
        (root / name).mkdir(exist_ok=True)
    settings = {
        "path": "mngr",
        "host_dir": str(root / "home/.mngr"),
        "tmux_tmpdir": str(root / "t"),
        "home": str(root / "home"),
    }
    return SweepSpec(
        sweep="1",
        repository="/r",
        base="a",
        created_at=1.0,
        is_private=True,
        mngr=MngrSettings.model_validate(settings | changes),
    )


def test_a_home_that_was_made_for_one_sweep_is_known(short: Path) -> None:
    assert private_home(private(short)) == short
    assert private_home(private(short).model_copy(update={"is_private": False})) is None


@pytest.mark.parametrize("changes", [{"home": "/home/ada"}, {"tmux_tmpdir": "/tmp"}, {"host_dir": "/home/ada/.mngr"}])
def test_a_file_that_names_another_home_is_not_believed(short: Path, changes: dict[str, str]) -> None:
    assert private_home(private(short, **changes)) is None


def test_a_folder_with_other_things_in_it_is_not_removed(short: Path) -> None:
    spec = private(short)
    (short / "thesis.txt").write_text("years of work")
    assert private_home(spec) is None


def test_a_folder_that_others_may_enter_was_not_made_by_us(short: Path) -> None:
    spec = private(short)
    short.chmod(0o755)
    assert private_home(spec) is None


async def test_a_copy_of_a_sweep_has_no_claim_to_what_the_original_left(tmp_path: Path) -> None:
    context = rehearse(tmp_path, 1, QuickMngr(tmp_path / "mngr"))
    project = GitProject(tmp_path / "project")
    (record,) = context.state.tests()
    project.git("update-ref", harvest_ref(context.spec, record.branch), "HEAD")
    assert not (await find_leftovers(open_sweep(context.folder))).is_nothing
    copy = SweepFolder(shutil.copytree(context.folder.root, tmp_path / "copy"))
    assert (await find_leftovers(open_sweep(copy))).is_nothing
    assert original_of(open_sweep(copy)) == context.folder.root
    shutil.rmtree(context.folder.root)
    assert not (await find_leftovers(open_sweep(copy))).is_nothing, "it is the only one that is left"


def test_what_cannot_be_removed_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder/inner").mkdir(parents=True)
    (tmp_path / "folder/inner/file").touch()
    assert remove_folder(tmp_path / "folder") == []
    assert not (tmp_path / "folder").exists()
    # Not even root removes a file of /proc.
    (problem,) = remove_folder(Path("/proc/self/fdinfo"))
    assert "Operation not permitted" in problem

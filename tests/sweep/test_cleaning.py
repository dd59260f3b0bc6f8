"""Cleaning says what would be lost, removes only what the sweep made, and believes no file about what it may remove."""

from __future__ import annotations

import dataclasses
import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from swarm_tui.agents.types import HomeLeftovers
from swarm_tui.cli.clean import _removal_lines
from swarm_tui.journal.events import Launching
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.spec import MngrSettings, SweepSpec
from swarm_tui.sweep.agent_context import pulled_ref
from swarm_tui.sweep.clean import Leftovers, find_leftovers, original_of, private_home, remove_folder, remove_leftovers
from tests.git_project import GitProject
from tests.sweep.scripted_sweep import QuickMngr, scripted_sweep


async def test_only_unkept_commits_are_a_loss(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 2, QuickMngr(tmp_path / "mngr"))
    project = GitProject(tmp_path / "project")
    first, second = (pulled_ref(context.spec, record.branch) for record in context.state.tests())
    commit = project.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "alone")
    project.git("update-ref", first, commit)
    kept = project.git("commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "kept on a branch")
    project.git("update-ref", second, kept)
    project.git("branch", "mine", kept)
    opened = open_sweep(context.folder)
    leftovers = await find_leftovers(opened)
    assert dict(leftovers.refs) == {first: commit, second: kept}
    assert leftovers.losses == (f"{first} holds 1 commit that is on no branch and in no bundle of the sweep's folder",)
    assert await remove_leftovers(opened, leftovers) == []
    assert project.git("for-each-ref", "refs/swarm") == ""
    assert project.git("rev-parse", "mine") == kept
    assert (await find_leftovers(opened)).is_nothing


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sw") as folder:
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
        mngr=msgspec.convert(settings | changes, MngrSettings),
    )


def test_private_home_of_sweep_is_found(short: Path) -> None:
    assert private_home(private(short)) == short
    assert private_home(dataclasses.replace(private(short), is_private=False)) is None


@pytest.mark.parametrize("changes", [{"home": "/home/ada"}, {"tmux_tmpdir": "/tmp"}, {"host_dir": "/home/ada/.mngr"}])
def test_sweep_file_with_other_home_is_ignored(short: Path, changes: dict[str, str]) -> None:
    assert private_home(private(short, **changes)) is None


def test_folder_with_other_files_is_not_removed(short: Path) -> None:
    spec = private(short)
    (short / "thesis.txt").write_text("years of work")
    assert private_home(spec) is None


def test_public_folder_is_not_removed(short: Path) -> None:
    spec = private(short)
    short.chmod(0o755)
    assert private_home(spec) is None


async def test_copied_sweep_has_no_leftovers(tmp_path: Path) -> None:
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"))
    project = GitProject(tmp_path / "project")
    (record,) = context.state.tests()
    project.git("update-ref", pulled_ref(context.spec, record.branch), "HEAD")
    assert not (await find_leftovers(open_sweep(context.folder))).is_nothing
    copy = SweepFolder(shutil.copytree(context.folder.root, tmp_path / "copy"))
    assert (await find_leftovers(open_sweep(copy))).is_nothing
    assert original_of(open_sweep(copy)) == context.folder.root
    shutil.rmtree(context.folder.root)
    assert not (await find_leftovers(open_sweep(copy))).is_nothing, "it is the only one that is left"


async def test_entries_of_copies_in_home_are_removed(tmp_path: Path) -> None:
    settings = MngrSettings(path="mngr", host_dir=str(tmp_path / "mngr"), home=str(tmp_path / "home"))
    context = scripted_sweep(tmp_path, 2, QuickMngr(tmp_path / "mngr"), agent_type="claude", mngr=settings)
    launched, queued = context.state.tests()
    for launch_number in (1, 2):
        context.record(Launching(test=launched.test, launch=launch_number))
    copies = [f"{tmp_path}/mngr/copies/{launched.agent}-{launch_number}" for launch_number in (1, 2, 3)]
    mine = [copies[2], f"{tmp_path}/mngr/copies/{queued.agent}-1", "/mine"]
    config = tmp_path / "home/.claude.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"projects": {path: {} for path in [*copies, *mine]}}))
    opened = open_sweep(context.folder)
    leftovers = await find_leftovers(opened)
    assert leftovers.home == HomeLeftovers((f"2 entries in {config}",))
    assert not leftovers.is_nothing
    assert await remove_leftovers(opened, leftovers) == []
    assert list(json.loads(config.read_text())["projects"]) == mine
    assert (await find_leftovers(opened)).is_nothing


@pytest.mark.parametrize("agent", ["mine", "swarm-20261118-061200-/../mine"])
async def test_forged_agent_name_removes_no_entry_in_home(tmp_path: Path, agent: str) -> None:
    settings = MngrSettings(path="mngr", host_dir=str(tmp_path / "mngr"), home=str(tmp_path))
    context = scripted_sweep(tmp_path, 1, QuickMngr(tmp_path / "mngr"), agent_type="claude", mngr=settings)
    (record,) = context.state.tests()
    context.record(Launching(test=record.test))
    for path in (context.folder.spec, context.folder.events):
        path.write_text(path.read_text().replace(record.agent, agent))
    (tmp_path / ".claude.json").write_text(json.dumps({"projects": {f"{tmp_path}/mngr/copies/mine-1": {}}}))
    assert (await find_leftovers(open_sweep(context.folder))).home.removable == ()


def test_removal_in_home_is_listed() -> None:
    home = HomeLeftovers(("2 entries in /home/ada/.claude.json",), ("/home/ada/x (mngr's backup)",))
    assert _removal_lines(Leftovers(home=home), None) == [
        "removes what its agents left in your home folder: 2 entries in /home/ada/.claude.json",
        "keeps /home/ada/x (mngr's backup)",
    ]


def test_failed_removal_is_reported(tmp_path: Path) -> None:
    (tmp_path / "folder/inner").mkdir(parents=True)
    (tmp_path / "folder/inner/file").touch()
    assert remove_folder(tmp_path / "folder") == []
    assert not (tmp_path / "folder").exists()
    # Not even root removes a file of /proc.
    (problem,) = remove_folder(Path("/proc/self/fdinfo"))
    assert "Operation not permitted" in problem

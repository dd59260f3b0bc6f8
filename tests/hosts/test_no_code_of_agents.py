"""Settings in an agent's copy run no code when its work is pulled or its edits are polled."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from swarm_tui.adapters.git import Repository
from swarm_tui.errors import SwarmError
from swarm_tui.hosts.copies import uncommitted_patch, uncommitted_paths
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.model.spec import MngrSettings
from swarm_tui.sweep.polls import SCRIPT
from swarm_tui.sweep.pull import fetch_agent_commits
from tests.git_project import GitProject

BRANCH: Final = "swarm/1/test"
REF: Final = "refs/swarm/1/test"


class Planted:
    """An agent's copy with a trap, and with committed and uncommitted work."""

    def __init__(self, folder: Path) -> None:
        self.user = GitProject(folder / "user")
        self.base = self.user.commit("Begin", {"a.txt": "1\n", "b.txt": "1\n", "large.bin": "1\n"})
        self.copy = GitProject(folder / "copy")
        self.copy.git("fetch", "--quiet", str(self.user.root), "main")
        self.copy.git("checkout", "--quiet", "-b", BRANCH, self.base)
        self.tip = self.copy.commit("[FIX_IMPL] Mend", {"a.txt": "2\n"})
        self.seen = folder / "seen"
        self.program = folder / "evil"
        # A filter has no arguments, and is waited for until it has copied its input.
        self.program.write_text(f'#!/bin/sh\necho "$0 $*" >> {self.seen}\n[ $# -gt 0 ] || exec cat\n')
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)
        self.host = LocalHost(MngrSettings(path="mngr", host_dir=str(folder / "mngr"), home=str(folder)))
        self.agent = AgentAddress("test", "agent-1", "mngr-test", str(folder), str(self.copy.root))

    def set(self, *pairs: str) -> None:
        for pair in pairs:
            name, _, value = pair.partition("=")
            self.copy.git("config", "--local", name, value)

    def pull(self) -> None:
        """Do everything that the engine does with a copy."""
        self.copy.write({"b.txt": "uncommitted\n", "new.txt": "new\n"})
        # Files that look changed by their times are read again, and only then would a filter run.
        for path in self.copy.root.glob("*.*"):
            os.utime(path, (1, 1))
        host, agent, repository = self.host, self.agent, Repository.open(self.user.root)
        names = {"branch": BRANCH, "ref": REF, "held": "refs/swarm-held/1/test"}
        fetched = asyncio.run(fetch_agent_commits(repository, host, agent, base=self.base, bundle=None, **names))
        assert fetched.tip == self.tip
        assert {"b.txt", "new.txt"} <= set(asyncio.run(uncommitted_paths(host, agent.work_dir, without=".out")))
        patch = asyncio.run(uncommitted_patch(host, agent.work_dir, without=".out", limit=1_000_000))
        assert b"+uncommitted" in patch
        words = ["sh", "-c", SCRIPT, "edits", self.base, ".out", str(self.copy.root)]
        assert b"?? new.txt" in asyncio.run(host.run(words)).stdout


def _filter(planted: Planted) -> None:
    planted.set(f"filter.evil.clean={planted.program}", f"filter.evil.smudge={planted.program}")
    planted.set(f"filter.evil.process={planted.program}")
    planted.copy.write({".gitattributes": "* filter=evil\n"})
    (planted.copy.root / ".git/info").mkdir(exist_ok=True)
    (planted.copy.root / ".git/info/attributes").write_text("* filter=evil\n")


def _external_diff(planted: Planted) -> None:
    planted.set(f"diff.external={planted.program}", f"diff.evil.command={planted.program}")
    planted.set(f"diff.evil.textconv={planted.program}")
    planted.copy.write({".gitattributes": "* diff=evil\n"})


def _fsmonitor(planted: Planted) -> None:
    planted.set(f"core.fsmonitor={planted.program}", "core.fsmonitorHookVersion=2")


def _hooks(planted: Planted) -> None:
    folder = planted.copy.root / ".git/hooks"
    folder.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "pre-auto-gc", "post-checkout", "fsmonitor-watchman"):
        (folder / name).symlink_to(planted.program)
    planted.set(f"core.hooksPath={folder}")


def _pack_objects_hook(planted: Planted) -> None:
    planted.set(f"uploadpack.packObjectsHook={planted.program}", f"core.alternateRefsCommand={planted.program}")


def _partial_clone(planted: Planted) -> None:
    """Let git fetch a lost object of a partial clone with a program from the settings."""
    planted.set("core.repositoryFormatVersion=1", "extensions.partialClone=evil", "remote.evil.promisor=true")
    planted.set(f"remote.evil.url={planted.user.root}", f"remote.evil.uploadpack={planted.program}")
    lost = planted.copy.git("rev-parse", f"{planted.base}:large.bin")
    (planted.copy.root / f".git/objects/{lost[:2]}/{lost[2:]}").unlink(missing_ok=True)


def _lost_tips(planted: Planted) -> None:
    """Create branches and stashes of a partial clone without their commits, which git would fetch."""
    _partial_clone(planted)
    lost = "1" * 40
    git = planted.copy.root / ".git"
    for name in ("refs/heads/elsewhere", "refs/stash"):
        (git / name).write_text(f"{lost}\n")
    (git / "logs/refs").mkdir(exist_ok=True)
    (git / "logs/refs/stash").write_text(f"{'0' * 40} {lost} A <a@b> 1 +0000\tWIP\n")


def _submodule(planted: Planted) -> None:
    inner = GitProject(planted.copy.root / "inner")
    inner.commit("Begin", {"x": "1\n"})
    inner.git("config", "--local", "filter.evil.clean", str(planted.program))
    inner.git("config", "--local", "core.fsmonitor", str(planted.program))
    inner.write({".gitattributes": "* filter=evil\n", "x": "2\n"})
    planted.copy.write({".gitmodules": f'[submodule "inner"]\n\tpath = inner\n\turl = ext::{planted.program}\n'})
    planted.copy.git("add", "inner", ".gitmodules")


def _programs(planted: Planted) -> None:
    names = ["core.pager", "core.editor", "core.sshCommand", "core.gitProxy", "core.askPass", "credential.helper"]
    names += ["gpg.program", "sequence.editor", "interactive.diffFilter", "pager.status", "pager.diff", "alias.status"]
    planted.set(*(f"{name}={planted.program}" for name in names), "commit.gpgSign=true")
    planted.set(f"include.path={planted.copy.root}/more")
    planted.copy.write({"more": f"[core]\n\tfsmonitor = {planted.program}\n"})


PLANTS: Final = (
    _filter,
    _external_diff,
    _fsmonitor,
    _hooks,
    _pack_objects_hook,
    _partial_clone,
    _lost_tips,
    _submodule,
    _programs,
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__.strip("_"))
def test_settings_of_copy_have_no_effect(plant: Callable[[Planted], None], tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    plant(planted)
    planted.seen.unlink(missing_ok=True)
    planted.pull()
    assert not planted.seen.exists(), planted.seen.read_text()


def test_pipe_as_index_does_not_block(tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    (planted.copy.root / ".git/index").unlink()
    os.mkfifo(planted.copy.root / ".git/index")
    assert "a.txt" in asyncio.run(uncommitted_paths(planted.host, planted.agent.work_dir, without=".out"))


def test_copy_with_other_worktree_setting_is_rejected(tmp_path: Path) -> None:
    planted = Planted(tmp_path)
    planted.set(f"core.worktree={planted.user.root}")
    with pytest.raises(SwarmError, match="not a git repository any more"):
        asyncio.run(uncommitted_paths(planted.host, planted.agent.work_dir, without=".out"))

"""Prepare agents' copies and task files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import shlex
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.checkouts import LFS_CHECKOUT, clone_into
from swarm_tui.adapters.git.names import branch_ref
from swarm_tui.adapters.git.repository import RefMoved, Repository
from swarm_tui.adapters.processes.run import finish_in_thread
from swarm_tui.adapters.pytest import pytest_argument, set_up_script
from swarm_tui.adapters.scratch import ScratchFolder, short_folder
from swarm_tui.agents.contract import OUTPUT_FOLDER, Task
from swarm_tui.errors import UsageError
from swarm_tui.hosts.preparation import HostSetUp
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.pulled import OUTCOME_FILE
from swarm_tui.model.run_limits import own_folder
from swarm_tui.model.spec import BASE_SLUG, SweepSpec
from swarm_tui.sweep.agent_context import held_refs

_OURS: Final = re.compile(r"sw-[0-9a-f]{12}")


def new_temporary_folder(spec: SweepSpec) -> str:
    """Return a new path for the temporary folders of a sweep's agents. The first agent creates it."""
    # In a home folder that was created only for this sweep, it is removed with that.
    parent = short_folder(spec.mngr.tmux_tmpdir if spec.is_private else None)
    return f"{parent}/sw-{secrets.token_hex(6)}"


def preparation_words(spec: SweepSpec, number: int, host: HostSetUp | None = None) -> tuple[str, ...]:
    """Return the arguments with which mngr prepares the copy of an agent, and its temporary folder."""
    commands = [_own_folder_command(spec, number)] if spec.temporary and number else []
    if host is None:
        commands += spec.fill
    if spec.setup and (host is None or not host.is_done):
        commands.append(set_up_script(spec.setup, spec.repository if host is None else host.checkout))
    return tuple(word for command in commands for word in ("--extra-provision-command", command))


# A process of an earlier agent with this number may still write to the old folder, which gets another name.
# Where that process creates the folder again before mkdir has started, Python does both in one process.
_FRESH_FOLDER: Final = """
(umask 077; mkdir -p {above} && test -O {above} && test ! -L {above} || exit 1
n=0
until mv {own} {own}.$$.$n 2>/dev/null; mkdir {own} 2>/dev/null || python3 -c {replace} {own} {own}.$$. 2>/dev/null; do
  n=$((n+1)); test $n -lt 100 || exec mkdir {own}
done
rm -rf {own}.$$.* 2>/dev/null
{home})
"""


_REPLACE: Final = """
import os, sys
for n in range(1000):
    try:
        os.rename(sys.argv[1], sys.argv[2] + "p%d" % n)
    except OSError:
        pass
    try:
        os.mkdir(sys.argv[1])
        sys.exit()
    except FileExistsError:
        pass
sys.exit(1)
"""


def _own_folder_command(spec: SweepSpec, number: int) -> str:
    """Return the command that creates an empty folder for an agent. The folder above it must belong to the user."""
    above, own = shlex.quote(spec.temporary), shlex.quote(own_folder(spec.temporary, number))
    home = f"mkdir {own}/home" if spec.has_own_home else "true"
    return _FRESH_FOLDER.format(above=above, own=own, home=home, replace=shlex.quote(_REPLACE)).strip()


def checked_temporary(spec: SweepSpec) -> str:
    """Return the path of a sweep's temporary folders, or "" if it does not have the expected form.

    Any program may have written sweep.json, so nothing is removed only because of it.
    """
    folder = Path(spec.temporary or "/")
    is_ours = _OURS.fullmatch(folder.name) is not None and folder.is_absolute() and ".." not in folder.parts
    return spec.temporary if is_ours else ""


def temporary_folder(spec: SweepSpec) -> Path | None:
    """Return the folder of a sweep's temporary folders if it exists and has the expected form."""
    folder = Path(checked_temporary(spec) or "/")
    return folder if folder.name and folder.is_dir() and not folder.is_symlink() else None


def remove_temporary_folder(spec: SweepSpec) -> None:
    """Remove the temporary folders of a sweep's agents on this machine."""
    folder = temporary_folder(spec)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


GIT_TEMPLATE: Final = Path(__file__).parents[1] / "agents/git_template"


def base_branch(spec: SweepSpec) -> str:
    """Return the branch for a base commit that no other branch contains."""
    return f"swarm/{spec.sweep}/{BASE_SLUG}"


def hold_base(repository: Repository, spec: SweepSpec) -> None:
    """Keep the base commit from `git gc` until the sweep is cleaned, even if no branch contains it any more."""
    if repository.find(spec.base) is None:
        raise UsageError(
            f"the commit {spec.base[:12]}, from which this sweep started, is no longer in {spec.repository}",
            "fetch it from another clone, or start a new sweep",
        )
    with contextlib.suppress(RefMoved):
        repository.update_ref(f"{held_refs(spec)}/{BASE_SLUG}", spec.base, old=None)


def copy_variables(repository: Repository, fill: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables with which mngr can copy a shallow repository, or one with Git LFS files.

    The files are filled in from this disk afterwards; Git LFS would download them.
    """
    shallow = {"GIT_TEMPLATE_DIR": str(GIT_TEMPLATE)} if repository.is_shallow else {}
    return shallow | ({"GIT_LFS_SKIP_SMUDGE": "1"} if any(LFS_CHECKOUT in command for command in fill) else {})


class CopySource:
    """The repository that mngr copies: the user's.

    While a launch holds it, a base without a branch or tag gets a branch. For a shallow repository, mngr copies a clone
    with only that branch, because git cannot push branches with different shallow histories at the same time.
    """

    def __init__(self, repository: Repository, spec: SweepSpec) -> None:
        self._repository = repository
        self._spec = spec
        self._holders = 0
        self._changing = asyncio.Lock()
        self._scratch: ScratchFolder | None = None

    @contextlib.asynccontextmanager
    async def held(self, transfer: str, base: str = "") -> AsyncIterator[Path]:
        """Return the folder of the repository. While it is held, mngr can create agents from it.

        They start at the base of the sweep, or at another commit.
        """
        if base in ("", self._spec.base) or transfer != "git-mirror":
            async with self._held(transfer) as folder:
                yield folder
            return
        name = branch_ref(f"{base_branch(self._spec)}-{base[:12]}")
        async with self._held(transfer) as folder:
            with contextlib.suppress(RefMoved):
                await finish_in_thread(lambda: self._repository.update_ref(name, base, old=None))
            try:
                yield folder
            finally:
                with contextlib.suppress(RefMoved):
                    await finish_in_thread(lambda: self._repository.delete_ref(name, old=base))

    @contextlib.asynccontextmanager
    async def _held(self, transfer: str) -> AsyncIterator[Path]:
        user_folder = Path(self._spec.repository)
        if transfer != "git-mirror":
            yield user_folder
        elif self._repository.is_shallow:
            async with self._changing:
                folder = await finish_in_thread(self._clone)
            yield folder
        else:
            self._holders += 1
            try:
                async with self._changing:
                    await finish_in_thread(self._make_branch)
                yield user_folder
            finally:
                self._holders -= 1
                async with self._changing:
                    if not self._holders:
                        await finish_in_thread(self.remove_branch)

    def _clone(self) -> Path:
        if self._scratch is None:
            scratch = ScratchFolder("swarm-source-")
            folder = scratch.path / self._repository.root.name
            clone = clone_into(self._repository, folder, commit=self._spec.base, branch=base_branch(self._spec))
            origin = self._repository.setting("remote.origin.url")
            if origin is not None:
                clone.run("config", "--local", "remote.origin.url", origin)
            self._scratch = scratch
        return self._scratch.path / self._repository.root.name

    def _make_branch(self) -> None:
        base = self._spec.base
        words = ("for-each-ref", "--count=1", "--format=%(refname)", "--contains", base, "refs/heads", "refs/tags")
        if not self._repository.run(*words).text:
            # A `mngr create` that continues without its engine may hold it.
            with contextlib.suppress(RefMoved):
                self._repository.update_ref(branch_ref(base_branch(self._spec)), base, old=None)

    def remove_branch(self) -> None:
        """Remove the branch, even that of a killed engine."""
        name = branch_ref(base_branch(self._spec))
        with contextlib.suppress(RefMoved):
            if self._repository.ref(name) == self._spec.base:
                self._repository.delete_ref(name, old=self._spec.base)

    def remove_left_over(self) -> None:
        """Remove the branches of killed engines."""
        self.remove_branch()
        folder, _, own = branch_ref(base_branch(self._spec)).rpartition("/")
        for name, commit in self._repository.refs(folder).items():
            if name.startswith(f"{folder}/{own}-"):
                with contextlib.suppress(RefMoved):
                    self._repository.delete_ref(name, old=commit)


def task_for(spec: SweepSpec, record: TestRecord, python: str = "") -> Task:
    """Return the task of one test; `python` is the agent's own interpreter if it differs from the sweep's."""
    python = python or spec.python
    if python and not os.path.isabs(python):
        # Relative to the top of the copy, and never searched on PATH.
        python = os.path.join(os.curdir, os.path.relpath(python, spec.folder or os.curdir))
    return Task(
        sweep=spec.sweep,
        test=record.test,
        agent=record.agent,
        branch=record.branch,
        base=spec.base,
        repository=spec.repository,
        file=record.file,
        rest=record.test.partition("::")[2],
        folder=spec.folder,
        pytest=(python, "-m", "pytest", *spec.run_options, pytest_argument(record.test, record.file, spec.folder)),
        outcome=f"{OUTPUT_FOLDER}/{OUTCOME_FILE}",
        records=spec.records or "",
        speed=spec.speed,
        identity=spec.identity,
        revision=record.revision.number if record.revision is not None else 0,
    )

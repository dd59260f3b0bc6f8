"""What mngr copies for an agent: it takes branches and tags only, so the base of a sweep has to be in one of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.checkouts import clone_into
from swarm_tui.adapters.git.names import branch_ref
from swarm_tui.adapters.git.parts import LFS_CHECKOUT
from swarm_tui.adapters.git.repository import RefMoved, Repository
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.adapters.threads import finish_in_thread
from swarm_tui.model.sweep import BASE_SLUG, SweepSpec

GIT_TEMPLATE: Final = Path(__file__).parents[1] / "agents/git_template"


def base_branch(spec: SweepSpec) -> str:
    """Return the branch that a base gets which is in no other one."""
    return f"swarm/{spec.sweep}/{BASE_SLUG}"


def copy_variables(repository: Repository, fill: Sequence[str] = ()) -> dict[str, str]:
    """Return the variables with which mngr can copy a repository: one whose history was cut off, one with large files.

    Those are filled in from this disk afterwards; Git LFS would ask the network for them.
    """
    shallow = {"GIT_TEMPLATE_DIR": str(GIT_TEMPLATE)} if repository.is_shallow else {}
    return shallow | ({"GIT_LFS_SKIP_SMUDGE": "1"} if any(LFS_CHECKOUT in command for command in fill) else {})


class CopySource:
    """The repository that mngr copies: the user's.

    As long as somebody holds it, a base that is in no branch and no tag has a branch. Of a shallow repository a clone
    with that one branch is copied, because git fails to push branches with different cuts in their histories at once.
    """

    def __init__(self, repository: Repository, spec: SweepSpec) -> None:
        self._repository = repository
        self._spec = spec
        self._holders = 0
        self._changing = asyncio.Lock()
        self._scratch: ScratchFolder | None = None

    @contextlib.asynccontextmanager
    async def held(self, transfer: str, base: str = "") -> AsyncIterator[Path]:
        """Return the folder of the repository; while it is held, mngr can create agents from it.

        They begin at the base of the sweep, or at another commit.
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
            # A create that outlived its engine may hold it.
            with contextlib.suppress(RefMoved):
                self._repository.update_ref(branch_ref(base_branch(self._spec)), base, old=None)

    def remove_branch(self) -> None:
        """Remove the branch, also that of an engine that was killed."""
        name = branch_ref(base_branch(self._spec))
        with contextlib.suppress(RefMoved):
            if self._repository.ref(name) == self._spec.base:
                self._repository.delete_ref(name, old=self._spec.base)

    def remove_left_over(self) -> None:
        """Remove the branches that an engine has left which was killed."""
        self.remove_branch()
        folder, _, own = branch_ref(base_branch(self._spec)).rpartition("/")
        for name, commit in self._repository.refs(folder).items():
            if name.startswith(f"{folder}/{own}-"):
                with contextlib.suppress(RefMoved):
                    self._repository.delete_ref(name, old=commit)

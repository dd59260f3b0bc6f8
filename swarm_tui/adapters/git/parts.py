"""What git does not bring into a copy by itself: submodules, and files that Git LFS keeps apart.

Both are filled from what the user's checkout has on this disk, without network.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git.names import is_commit_id, is_inside
from swarm_tui.adapters.git.repository import Repository

_SUBMODULE_MODE: Final = "160000"
_DEPTH: Final = 8
LFS_CHECKOUT: Final = "git lfs checkout"


@dataclass(frozen=True, slots=True)
class Submodule:
    """A submodule of a commit, or of a submodule of it."""

    path: str
    """From the top of the repository."""
    commit: str
    store: Path | None
    """The git directory on this disk that has its commit, if there is one."""

    @property
    def fill_command(self) -> str:
        """Return the shell command that fills its folder in a copy; its objects are borrowed."""
        assert self.store is not None, "only called for one that is here"
        folder = shlex.quote(f"./{self.path}")
        shallow = shlex.quote(str(self.store / "shallow"))
        return (
            f"git init --quiet {folder}"
            f" && printf '%s\\n' {shlex.quote(str(self.store / 'objects'))} > {folder}/.git/objects/info/alternates"
            f" && if [ -f {shallow} ]; then cp {shallow} {folder}/.git/shallow; fi"
            f" && git -C {folder} checkout --quiet --detach {self.commit}"
        )


def find_submodules(repository: Repository, commit: str) -> list[Submodule]:
    """Return all submodules of a commit, each before those inside it."""
    return list(_find(repository, repository.common_directory, commit, "", _DEPTH))


def _find(repository: Repository, store: Path, commit: str, below: str, depth: int) -> Iterator[Submodule]:
    def git(*words: str) -> list[str]:
        return repository.run(f"--git-dir={store}", *words, codes=(0, 1, 128)).fields

    linked = [field for field in git("ls-tree", "-r", "-z", commit) if field.startswith(_SUBMODULE_MODE)]
    if not linked or not depth:
        return
    name_of = {}
    for entry in git("config", "--blob", f"{commit}:.gitmodules", "-z", "--get-regexp", r"^submodule\..*\.path$"):
        key, _, path = entry.partition("\n")
        name_of[path] = key.removeprefix("submodule.").removesuffix(".path")
    for entry in linked:
        description, _, path = entry.partition("\t")
        wanted = description.split()[2]
        if not is_inside(path) or not is_commit_id(wanted):
            continue
        name = name_of.get(path, path)
        places = [store / "modules" / name] if is_inside(name) else []
        places.append(repository.root / below / path / ".git")
        found = next((place for place in places if _has_commit(repository, place, wanted)), None)
        yield Submodule(below + path, wanted, found)
        if found is not None:
            yield from _find(repository, found, wanted, f"{below}{path}/", depth - 1)


def _has_commit(repository: Repository, store: Path, commit: str) -> bool:
    if not (store / "objects").is_dir():
        return False
    return repository.run(f"--git-dir={store}", "cat-file", "-e", f"{commit}^{{commit}}", codes=(0, 1, 128)).code == 0


def uses_lfs(repository: Repository, commit: str) -> bool:
    """Return whether a commit has files that Git LFS keeps apart, as far as its top .gitattributes says."""
    return b"filter=lfs" in repository.read_file(commit, ".gitattributes")


def fill_commands(repository: Repository, commit: str) -> tuple[str, ...]:
    """Return the shell commands that bring into a copy on this machine what git has left out."""
    commands = [module.fill_command for module in find_submodules(repository, commit) if module.store is not None]
    if uses_lfs(repository, commit) and shutil.which("git-lfs"):
        store = shlex.quote(str(repository.common_directory.absolute() / "lfs"))
        commands.append(f"git config lfs.storage {store} && {LFS_CHECKOUT}")
    return tuple(commands)

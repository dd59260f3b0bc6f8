"""Create clones and scratch repositories; bundles, submodules and Git LFS files."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from swarm_tui.adapters.git.command import GitError, shortage_of
from swarm_tui.adapters.git.names import (
    branch_ref,
    checked_branch,
    checked_ref,
    checked_revision,
    is_commit_id,
)
from swarm_tui.adapters.git.objects import ObjectSpace, write_alternates
from swarm_tui.adapters.git.repository import Repository, import_gitpython
from swarm_tui.adapters.scratch import ScratchFolder
from swarm_tui.errors import UsageError
from swarm_tui.files import open_regular, read_regular
from swarm_tui.model.text import is_inside, plain

FILE_LIMIT: Final = 100_000_000
"""Bytes of the largest file that is accepted in a commit. To compare a file, git needs more memory than its size."""
_HEADER_LIMIT: Final = 1_000_000
_VERSIONS: Final = (b"# v2 git bundle\n", b"# v3 git bundle\n")
_TIMEOUT: Final = 600.0
# git's name for unchecked objects. `git gc` removes them if a process was killed.
_QUARANTINE: Final = "tmp_objdir-swarm-"


@dataclass(frozen=True, slots=True)
class _Header:
    """The header of a bundle, before its pack."""

    heads: dict[str, str]
    pack_offset: int


def create_bundle(repository: Repository, bundle: Path, *, base: str, branch: str) -> bool:
    """Write the commits of a branch after `base` into a file; return False and write no file if there are none.

    If `base` is unknown, for example because an agent has replaced its history, the file contains the whole branch.
    """
    excluded = (f"^{checked_revision(base)}",) if repository.find(base) else ()
    if not repository.run("rev-list", "--max-count=1", branch_ref(branch), *excluded, "--").text:
        return False
    words = ("bundle", "create", "--quiet", str(bundle.absolute()), branch_ref(branch), *excluded)
    repository.run(*words, timeout=_TIMEOUT)
    return True


def fetch_bundle(repository: Repository, bundle: Path, *, branch: str, into: str) -> str:
    """Fetch the expected branch, or a HEAD without branches, from a bundle as a full ref name; return its commit.

    git checks every object before anything is written to the repository. `git fetch` does not do that for bundles in
    git 2.45 and older, even with `fetch.fsckObjects`.
    """
    with _opened(bundle) as file:
        header = _read_header(bundle, file)
        expected = branch_ref(branch)
        source = expected if expected in header.heads else "HEAD"
        if source not in header.heads or (source == "HEAD" and len(header.heads) > 1):
            names = ", ".join(plain(name, 60) for name in list(header.heads)[:3]) or "nothing"
            raise UsageError(f"the branch {branch} is not in {plain(bundle.name, 80)}, which contains {names}")
        os.lseek(file.fileno(), header.pack_offset, os.SEEK_SET)
        _import_pack(repository, file)
    tip = header.heads[source]
    if repository.find(tip) != tip:
        raise GitError(f"the commit {tip[:12]} is missing in {plain(bundle.name, 80)}")
    repository.run("update-ref", "--no-deref", "-m", "swarm-tui: fetch", checked_ref(into), tip)
    return tip


def _import_pack(repository: Repository, pack: BinaryIO) -> None:
    """Move the objects of a pack into a repository. If git rejects one, raise GitError and change nothing."""
    objects = repository.common_directory.absolute() / "objects"
    with contextlib.closing(ScratchFolder(_QUARANTINE, objects)) as scratch:
        alternates = scratch.path / "info/alternates"
        alternates.parent.mkdir()
        write_alternates(scratch.path, [objects])
        apart = {"GIT_OBJECT_DIRECTORY": str(scratch.path)}
        is_partial = any((objects / "pack").glob("*.promisor"))
        # In a partial clone, unchanged files may be missing.
        check = "--fsck-objects" if is_partial else "--strict"
        # Do not read larger files into memory as a whole.
        words = ("-c", "core.bigFileThreshold=16m", "index-pack", check, "--fix-thin", "--stdin")
        answer = repository.run(*words, stdin=pack, environment=apart, codes=(0, 1, 128), timeout=_TIMEOUT)
        if answer.code:
            raise shortage_of(answer) or GitError(f"invalid commits: {answer.error_text or 'no reason given'}")
        # Without the alternates, only the new objects are listed.
        alternates.unlink()
        _refuse_large_files(repository, apart)
        _move_packs(scratch.path / "pack", objects / "pack")


def _refuse_large_files(repository: Repository, apart: dict[str, str]) -> None:
    words = ("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectsize)")
    largest = max(map(int, repository.run(*words, environment=apart).text.split()), default=0)
    if largest > FILE_LIMIT:
        raise GitError(f"the commits contain a file of {largest // 1_000_000:,} MB; the limit is {FILE_LIMIT:,} bytes")


def _move_packs(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    # Move the index last, because git finds packs by their index.
    for path in sorted(source.glob("pack-*"), key=lambda path: path.suffix == ".idx"):
        shutil.move(path, target / path.name)


@contextlib.contextmanager
def _opened(bundle: Path) -> Iterator[BinaryIO]:
    try:
        file = open_regular(bundle)
    except OSError as error:
        raise GitError(f"cannot read {plain(bundle.name, 80)}: {error.strerror or error}") from error
    with file:
        yield file


def _read_header(bundle: Path, file: BinaryIO) -> _Header:
    """Parse the header of a bundle; raise GitError for anything unusual."""
    name = plain(bundle.name, 80)
    if file.readline(100) not in _VERSIONS:
        raise GitError(f"{name} is not a bundle: it has no header")
    heads: dict[str, str] = {}
    while (line := file.readline(_HEADER_LIMIT)) != b"\n":
        if not line.endswith(b"\n") or file.tell() > _HEADER_LIMIT:
            raise GitError(f"{name} is not a bundle: its header has no end")
        if line.startswith(b"@filter"):
            # git would try to fetch the missing objects.
            raise GitError(f"{name} is incomplete: objects were filtered")
        if not line.startswith((b"@", b"-")):
            commit, _, ref = line.decode("utf-8", "surrogateescape").removesuffix("\n").partition(" ")
            if not is_commit_id(commit):
                raise GitError(f"{name} has a line that is not a ref: {plain(commit, 80)}")
            heads[ref] = commit
    return _Header(heads, file.tell())


NOTHING_IS_CONVERTED: Final = "* -text -eol -filter -ident -working-tree-encoding\n"
"""Attributes with which git reads and writes files unchanged and runs no filters."""

_SETTING_FILES: Final = ("config", "config.worktree", "commondir", "info/attributes")


def clone_into(repository: Repository, folder: Path, *, commit: str, branch: str | None = None) -> Repository:
    """Create a clone with `commit` checked out, on a new branch or detached, without remotes and other refs.

    It borrows the objects of the original, so it is fast and small, and valid while the original exists.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty", "choose a folder that does not exist yet")
    commit = repository.resolve(commit)
    clone = borrow_objects(repository, folder, [repository.common_directory.absolute() / "objects"])
    if branch is None:
        clone.run("checkout", "--quiet", "--detach", commit, timeout=600)
    else:
        clone.run("checkout", "--quiet", "-B", checked_branch(branch), commit, timeout=600)
    return clone


def check_out_tree(
    space: ObjectSpace, tree: str, folder: Path, *, parent: str, is_verbatim: bool = False
) -> Repository:
    """Create a repository with this tree checked out, committed on top of `parent`. It is valid as long as the space.

    With `is_verbatim`, files are written as they are stored, without conversion of line endings and without filters.
    """
    scratch = borrow_objects(space.original, folder, space.object_folders)
    if is_verbatim:
        (folder / ".git/info").mkdir(exist_ok=True)
        (folder / ".git/info/attributes").write_text(NOTHING_IS_CONVERTED)
    copy_tags(space.original, scratch)
    change_tree(space, scratch, tree, parent=parent)
    return scratch


def copy_tags(repository: Repository, scratch: Repository) -> None:
    """Add the tags of another repository, because projects often derive their version from them."""
    tags = repository.refs("refs/tags")
    if tags:
        commands = "".join(f"create {name} {target}\n" for name, target in tags.items())
        scratch.run("update-ref", "--stdin", stdin=os.fsencode(commands))


def borrow_objects(repository: Repository, folder: Path, object_folders: Sequence[Path]) -> Repository:
    """Create a repository with all commits of another one, but without its refs and settings.

    `git clone --shared` would apply the user's settings, and does not share a shallow history.
    """
    folder.mkdir(parents=True, exist_ok=True)
    form = f"--object-format={repository.object_format}"
    init = ("-c", "init.defaultBranch=scratch", "init", "--quiet", "--template=", form, "--", str(folder.absolute()))
    repository.run(*init)
    objects = folder / ".git/objects"
    (objects / "info").mkdir(exist_ok=True)
    write_alternates(objects, object_folders)
    if repository.is_shallow:
        shutil.copyfile(repository.common_directory / "shallow", folder / ".git/shallow")
    return Repository.open(folder)


def change_tree(space: ObjectSpace, scratch: Repository, tree: str, *, parent: str, is_cleaned: bool = True) -> None:
    """Check out another tree in a scratch repository. Remove new files, except ignored ones, if `is_cleaned`."""
    commit = space.synthetic_commit(tree, parent)
    # If tests have damaged the scratch repository, git must not act on a repository around it instead.
    only_here = {"GIT_CEILING_DIRECTORIES": str(scratch.root.parent)}
    scratch.run("checkout", "--quiet", "--force", "--detach", commit, environment=only_here, timeout=600)
    if is_cleaned:
        scratch.run("clean", "--quiet", "-ffd", environment=only_here, timeout=600)


def settings_of(scratch: Repository) -> dict[str, bytes]:
    """Return the files of a scratch repository that select programs for git to run, for `restore_settings`."""
    git = scratch.root / ".git"
    return {name: read_regular(git / name) for name in _SETTING_FILES if (git / name).is_file()}


def restore_settings(scratch: Repository, settings: Mapping[str, bytes]) -> None:
    """Restore these files, because tests may have added filters there, which git would run as the user."""
    git = scratch.root / ".git"
    try:
        if git.is_symlink() or not git.is_dir() or (git / "info").is_symlink():
            raise GitError(f"not a git repository any more: {scratch.root}", "tests have replaced it")
        for name in _SETTING_FILES:
            path = git / name
            if path.is_symlink() or path.exists():
                path.unlink()
            if name in settings:
                path.write_bytes(settings[name])
    except OSError as error:
        raise GitError(f"cannot write {git}: {error.strerror or error}") from error


def init_repository(folder: Path, *, branch: str, identity: tuple[str, str]) -> Repository:
    """Create a repository in a folder, with this identity in its own configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    # `Repo.init` always expands `$NAME` in the path.
    import_gitpython().GitCommandWrapperType(folder).init(initial_branch=checked_branch(branch))
    repository = Repository.open(folder)
    for name, value in zip(("user.name", "user.email"), identity, strict=True):
        repository.run("config", "--local", name, value)
    return repository


_SUBMODULE_MODE: Final = "160000"
_DEPTH: Final = 8
LFS_CHECKOUT: Final = "git lfs checkout"


@dataclass(frozen=True, slots=True)
class Submodule:
    """A submodule of a commit, or of another submodule."""

    path: str
    """The path from the top of the repository."""
    commit: str
    store: Path | None
    """The git directory on this disk that has the commit, if there is one."""

    @property
    def fill_command(self) -> str:
        """Return a shell command that fills the submodule's folder in a copy, with borrowed objects."""
        assert self.store is not None, "callers check this"
        folder = shlex.quote(f"./{self.path}")
        shallow = shlex.quote(str(self.store / "shallow"))
        return (
            f"git init --quiet {folder}"
            f" && printf '%s\\n' {shlex.quote(str(self.store / 'objects'))} > {folder}/.git/objects/info/alternates"
            f" && if [ -f {shallow} ]; then cp {shallow} {folder}/.git/shallow; fi"
            f" && git -C {folder} checkout --quiet --detach {self.commit}"
        )


def find_submodules(repository: Repository, commit: str) -> list[Submodule]:
    """Return all submodules of a commit, outer ones first."""
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
        stores = [store / "modules" / name] if is_inside(name) else []
        stores.append(repository.root / below / path / ".git")
        found = next((one for one in stores if _has_commit(repository, one, wanted)), None)
        yield Submodule(below + path, wanted, found)
        if found is not None:
            yield from _find(repository, found, wanted, f"{below}{path}/", depth - 1)


def _has_commit(repository: Repository, store: Path, commit: str) -> bool:
    if not (store / "objects").is_dir():
        return False
    return repository.run(f"--git-dir={store}", "cat-file", "-e", f"{commit}^{{commit}}", codes=(0, 1, 128)).code == 0


def uses_lfs(repository: Repository, commit: str) -> bool:
    """Return whether a commit has Git LFS files, according to its top .gitattributes."""
    return b"filter=lfs" in repository.read_file(commit, ".gitattributes")


def fill_commands(repository: Repository, commit: str) -> tuple[str, ...]:
    """Return shell commands that complete a copy on this machine with submodules and Git LFS files."""
    commands = [module.fill_command for module in find_submodules(repository, commit) if module.store is not None]
    if uses_lfs(repository, commit) and shutil.which("git-lfs"):
        store = shlex.quote(str(repository.common_directory.absolute() / "lfs"))
        commands.append(f"git config lfs.storage {store} && {LFS_CHECKOUT}")
    return tuple(commands)

"""A repository with its commits, refs and configuration. Nothing here writes to the user's checkout or index."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from subprocess import Popen
from typing import IO, TYPE_CHECKING, Final

from swarm_tui.adapters.git import command
from swarm_tui.adapters.git.command import GitError, GitResult
from swarm_tui.adapters.git.names import checked_ref, checked_revision, is_commit_id
from swarm_tui.adapters.processes.group import how_to_get
from swarm_tui.errors import ProgramMissing, UsageError
from swarm_tui.files import read_regular
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.adapters.git.program import Repo

_TIMEOUT: Final = 60.0
# A long-running git would otherwise keep every pack that it has read in memory.
_SMALL: Final = ("-c", "core.packedGitWindowSize=1m", "-c", "core.packedGitLimit=4m")


class RefMoved(GitError):
    """A ref had another commit than expected, so it was not changed."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The name and email address of an author."""

    name: str
    email: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>"


class Repository:
    """A repository on this machine, opened by any folder inside it."""

    def __init__(self, repo: Repo, environment: Mapping[str, str] | None = None, run_in: Path | None = None) -> None:
        self._repo = repo
        self._environment = dict(environment or {})
        self._git = repo.git if run_in is None else type(repo.git)(run_in)
        self.git_directory = Path(repo.git_dir)
        self.common_directory = _common_directory(self.git_directory)
        self.is_bare = repo.working_tree_dir is None
        self.root = self.git_directory if repo.working_tree_dir is None else Path(repo.working_tree_dir)

    @classmethod
    def open(cls, folder: Path) -> Repository:
        """Open the repository of a folder."""
        repo_class = import_gitpython()
        from git.exc import InvalidGitRepositoryError, NoSuchPathError

        try:
            # GitPython expands `~` in relative paths, and by default `$NAME` in all paths.
            repo = repo_class(str(folder.absolute()), search_parent_directories=True, expand_vars=False)
        except NoSuchPathError:
            raise UsageError(f"folder not found: {plain(str(folder))}") from None
        except (InvalidGitRepositoryError, PermissionError):
            raise UsageError(
                f"not in a git repository: {plain(str(folder))}",
                "go to a folder of the project, or run `git init` there",
            ) from None
        repository = cls(repo)
        if repository.version < command.OLDEST_VERSION:
            raise ProgramMissing(
                f"git {'.'.join(map(str, repository.version))} is too old; 2.38 or newer is needed", how_to_get("git")
            )
        return repository

    def with_environment(self, environment: Mapping[str, str], run_in: Path) -> Repository:
        """Return the same repository with other variables and another current folder for commands."""
        same = Repository(self._repo, {**self._environment, **environment}, run_in)
        # Keep cached properties of the repository.
        for name in ("version", "object_format", "is_shallow"):
            if name in self.__dict__:
                same.__dict__[name] = self.__dict__[name]
        return same

    def close(self) -> None:
        """Close the files of GitPython."""
        self._repo.close()

    # Commands

    def run(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] | None = None,
        environment: Mapping[str, str] | None = None,
        codes: Collection[int] = (0,),
        timeout: float = _TIMEOUT,
    ) -> GitResult:
        """Run a git command in this repository; raise an error with a hint for a code that is not in `codes`."""
        answer = self._git.run(arguments, {**self._environment, **(environment or {})}, stdin, timeout)
        if answer.code not in codes:
            raise command.error_of(answer, arguments, self.root)
        return answer

    def start(self, *arguments: str) -> Popen[bytes]:
        """Start a git command for writing and reading while it runs. The caller stops it."""
        return self._git.start((*_SMALL, *arguments), self._environment)

    @cached_property
    def version(self) -> tuple[int, ...]:
        """The version of git, such as (2, 39, 5)."""
        try:
            version = self._git.version_info
        except IndexError:
            version = ()
        if len(version) < 2:
            raise GitError("git reports no version", "reinstall git")
        return version

    # Commits

    def resolve(self, revision: str) -> str:
        """Return the commit id of a revision."""
        checked_revision(revision)
        answer = self.run(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", codes=(0, 1, 128)
        )
        commit = answer.text.split("\n")[-1]
        if answer.code == 0 and is_commit_id(commit):
            return commit
        if "dubious ownership" in answer.error_text:
            raise command.error_of(answer, ("rev-parse",), self.root)
        if self.run("rev-parse", "--verify", "--quiet", "HEAD", codes=(0, 1, 128)).code and revision == "HEAD":
            raise UsageError(f"{self.root} has no commits yet", "commit something first")
        raise UsageError(f"unknown commit in {self.root}: {plain(revision, 80)!r}", self._why_missing())

    def find(self, revision: str) -> str | None:
        """Return the commit id of a revision, or None; raise UsageError if the repository is unreadable."""
        try:
            return self.resolve(revision)
        except command.ForeignRepository:
            raise
        except UsageError:
            return None

    def _why_missing(self) -> str:
        if self.is_shallow:
            return "this clone is shallow: run `git fetch --unshallow` for the rest"
        return "list the branches with `git branch -a`; a remote branch may need `git fetch` first"

    def read_file(self, commit: str, path: str) -> bytes:
        """Return the content of a file of a commit; b"" if it does not exist."""
        return self.run("cat-file", "blob", f"{commit}:{path}", codes=(0, 128)).stdout

    def tree_of(self, revision: str) -> str:
        """Return the tree id of a commit or a tree."""
        checked_revision(revision)
        return self.run("rev-parse", "--verify", "--end-of-options", f"{revision}^{{tree}}").text.split("\n")[-1]

    def head(self) -> str:
        """Return the commit that is checked out; raise UsageError in a repository without commits."""
        return self.resolve("HEAD")

    def current_branch(self) -> str | None:
        """Return the branch that is checked out, or None on a detached HEAD."""
        answer = self.run("symbolic-ref", "--quiet", "--short", "HEAD", codes=(0, 1))
        return answer.text or None

    def is_ancestor(self, old: str, new: str) -> bool:
        """Return whether the commit `old` is the commit `new` or one of its ancestors."""
        arguments = ("merge-base", "--is-ancestor", checked_revision(old), checked_revision(new))
        return self.run(*arguments, codes=(0, 1)).code == 0

    def list_commits(self, base: str, tip: str) -> list[str]:
        """Return the ids of the commits after `base` up to `tip`, oldest first."""
        arguments = ("rev-list", "--reverse", "--topo-order", checked_revision(tip), f"^{checked_revision(base)}", "--")
        return self.run(*arguments).text.split()

    @cached_property
    def is_shallow(self) -> bool:
        """Return whether this is a shallow clone."""
        return self.run("rev-parse", "--is-shallow-repository").text == "true"

    @cached_property
    def object_format(self) -> str:
        """The hash of object ids: sha1 or sha256."""
        return self.run("rev-parse", "--show-object-format").text

    @property
    def null_commit(self) -> str:
        """The id that means "no such ref" in a compare-and-swap."""
        return "0" * (64 if self.object_format == "sha256" else 40)

    # Refs

    def refs(self, *prefixes: str) -> dict[str, str]:
        """Return the full names of all refs below the prefixes (such as refs/heads/), each with its commit."""
        checked = [checked_ref(prefix.rstrip("/")) for prefix in prefixes]
        lines = self.run("for-each-ref", "--format=%(objectname) %(refname)", *checked).text.split("\n")
        return {name: commit for commit, _, name in (line.partition(" ") for line in lines) if name}

    def branches(self) -> dict[str, str]:
        """Return the short names of all local branches, each with its commit."""
        return {name.removeprefix("refs/heads/"): commit for name, commit in self.refs("refs/heads").items()}

    def ref(self, name: str) -> str | None:
        """Return the commit of a full ref name, or None."""
        answer = self.run("rev-parse", "--verify", "--quiet", f"{checked_ref(name)}^{{commit}}", codes=(0, 1, 128))
        return answer.text if answer.code == 0 else None

    def is_symbolic(self, name: str) -> bool:
        """Return whether a full ref name is symbolic, so that setting it would move another ref."""
        return self.run("symbolic-ref", "--quiet", checked_ref(name), codes=(0, 1)).code == 0

    def reflog(self, name: str) -> list[tuple[str, str]]:
        """Return the reflog of a full ref name, newest first: commits with reasons. It is empty without a reflog."""
        words = ("reflog", "show", "-z", "--format=%H %gs", checked_ref(name), "--")
        rows = (field.partition(" ") for field in self.run(*words, codes=(0, 128)).fields)
        return [(commit, reason) for commit, _, reason in rows]

    def update_ref(
        self, name: str, new: str, *, old: str | None, reason: str = "swarm-tui", is_logged: bool = False
    ) -> None:
        """Set a ref to `new` if it still has `old` (None: if it does not exist); otherwise raise RefMoved.

        With `is_logged`, write the reason to the reflog even if the user has turned reflogs off.
        """
        words = ("update-ref", "--no-deref", *(("--create-reflog",) if is_logged else ()), "-m", plain(reason))
        self._swap_ref(checked_ref(name), *words, checked_ref(name), new, old or self.null_commit)

    def delete_ref(self, name: str, *, old: str) -> None:
        """Delete a ref if it still has `old`; otherwise raise RefMoved."""
        self._swap_ref(checked_ref(name), "update-ref", "--no-deref", "-d", checked_ref(name), old)

    def _swap_ref(self, name: str, *arguments: str) -> None:
        answer = self.run(*arguments, codes=(0, 1, 128))
        if answer.code == 0:
            return
        words = answer.error_text
        if "but expected" in words or "already exists" in words or "unable to resolve" in words:
            raise RefMoved(f"{name} has changed in the meantime and was not moved", "check it and try again")
        raise command.error_of(answer, arguments, self.root)

    def checked_out_branches(self) -> dict[str, Path]:
        """Return the branches that are checked out, here or in another worktree, each with its folder.

        This includes branches that are being rebased or bisected, because git sets them at the end.
        """
        found: dict[str, Path] = {}
        folder = self.root
        for field in self.run("worktree", "list", "--porcelain", "-z").fields:
            key, _, value = field.partition(" ")
            if key == "worktree":
                folder = Path(value)
                found |= dict.fromkeys(_branches_in_work(folder), folder)
            elif key == "branch":
                found[value.removeprefix("refs/heads/")] = folder
        return found

    # The user and the checkout

    def setting(self, name: str, kind: str = "") -> str | None:
        """Return a value of the user's git config, or None. `kind` may be bool, int or path."""
        types = (f"--type={kind}",) if kind else ()
        answer = self.run("config", *types, "--get", name, codes=(0, 1))
        return answer.text if answer.code == 0 else None

    def identity(self) -> Identity:
        """Return the user's identity in git; raise UsageError with a hint if it is not set."""
        answer = self.run("var", "GIT_COMMITTER_IDENT", codes=(0, 1, 128))
        name, _, rest = answer.text.partition(" <")
        email = rest.partition(">")[0]
        if answer.code or not email:
            raise UsageError(
                "git has no identity for commits",
                "git config --global user.name 'Your Name'; git config --global user.email you@example.org",
            )
        return Identity(plain(name), plain(email))

    def signs_commits(self) -> bool:
        return self.setting("commit.gpgsign", "bool") == "true"

    def dirty_paths(self, *, has_untracked: bool = True) -> tuple[str, ...]:
        """Return the paths of the checkout that differ from its commit, without refreshing the index."""
        return tuple(path for _, path in self.uncommitted(has_untracked=has_untracked))

    def uncommitted(self, *, has_untracked: bool = True) -> list[tuple[str, str]]:
        """Return the paths that differ from the commit, each with the two letters of `git status --porcelain`."""
        if self.is_bare:
            return []
        untracked = "--untracked-files=normal" if has_untracked else "--untracked-files=no"
        fields = self.run("status", "--porcelain", "-z", "--no-renames", untracked).fields
        return [(field[:2], field[3:]) for field in fields]


def import_gitpython() -> type[Repo]:
    """Return our class of GitPython's repositories; raise ProgramMissing if git is not installed."""
    try:
        from swarm_tui.adapters.git.program import Repo
    except ImportError as error:
        found = shutil.which("git")
        if found is None:
            raise ProgramMissing("git is not installed", how_to_get("git")) from error
        # GitPython runs git when it is imported, and reports only that this failed.
        raise GitError(
            f"cannot start {found}", "raise the limits of open files and processes: `ulimit -n 1024`"
        ) from error
    except OSError as error:
        raise GitError(f"cannot start git: {error.strerror}", "allow more open files: `ulimit -n 1024`") from error
    return Repo


def _branches_in_work(folder: Path) -> list[str]:
    """Return the branches that a rebase or bisect in a worktree will set."""
    git = folder / ".git"
    names = []
    with contextlib.suppress(OSError):
        if git.is_file():
            git = folder / os.fsdecode(read_regular(git)).removeprefix("gitdir:").strip()
        for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
            if (git / name).is_file():
                names.append(os.fsdecode(read_regular(git / name)).strip().removeprefix("refs/heads/"))
    return names


def _common_directory(git_directory: Path) -> Path:
    """Return the git directory that all worktrees share. GitPython would use GIT_COMMON_DIR of a hook."""
    pointer = git_directory / "commondir"
    return git_directory / os.fsdecode(read_regular(pointer)).strip() if pointer.is_file() else git_directory

"""Runs one git command: no shell, no pager, no hooks, no prompts, and errors in words."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.environment import own_environment
from swarm_tui.adapters.process_group import communicate, start_group
from swarm_tui.errors import AdapterError, ProgramTimeout, UsageError
from swarm_tui.model.text import plain

OLDEST_VERSION: Final = (2, 38)

_ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    # A partial clone would fetch what a command reads, and write it into the user's object store.
    "GIT_NO_LAZY_FETCH": "1",
    # Older gits know only this variable. Nothing here needs the network: bundles and copies are files.
    "GIT_ALLOW_PROTOCOL": "file",
    # Its files are fetched from the network; copies get those that are on this disk.
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_EDITOR": ":",
    "LANGUAGE": "C",
    "LC_ALL": "C",
}
# Each of these, set by a user, would change what a command prints or does.
_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "color.ui=false",
    "log.showSignature=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
_GLOBAL_OPTIONS: Final = ("--no-pager", *(word for setting in _SETTINGS for word in ("-c", setting)))

_SIGNS_OF_MISSING_OBJECTS: Final = (
    "unable to read",
    "could not read",
    "bad object",
    "missing object",
    "not a tree object",
    "could not parse",
    "failed to traverse",
    "promisor remote",
    "lazy fetching disabled",
)

_SIGNS_OF_NO_ROOM: Final = (
    "no space left",
    "out of diskspace",
    "disk quota exceeded",
    "file too large",
    "read-only file system",
    # Of a ref whose lock was made, and could not be filled: git does not say why.
    "couldn't write '",
)


class GitError(AdapterError):
    """A git command failed."""


class ForeignRepository(UsageError):
    """git does not look into a repository that belongs to another user."""


class NoSpaceForGit(GitError):
    """The disk is full or cannot be written; the same command may succeed later."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """The exit code and the output of a git command."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Return standard output, decoded, without its last newline."""
        return self.stdout.decode("utf-8", "replace").removesuffix("\n")

    @property
    def error_text(self) -> str:
        """Return git's error message as one line without control characters."""
        return plain(self.stderr.decode("utf-8", "replace"), 500)

    @property
    def fields(self) -> list[str]:
        """Return the parts of an output that -z separates with NUL; names keep their bytes."""
        parts = os.fsdecode(self.stdout).split("\0")
        return parts[:-1] if parts and not parts[-1].strip() else parts


def start_git(
    program: str, arguments: Sequence[str], folder: Path | None, environment: Mapping[str, str], *, has_stdin: bool
) -> subprocess.Popen[bytes]:
    """Start a git command; the caller ends it."""
    if any("\0" in argument for argument in arguments):
        raise UsageError("a name that is given to git holds a NUL byte", "names of commits and files never do")
    return start_group(
        [program, *_GLOBAL_OPTIONS, *arguments],
        cwd=folder,
        environment=own_environment() | _ENVIRONMENT | dict(environment),
        stdin=subprocess.PIPE if has_stdin else subprocess.DEVNULL,
    )


def finish_git(
    process: subprocess.Popen[bytes], stdin: bytes | None, timeout: float, arguments: Sequence[str]
) -> GitResult:
    """Wait for a started command and return its result; when it overstays or we are interrupted, end its group."""
    try:
        stdout, stderr = communicate(process, stdin, timeout)
    except subprocess.TimeoutExpired:
        raise ProgramTimeout(
            f"`git {plain(' '.join(arguments[:2]), 60)}` did not end within {timeout:g} s and was stopped",
            "the disk may be slow or the repository very large; try again",
        ) from None
    return GitResult(process.returncode, stdout, stderr)


def error_of(answer: GitResult, arguments: Sequence[str], where: Path) -> AdapterError | UsageError:
    """Return the error for a failed command, with what the user can do about it."""
    words = answer.error_text
    lowered = words.lower()
    if "not a git repository" in lowered:
        return UsageError(f"{where} is not a git repository", "go to a folder of the project, or `git init` there")
    if "dubious ownership" in lowered:
        return ForeignRepository(
            f"git does not trust {where}: it belongs to another user",
            f"if you do: git config --global --add safe.directory {where}",
        )
    if any(sign in lowered for sign in _SIGNS_OF_MISSING_OBJECTS):
        return GitError(
            f"objects are missing in {where}: {words}",
            "`git fsck` lists them; a partial clone gets them by `git fetch --refetch --no-filter`",
        )
    if any(sign in lowered for sign in _SIGNS_OF_NO_ROOM):
        mend = "use another disk" if "read-only file system" in lowered else "make room and try again"
        return NoSpaceForGit(words, f"nothing of yours was changed; {mend}")
    if "unable to create" in lowered and ".lock" in lowered:
        return GitError(words, "another git works in this repository; try again when it has ended")
    shown = plain(" ".join(arguments[:2]), 60)
    return GitError(f"`git {shown}` failed with code {answer.code} in {where}", words or "git gave no reason")

"""Runs one git command through GitPython: no shell, no pager, no hooks, no prompts, and errors in words."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from swarm_tui.adapters.packages import how_to_get
from swarm_tui.errors import AdapterError, ProgramMissing, ProgramTimeout, UsageError
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    import git

OLDEST_VERSION: Final = (2, 38)

_ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    # A partial clone would fetch what a mere look needs, and write it into the user's object store.
    "GIT_NO_LAZY_FETCH": "1",
    # Older gits know only this: nothing here ever needs the network, bundles and copies are files.
    "GIT_ALLOW_PROTOCOL": "file",
    "GIT_EDITOR": ":",
    "LANGUAGE": "C",
    "LC_ALL": "C",
}
# Each of these, set by a user, changes what a command prints or does behind our back.
_SETTINGS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "color.ui=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
)
_GLOBAL_OPTIONS: Final = ("--no-pager", *(word for setting in _SETTINGS for word in ("-c", setting)))
# A git hook sets these for the programs it starts; they would lead every command to that repository.
_HOOK_VARIABLES: Final = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_NAMESPACE",
)

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
)


class GitError(AdapterError):
    """A git command failed."""


class NoSpaceForGit(GitError):
    """The disk is full or cannot be written: the same command may do its work when there is room."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """What a git command left."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Return the decoded standard output without its last newline."""
        return self.stdout.decode("utf-8", "replace").removesuffix("\n")

    @property
    def error_text(self) -> str:
        """Return what git complained about, as one harmless line."""
        return plain(self.stderr.decode("utf-8", "replace"), 500)

    @property
    def fields(self) -> list[str]:
        """Return the parts of an output that was asked for with -z; a name keeps its bytes."""
        parts = os.fsdecode(self.stdout).split("\0")
        return parts[:-1] if parts and not parts[-1].strip() else parts


def gitpython() -> type[git.Repo]:
    """Import GitPython, late: it costs 60 ms, and fails where git is missing."""
    try:
        from git import Repo
    except ImportError as error:
        raise ProgramMissing("git is not installed", how_to_get("git")) from error
    return Repo


def forget_hook() -> None:
    """Leave the repository of the git hook that started us, if one did."""
    for name in _HOOK_VARIABLES:
        os.environ.pop(name, None)


def start(
    program: git.Git, arguments: Sequence[str], environment: Mapping[str, str], *, has_stdin: bool = True
) -> subprocess.Popen[bytes]:
    """Start a git command; the caller ends it."""
    if any("\0" in argument for argument in arguments):
        raise UsageError("a name that is given to git holds a NUL byte", "names of commits and files never do")
    words = [program.GIT_PYTHON_GIT_EXECUTABLE or "git", *_GLOBAL_OPTIONS, *arguments]
    from git.exc import GitCommandNotFound

    try:
        handle = program.execute(
            words,
            istream=subprocess.PIPE if has_stdin else None,
            as_process=True,
            env={**_ENVIRONMENT, **environment},
            # A helper that git starts must end with it, and must not wait for words on our terminal.
            start_new_session=True,
        )
    except GitCommandNotFound as error:
        raise ProgramMissing("git is not installed", how_to_get("git")) from error
    process = cast("subprocess.Popen[bytes]", handle.proc)
    # GitPython ends a process when its handle is collected; from here on the process is ours.
    handle.proc = None
    return process


def finish(process: subprocess.Popen[bytes], stdin: bytes | None, timeout: float, shown: str) -> GitResult:
    """Wait for a started command."""
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        end(process)
        raise ProgramTimeout(
            f"`git {shown}` did not end within {timeout:g} s and was stopped",
            "the disk may be slow or the repository very large; try again",
        ) from None
    except BaseException:
        end(process)
        raise
    return GitResult(process.returncode, stdout, stderr)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a command and the helpers that it has started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError):
        process.communicate()


def complaint(answer: GitResult, arguments: Sequence[str], where: Path) -> AdapterError | UsageError:
    """Turn what git complained about into an error that says what to do."""
    words = answer.error_text
    lowered = words.lower()
    if "not a git repository" in lowered:
        return UsageError(f"{where} is not a git repository", "go to a folder of the project, or `git init` there")
    if "dubious ownership" in lowered:
        return UsageError(
            f"git does not trust {where}: it belongs to another user",
            f"if you do: git config --global --add safe.directory {where}",
        )
    if any(sign in lowered for sign in _SIGNS_OF_MISSING_OBJECTS):
        return GitError(
            f"objects are missing in {where}: {words}",
            "`git fsck` lists them; a partial clone gets them by `git fetch --refetch --no-filter`",
        )
    if "unable to create" in lowered and ".lock" in lowered:
        return GitError(words, "another git works in this repository; try again when it has ended")
    if any(sign in lowered for sign in _SIGNS_OF_NO_ROOM):
        return NoSpaceForGit(words, "nothing of yours was changed; make room and try again")
    shown = plain(" ".join(arguments[:2]), 60)
    return GitError(f"`git {shown}` failed with code {answer.code} in {where}", words or "git gave no reason")

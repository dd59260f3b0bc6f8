"""Run git."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, TypeVar

from swarm_tui.adapters.processes.environment import own_environment
from swarm_tui.adapters.processes.group import close_pipes, communicate, end_group, start_group
from swarm_tui.errors import AdapterError, ProgramTimeout, ResourceShortage, UsageError, shortage_in_words
from swarm_tui.model.text import plain

OLDEST_VERSION: Final = (2, 38)

_ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    # A partial clone would fetch missing objects and write them into the user's object store.
    "GIT_NO_LAZY_FETCH": "1",
    # The variable of older gits. Nothing here needs the network, because bundles and copies are files.
    "GIT_ALLOW_PROTOCOL": "file",
    # Git LFS files come from the network. Copies get those on this disk.
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_EDITOR": ":",
    "LANGUAGE": "C",
    "LC_ALL": "C",
}
# Each of these user settings would change the output or the effect of commands.
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


class GitError(AdapterError):
    """A git command failed."""


class ForeignRepository(UsageError):
    """git does not read a repository of another user."""


@dataclass(frozen=True, slots=True)
class GitResult:
    """The exit code and the output of a git command."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Return standard output as text, without its last newline."""
        return self.stdout.decode("utf-8", "replace").removesuffix("\n")

    @property
    def error_text(self) -> str:
        """Return git's error message in one line, without control characters."""
        return plain(self.stderr.decode("utf-8", "replace"), 500)

    @property
    def fields(self) -> list[str]:
        """Return the fields of an output with -z. Names keep their bytes."""
        parts = os.fsdecode(self.stdout).split("\0")
        return parts[:-1] if parts and not parts[-1].strip() else parts


def start_git(
    program: str, arguments: Sequence[str], folder: Path | None, environment: Mapping[str, str], stdin: int | IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a git command. The caller stops it."""
    if any("\0" in argument for argument in arguments):
        raise UsageError("a name for git contains a NUL byte", "names of commits and files have none")
    return start_group(
        [program, *_GLOBAL_OPTIONS, *arguments],
        cwd=folder,
        environment=own_environment() | _ENVIRONMENT | dict(environment),
        stdin=stdin,
    )


def finish_git(
    process: subprocess.Popen[bytes], stdin: bytes | None, timeout: float, arguments: Sequence[str]
) -> GitResult:
    """Wait for a command and return its result. After the timeout, or if we are interrupted, stop its group."""
    try:
        stdout, stderr = communicate(process, stdin, timeout)
    except subprocess.TimeoutExpired:
        raise ProgramTimeout(
            f"`git {plain(' '.join(arguments[:2]), 60)}` did not exit within {timeout:g} s and was stopped",
            "the disk may be slow or the repository very large; try again",
        ) from None
    return GitResult(process.returncode, stdout, stderr)


def shortage_of(answer: GitResult) -> ResourceShortage | None:
    """Return the resource shortage that caused the failure of a git command, or None."""
    killed = "git died of signal 9" if answer.code == -signal.SIGKILL else ""
    found = shortage_in_words(answer.stderr.decode("utf-8", "replace") + killed)
    return ResourceShortage(answer.error_text or killed, found.hint) if found is not None else None


def error_of(answer: GitResult, arguments: Sequence[str], where: Path) -> AdapterError | UsageError:
    """Return the error for a failed command, with a hint."""
    shortage = shortage_of(answer)
    if shortage is not None:
        return shortage
    words = answer.error_text
    lowered = words.lower()
    if "not a git repository" in lowered:
        return UsageError(f"not a git repository: {where}", "go to a folder of the project, or run `git init` there")
    if "dubious ownership" in lowered:
        return ForeignRepository(
            f"git does not trust {where}, which belongs to another user",
            f"if you trust it: git config --global --add safe.directory {where}",
        )
    if any(sign in lowered for sign in _SIGNS_OF_MISSING_OBJECTS):
        return GitError(
            f"objects are missing in {where}: {words}",
            "list them with `git fsck`; in a partial clone, run `git fetch --refetch --no-filter`",
        )
    if "unable to create" in lowered and ".lock" in lowered:
        return GitError(words, "another git is working in this repository; try again later")
    shown = plain(" ".join(arguments[:2]), 60)
    return GitError(f"`git {shown}` failed with code {answer.code} in {where}: {words or 'no reason given'}")


Read = TypeVar("Read")


class KeptProcess:
    """A process that answers requests. It starts with the first request; any thread can use it."""

    def __init__(self, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def request(self, request: bytes, read: Callable[[IO[bytes]], Read]) -> Read:
        """Send a request and parse the answer with `read`, which raises EOFError if it is incomplete."""
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._end()
            process = self._process = self._process or self._start()
            assert process.stdin is not None, "the adapter starts every process with pipes"
            assert process.stdout is not None, "the adapter starts every process with pipes"
            try:
                process.stdin.write(request)
                process.stdin.flush()
                return read(process.stdout)
            except (BrokenPipeError, EOFError) as error:
                raise GitError(f"git exited in the middle of an answer: {self._error_message(process)}") from error
            except BaseException:
                # The next request must not read the rest of this answer.
                self._end()
                raise

    def _error_message(self, process: subprocess.Popen[bytes]) -> str:
        self._process = None
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            _, message = communicate(process, None, 10)
            return plain(message.decode("utf-8", "replace"), 300) or "no reason given"
        return "no reason given"

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            end_group(process)
            close_pipes(process)

    def close(self) -> None:
        """Stop the process. The next request starts a new one."""
        with self._lock:
            self._end()

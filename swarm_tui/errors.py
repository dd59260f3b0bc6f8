"""The errors of swarm-tui.

SwarmError               exit 1: a failure
 ├─ NothingConcerned     exit 0: nothing to do
 ├─ UsageError           exit 2: an invalid request; nothing was changed
 │   └─ NoEngine         the sweep has no running engine
 ├─ JournalError         a sweep folder is unreadable or not writable
 └─ AdapterError         an external program failed
     ├─ ProgramMissing   exit 2: the program is missing or too old
     ├─ ProgramTimeout   the program exceeded its time limit
     ├─ LimitExceeded    the program exceeded another limit and was killed
     ├─ ResourceShortage not enough disk space, memory, processes or open files
     ├─ AgentExists      the agent's name is already used
     └─ NoTmuxServer     the tmux server is not running
"""

from __future__ import annotations

import errno
from typing import Final


class SwarmError(Exception):
    """An error that is reported without a traceback: `message` is the problem, `hint` is what to do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return one line, for logs and for the message line of the room."""
        return f"{self.message} ({self.hint})" if self.hint else self.message

    @property
    def report(self) -> str:
        """The text for a terminal, with the hint on a separate line."""
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message


class NothingConcerned(SwarmError):
    """Nothing to do: a change affects no test, or no test has the selected baseline."""

    exit_code = 0


class UsageError(SwarmError):
    """An invalid request; nothing was changed."""

    exit_code = 2


class NoEngine(UsageError):
    """The sweep has no running engine to carry out a request."""


class JournalError(SwarmError):
    """A sweep folder is unreadable or not writable."""


class AdapterError(SwarmError):
    """An external program failed."""


class ProgramMissing(AdapterError):
    """An external program is missing or too old."""

    exit_code = 2


class ProgramTimeout(AdapterError):
    """An external program exceeded its time limit."""


class LimitExceeded(AdapterError):
    """A program exceeded a limit and was killed."""


class ResourceShortage(AdapterError):
    """Not enough disk space, memory, processes or open files; a retry may succeed."""


_DISK: Final = "free some disk space"
_LIMITS: Final = "raise `ulimit -n` and `ulimit -u`, or use fewer slots"
_MEMORY: Final = "close other programs, or use fewer slots"
_SHORTAGE_NUMBERS: Final = {
    errno.ENOSPC: _DISK,
    errno.EDQUOT: _DISK,
    errno.EFBIG: _DISK,
    errno.EROFS: "use another disk",
    errno.EIO: "check the disk",
    errno.EMFILE: _LIMITS,
    errno.ENFILE: _LIMITS,
    errno.EAGAIN: _LIMITS,
    errno.ENOMEM: _MEMORY,
    errno.ENOBUFS: _MEMORY,
}
# Messages of git, mngr and Python.
_SHORTAGE_WORDS: Final = {
    "no space left": _DISK,
    "out of diskspace": _DISK,
    "disk quota exceeded": _DISK,
    "file too large": _DISK,
    # git does not report why it could not write the lock file of a ref.
    "couldn't write '": _DISK,
    "read-only file system": "use another disk",
    "input/output error": "check the disk",
    "too many open files": _LIMITS,
    "resource temporarily unavailable": _LIMITS,
    "unable to create thread": _LIMITS,
    "can't start new thread": _LIMITS,
    "cannot fork": _LIMITS,
    "cannot allocate memory": _MEMORY,
    "out of memory": _MEMORY,
    # The kernel kills processes when memory runs out.
    "died of signal 9": _MEMORY,
}


def resource_shortage(error: BaseException) -> ResourceShortage | None:
    """Return the resource shortage that caused an error, or None."""
    match error:
        case ResourceShortage():
            return error
        case MemoryError():
            return ResourceShortage("out of memory", _MEMORY)
        case RuntimeError():
            return shortage_in_words(str(error))
        case OSError(errno=number, strerror=words, filename=path) if number in _SHORTAGE_NUMBERS:
            where = f"{path}: " if path else ""
            return ResourceShortage(f"{where}{words or error}", _SHORTAGE_NUMBERS[number])
    return resource_shortage(error.__cause__) if error.__cause__ is not None else None


def raise_shortage(error: Exception) -> None:
    """Raise ResourceShortage if a shortage caused the error; otherwise return."""
    shortage = resource_shortage(error)
    if shortage is not None:
        raise shortage from error


def shortage_in_words(text: str) -> ResourceShortage | None:
    """Return the shortage that a message of another program reports, or None."""
    lowered = text.lower()
    hint = next((hint for words, hint in _SHORTAGE_WORDS.items() if words in lowered), None)
    return ResourceShortage(text, hint) if hint is not None else None


class ImageBuildFailed(AdapterError):
    """The image of a new host cannot be built, so another attempt would fail, too."""


class AgentExists(AdapterError):
    """An agent with this name exists already."""


class NoTmuxServer(AdapterError):
    """The tmux server is not running."""

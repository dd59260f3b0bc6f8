"""The one tree of errors; each says what happened and what the user can do.

SwarmError               exit 1: something failed
 ├─ NothingConcerned     exit 0: there is nothing to do, and that is well
 ├─ UsageError           exit 2: the request itself is wrong; nothing was changed
 │   └─ NoEngine         no engine works on the sweep, so that nobody can carry it out
 ├─ JournalError         the sweep folder cannot be read or written
 └─ AdapterError            an outside program failed
     ├─ ProgramMissing   it is not there, or too old
     ├─ ProgramTimeout   it did not answer in time
     ├─ LimitExceeded    it used more than it may, and was ended
     ├─ AgentExists      an agent of that name is there already
     └─ NoTmuxServer     no tmux server answers where one was named
"""

from __future__ import annotations


class SwarmError(Exception):
    """Something failed; `hint` says what the user can do about it."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        separator = " " if self.message.endswith("?") else ": "
        return f"{self.message}{separator}{self.hint}" if self.hint else self.message


class NothingConcerned(SwarmError):
    """A change concerns no test: there is nothing to do, and that is well."""

    exit_code = 0


class UsageError(SwarmError):
    """The request cannot be carried out as it was made; nothing was changed."""

    exit_code = 2


class NoEngine(UsageError):
    """No engine works on the sweep, so that nobody can carry out a request."""


class JournalError(SwarmError):
    """The sweep folder cannot be read or written."""


class AdapterError(SwarmError):
    """An outside program failed."""


class ProgramMissing(AdapterError):
    """An outside program is not on this machine, or is too old."""

    exit_code = 2


class ProgramTimeout(AdapterError):
    """An outside program did not answer in time."""


class LimitExceeded(AdapterError):
    """A program used more than it may, and was ended."""


class AgentExists(AdapterError):
    """An agent of that name is there already: created before, by us or by somebody else."""


class NoTmuxServer(AdapterError):
    """No tmux server answers at the place that was named."""

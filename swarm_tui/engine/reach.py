"""Reaches into an agent's folders: one protocol for all providers; on this machine the folders are simply there."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.process import Finished, run_process
from swarm_tui.errors import UsageError

LOCAL: Final = "local"
Place = Literal["state", "work"]


class AgentFiles(Protocol):
    """What the engine does with an agent's state folder and its copy of the repository."""

    async def read(self, place: Place, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes | None:
        """Return a part of a file, or None when there is none."""
        ...

    async def size(self, place: Place, path: str) -> int | None:
        """Return the size of a regular file, or None when there is none."""
        ...

    async def list(self, place: Place, path: str) -> Sequence[str]:
        """Return the names in a folder; none when it is not there."""
        ...

    async def execute(self, words: Sequence[str], *, timeout: float = 60.0) -> Finished:
        """Run a command in the agent's copy of the repository."""
        ...


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The folders of an agent on this machine."""

    state_dir: Path
    work_dir: Path

    def path(self, place: Place, path: str = "") -> Path:
        """Return where a file lies; only on this machine is there such a thing."""
        return (self.state_dir if place == "state" else self.work_dir) / path

    async def read(self, place: Place, path: str, *, offset: int = 0, limit: int = 1 << 20) -> bytes | None:
        try:
            # A pipe that an agent put in the place of a file would never give an answer.
            descriptor = os.open(self.path(place, path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return os.pread(descriptor, limit, offset) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
        except OSError:
            return None
        finally:
            os.close(descriptor)

    async def size(self, place: Place, path: str) -> int | None:
        try:
            status = self.path(place, path).stat()
        except OSError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    async def list(self, place: Place, path: str) -> Sequence[str]:
        try:
            return sorted(os.listdir(self.path(place, path)))
        except OSError:
            return ()

    async def execute(self, words: Sequence[str], *, timeout: float = 60.0) -> Finished:
        return await run_process(words, cwd=self.work_dir, environment=scrubbed_environment(), timeout=timeout)


def files_of(provider: str, state_dir: Path, work_dir: Path) -> LocalFiles:
    """Return the way into an agent's folders; only agents on this machine can be reached so far."""
    if provider != LOCAL:
        raise UsageError(
            f"agents on {provider!r} cannot be reached yet", "leave --provider out: they run on this machine"
        )
    return LocalFiles(state_dir, work_dir)

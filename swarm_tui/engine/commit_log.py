"""Counts the commits that an agent makes in its copy, from git's own log there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.engine.file_tail import FileTail
from swarm_tui.model.events import Committed
from swarm_tui.places.place import AgentAddress, AgentFile, FileSlice, ReadRequest

# A copy that is a worktree of the user's repository has this log elsewhere: there no commits are counted.
COMMIT_LOG: Final = ".git/logs/HEAD"
INTERVAL: Final = 5.0
_COMMIT: Final = re.compile(rb"\tcommit(?: \([a-z]+\))?: ")


@dataclass(slots=True)
class CommitLog:
    """The commits of one agent."""

    test: str
    address: AgentAddress
    _tail: FileTail = field(init=False)
    _commits: int = 0
    _recorded: int = 0
    _recorded_at: float = float("-inf")

    def __post_init__(self) -> None:
        self._tail = FileTail(AgentFile(self.address, COMMIT_LOG, "work"))

    def continue_from(self, commits: int) -> None:
        """Continue where the journal ends."""
        self._recorded = commits

    @property
    def request(self) -> ReadRequest:
        return self._tail.request

    def read(self, piece: FileSlice | None, now: float) -> list[Committed]:
        """Return the event of new commits; most often there are none."""
        self._commits += sum(_COMMIT.search(line) is not None for line in self._tail.read_lines(piece))
        if self._commits <= self._recorded or now < self._recorded_at + INTERVAL:
            return []
        self._recorded, self._recorded_at = self._commits, now
        return [Committed(test=self.test, commits=self._commits)]

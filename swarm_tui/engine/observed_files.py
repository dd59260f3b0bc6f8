"""Feeds an observer of one agent with the files that it wants to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.agents.observation import AgentObserver
from swarm_tui.engine.file_tail import FileTail
from swarm_tui.model.paths import fits_pattern
from swarm_tui.places.place import AgentAddress, AgentFile, FileSlice, FoundFile, ReadRequest

WHOLE_LIMIT: Final = 1 << 16
FILES_LIMIT: Final = 20
"""How many files of one pattern are read: an agent may make as many as it likes."""


@dataclass(slots=True)
class ObservedFiles:
    """The files of one agent that were found so far."""

    address: AgentAddress
    observer: AgentObserver
    _tails: dict[str, tuple[str, FileTail]] = field(default_factory=dict)
    """Files of which new lines are read: the observer's name for them, and how far they were read."""
    _whole: dict[str, str] = field(default_factory=dict)
    """Files that are read whole: the observer's name for them."""
    _is_whole_due: bool = True

    def set_found(self, files: Sequence[FoundFile]) -> None:
        """Take note of which files there are now; the whole ones are read with the next requests."""
        self._whole.clear()
        self._is_whole_due = True
        for wanted in self.observer.files:
            for file in [file for file in files if fits_pattern(file.path, wanted.pattern)][:FILES_LIMIT]:
                if not wanted.is_appended:
                    self._whole[file.path] = wanted.name
                elif file.path not in self._tails:
                    self._tails[file.path] = wanted.name, FileTail(AgentFile(self.address, file.path))

    def requests(self) -> list[ReadRequest]:
        """Return what is to be read now."""
        whole = self._whole if self._is_whole_due else ()
        return [
            *(tail.request for _, tail in self._tails.values()),
            *(ReadRequest(AgentFile(self.address, path), limit=WHOLE_LIMIT, is_whole=True) for path in whole),
        ]

    def read(self, slices: Iterator[FileSlice | None]) -> None:
        """Hand the answers to `requests` to the observer."""
        for name, tail in self._tails.values():
            lines = tail.read_lines(next(slices))
            if lines:
                self.observer.add_lines(name, lines)
        if self._is_whole_due:
            self._is_whole_due = False
            contents = {path: piece.content for path in self._whole if (piece := next(slices)) is not None}
            for wanted in self.observer.files:
                if not wanted.is_appended:
                    own = {path: raw for path, raw in contents.items() if self._whole[path] == wanted.name}
                    self.observer.set_contents(wanted.name, own)

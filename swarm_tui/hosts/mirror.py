"""The files and agents that a host has reported, so that questions need no answer of the host."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from swarm_tui.hosts.protocol import AgentAddress, FileSlice, FoundFile, ReadRequest

# Files and folders that were not requested for this time are not followed any more.
FORGOTTEN_AFTER: Final = 30.0
# Report to the host how far a file was read after this number of bytes.
_TOLD_AFTER: Final = 1 << 17
_PATTERNS_KEPT: Final = 1_000

Kind = Literal["size", "tail", "whole"]


@dataclass(slots=True)
class FollowedFile:
    """A file, with the reported part that was not read yet."""

    key: str
    path: str
    kind: Kind
    agent: str
    """The id of the agent with this file."""
    start: int = 0
    content: bytearray = field(default_factory=bytearray)
    size: int = -1
    """-1 if nothing is known of the file, or it does not exist."""
    told: int = 0
    """The read position that the host knows."""
    asked_at: float = 0.0

    @property
    def end(self) -> int:
        return self.start + len(self.content)

    def take(self, size: int, offset: int, content: bytes) -> None:
        self.size = size
        if self.kind == "tail" and offset == self.end and size >= 0:
            self.content += content
        else:
            # The file was removed or replaced, or is always reported as a whole.
            self.start, self.told, self.content = offset, offset, bytearray(content)

    def slice_for(self, request: ReadRequest) -> FileSlice | None:
        if self.size < 0:
            return None
        if self.kind == "size":
            return FileSlice(self.size)
        offset = request.offset if request.offset <= self.end else self.start
        if self.kind == "tail" and offset > self.start:
            del self.content[: offset - self.start]
            self.start = offset
        return FileSlice(max(self.size, self.end), offset, bytes(self.content[: request.limit]))


@dataclass(slots=True)
class SearchedFolder:
    """An agent's folder, with the files that match patterns."""

    key: str
    folder: str
    patterns: tuple[str, ...]
    files: list[FoundFile] = field(default_factory=list)
    asked_at: float = 0.0


class HostMirror:
    """The reports of one host. `requests` returns what to ask it for."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, Kind], FollowedFile] = {}
        self._folders: dict[tuple[str, tuple[str, ...]], SearchedFolder] = {}
        self._by_key: dict[str, FollowedFile | SearchedFolder] = {}
        self._last_key = 0
        self._swept_at = 0.0
        self._unsent: list[dict[str, Any]] = []
        self.probe: dict[str, Any] | None = None
        """The last report of agents, terminals and processes."""
        self.tell: Callable[[str], object] = lambda agent: None
        """Called with the id of an agent that has a new report."""

    def files(self, requests: Sequence[ReadRequest]) -> list[FileSlice | None]:
        """Return the slices that were reported. Follow files that are requested for the first time."""
        now = time.monotonic()
        new: dict[str, Any] = {}
        slices = [self._slice(request, now, new) for request in requests]
        if new:
            self._unsent.append({"op": "follow", "files": new})
        self._tell_what_was_taken()
        self._forget(now)
        return slices

    def found(self, agents: Sequence[AgentAddress], patterns: Sequence[str]) -> list[list[FoundFile]]:
        now, wanted = time.monotonic(), tuple(patterns)
        new: dict[str, Any] = {}
        answers = []
        for agent in agents:
            folder = self._folders.get((agent.state_dir, wanted))
            if folder is None:
                folder = SearchedFolder(self._new_key(), agent.state_dir, wanted)
                self._folders[agent.state_dir, wanted] = self._by_key[folder.key] = folder
                new[folder.key] = [folder.folder, wanted]
            folder.asked_at = now
            answers.append(folder.files)
        if new:
            self._unsent.append({"op": "search", "folders": new})
        return answers

    def requests(self) -> list[dict[str, Any]]:
        """Return the requests to send to the host now."""
        unsent, self._unsent = self._unsent, []
        return unsent

    def begin_again(self) -> list[dict[str, Any]]:
        """Return the requests after a new connection: everything, from the last position."""
        self._unsent.clear()
        files = {file.key: [file.path, file.end, file.kind] for file in self._files.values()}
        folders = {folder.key: [folder.folder, folder.patterns] for folder in self._folders.values()}
        for file in self._files.values():
            file.told = file.end
        return [{"op": "follow", "files": files}, {"op": "search", "folders": folders}]

    def take(self, said: Mapping[str, Any]) -> None:
        """Store a report of the host; raise ValueError, KeyError or TypeError if it is invalid."""
        match said["t"]:
            case "news":
                for key, (size, offset, content) in said["files"].items():
                    file = self._by_key.get(key)
                    if isinstance(file, FollowedFile):
                        file.take(int(size), int(offset), base64.b64decode(content))
                        self.tell(file.agent)
            case "found":
                for key, files in said["folders"].items():
                    folder = self._by_key.get(key)
                    if isinstance(folder, SearchedFolder):
                        folder.files = list(parse_found(files))
            case "probe":
                self.probe = dict(said)

    def _slice(self, request: ReadRequest, now: float, new: dict[str, Any]) -> FileSlice | None:
        kind: Kind = "whole" if request.is_whole else "tail" if request.limit else "size"
        path = request.file.full_path
        file = self._files.get((path, kind))
        if file is None or (kind == "tail" and request.offset < file.start):
            if file is None:
                file = FollowedFile(self._new_key(), path, kind, request.file.agent.agent_id)
                self._files[path, kind] = self._by_key[file.key] = file
            file.start, file.told, file.content = request.offset, request.offset, bytearray()
            new[file.key] = [path, request.offset, kind]
        file.asked_at = now
        return file.slice_for(request)

    def _new_key(self) -> str:
        self._last_key += 1
        return str(self._last_key)

    def _tell_what_was_taken(self) -> None:
        taken = {}
        for file in self._files.values():
            if file.start - file.told > _TOLD_AFTER:
                file.told = taken[file.key] = file.start
        if taken:
            self._unsent.append({"op": "taken", "files": taken})

    def _forget(self, now: float) -> None:
        if now < self._swept_at + FORGOTTEN_AFTER:
            return
        self._swept_at = now
        limit = now - FORGOTTEN_AFTER
        files = [unused for unused, file in self._files.items() if file.asked_at < limit]
        folders = [unused for unused, folder in self._folders.items() if folder.asked_at < limit]
        keys = [self._files.pop(unused).key for unused in files] + [self._folders.pop(unused).key for unused in folders]
        for key in keys:
            del self._by_key[key]
        if keys:
            self._unsent.append({"op": "forget", "keys": keys})


def parse_found(files: Sequence[Sequence[Any]]) -> Iterator[FoundFile]:
    for path, size, modified_at in files[:_PATTERNS_KEPT]:
        yield FoundFile(str(path), int(size), float(modified_at))

"""Follow an agent's files: lines, tries, commits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from swarm_tui.agents.observer import AgentObserver
from swarm_tui.failures.events import parse_failure
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, FileSlice, FoundFile, ReadRequest
from swarm_tui.journal.work_events import CommitsCounted, ForeignImportsFound, Try, TryFinished, TryStarted
from swarm_tui.model.text import parse_object, plain
from swarm_tui.transcripts.locate import fits_pattern

LINE_LIMIT: Final = 1 << 20


class FileTail:
    """Turns the slices of a growing file into whole lines. A line longer than a megabyte is ignored."""

    def __init__(self, file: AgentFile) -> None:
        self._file = file
        self._offset = 0
        self._is_inside_long_line = False

    @property
    def request(self) -> ReadRequest:
        """Return the next read: at most a megabyte."""
        return ReadRequest(self._file, self._offset, LINE_LIMIT)

    def read_lines(self, piece: FileSlice | None) -> list[bytes]:
        """Return the whole lines in the answer to `request`."""
        if piece is None:
            return []
        self._offset = piece.offset
        end = piece.content.rfind(b"\n") + 1
        if not end:
            if len(piece.content) == LINE_LIMIT:
                self._offset += LINE_LIMIT
                self._is_inside_long_line = True
            return []
        self._offset += end
        lines = piece.content[:end].split(b"\n")[:-1]
        if self._is_inside_long_line:
            self._is_inside_long_line = False
            del lines[0]
        return lines


# A copy that is a worktree of the user's repository has this log elsewhere. Its commits are not counted.
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

    def read(self, piece: FileSlice | None, now: float) -> list[CommitsCounted]:
        """Return the event of new commits, if there are any."""
        self._commits += sum(_COMMIT.search(line) is not None for line in self._tail.read_lines(piece))
        if self._commits <= self._recorded or now < self._recorded_at + INTERVAL:
            return []
        self._recorded, self._recorded_at = self._commits, now
        return [CommitsCounted(test=self.test, commits=self._commits)]


WHOLE_LIMIT: Final = 1 << 16
FILES_LIMIT: Final = 20
"""How many files of one pattern are read. An agent may create any number."""


@dataclass(slots=True)
class ObservedFiles:
    """The files of one agent that were found so far."""

    address: AgentAddress
    observer: AgentObserver
    _tails: dict[str, tuple[str, FileTail]] = field(default_factory=dict)
    """Files from which new lines are read: the observer's name for them, and the position."""
    _whole: dict[str, str] = field(default_factory=dict)
    """Files that are read as a whole: the observer's name for them."""
    _is_whole_due: bool = True

    def set_found(self, files: Sequence[FoundFile]) -> None:
        """Set the files that exist now. Those that are read as a whole are part of the next requests."""
        self._whole.clear()
        self._is_whole_due = True
        for wanted in self.observer.files:
            for file in [file for file in files if fits_pattern(file.path, wanted.pattern)][:FILES_LIMIT]:
                if not wanted.is_appended:
                    self._whole[file.path] = wanted.name
                elif file.path not in self._tails:
                    self._tails[file.path] = wanted.name, FileTail(AgentFile(self.address, file.path))

    def requests(self) -> list[ReadRequest]:
        """Return the next reads."""
        whole = self._whole if self._is_whole_due else ()
        return [
            *(tail.request for _, tail in self._tails.values()),
            *(ReadRequest(AgentFile(self.address, path), limit=WHOLE_LIMIT, is_whole=True) for path in whole),
        ]

    def read(self, slices: Iterator[FileSlice | None]) -> None:
        """Pass the answers to `requests` to the observer."""
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


TryEvent = TryStarted | TryFinished | ForeignImportsFound

_FAILURE_LIMIT = 400


class TryReader:
    """Numbers the tries of one test in the order of their file, and ignores those in the journal."""

    def __init__(self, test: str, known: Iterable[Try] = ()) -> None:
        self._test = test
        self._number = 0
        self._number_of_run: dict[str, int] = {}
        self._known = {made.number: made.passed is not None for made in known}
        # The journal's state has only the last tries; earlier ones are in the journal.
        self._first_known = min(self._known, default=0)
        self._foreign: tuple[str, ...] = ()

    def read(self, lines: Iterable[bytes]) -> list[TryEvent]:
        """Return the events for the lines; other lines are skipped."""
        events = (self._event(fields) for fields in map(parse_object, lines) if fields)
        return [event for event in events if event is not None]

    def _event(self, fields: dict[str, Any]) -> TryEvent | None:
        run = str(fields.get("run"))
        match fields.get("kind"):
            case "start":
                self._number += 1
                self._number_of_run[run] = self._number
                if self._number in self._known or self._number < self._first_known:
                    return None
                return TryStarted(test=self._test, number=self._number)
            case "finish" if run in self._number_of_run:
                number = self._number_of_run[run]
                seconds, reruns = fields.get("seconds"), fields.get("reruns")
                if self._known.get(number) or number < self._first_known:
                    return None
                self._known[number] = True
                return TryFinished(
                    test=self._test,
                    number=number,
                    passed=fields.get("passed") is True,
                    seconds=float(seconds) if isinstance(seconds, int | float) and 0 <= seconds < 1e7 else 0.0,
                    failure=plain(str(fields.get("failure") or ""), _FAILURE_LIMIT),
                    outcome=plain(str(fields.get("outcome") or ""), 20),
                    reruns=reruns if isinstance(reruns, int) and 0 <= reruns < 10_000 else 0,
                    detail=parse_failure(fields.get("detail")),
                )
            case "foreign":
                return self._foreign_imports(fields.get("modules"))
        return None

    def _foreign_imports(self, modules: Any) -> ForeignImportsFound | None:
        names: Sequence[Any] = modules if isinstance(modules, list) else ()
        found = tuple(sorted({plain(str(name), 80) for name in names[:20]} | set(self._foreign)))[:20]
        if not found or found == self._foreign:
            return None
        self._foreign = found
        return ForeignImportsFound(test=self._test, modules=found)

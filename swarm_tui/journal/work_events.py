"""Events of an agent's work: tries, edits, commits, output. How they change the state, and their log lines."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from swarm_tui.failures.events import FailureDetail
from swarm_tui.model.event import INTEGRATOR_KEY, LogLine, TestEvent
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.state import SweepState


class Try(NamedTuple):
    """One pytest run of a test by its agent."""

    number: int
    passed: bool | None
    """None while it runs."""
    seconds: float
    at: float
    failure: str = ""
    outcome: str = ""
    """The outcome in pytest: passed, failed, skipped, xfailed or xpassed; empty in older journals and while it runs."""
    reruns: int = 0
    """The number of earlier runs by a rerun plugin of the project."""
    detail: FailureDetail | None = None

    @property
    def word(self) -> str:
        """The displayed word: runs, passed, skipped or failed."""
        if self.passed is None:
            return "runs"
        return "passed" if self.passed else "skipped" if self.outcome == "skipped" else "failed"


TRIES_KEPT: Final = 50


def _put_try(state: SweepState, test: str, new: Try) -> None:
    record = state.find_or_new(test)
    tries = record.tries
    # Concurrent runs may finish in a different order. Tries are sorted by number.
    index = len(tries)
    while index and tries[index - 1].number >= new.number:
        index -= 1
    rest = index + (index < len(tries) and tries[index].number == new.number)
    tries = (*tries[:index], new, *tries[rest:])[-TRIES_KEPT:]
    state.change(test, tries=tries, tokens_at_progress=record.tokens or 0)


class TryStarted(TestEvent, frozen=True):
    """The agent started a pytest run of its test, as reported by the live plugin."""

    number: int = 1

    def apply(self, state: SweepState) -> None:
        _put_try(state, self.test, Try(self.number, None, 0.0, self.at))


class TryFinished(TestEvent, frozen=True):
    """A pytest run of the test finished."""

    passed: bool
    number: int = 1
    seconds: float = 0.0
    failure: str = ""
    outcome: str = ""
    reruns: int = 0
    detail: FailureDetail | None = None
    """None in journals of older versions, and if pytest gave no details."""

    def apply(self, state: SweepState) -> None:
        reported = (self.passed, self.seconds, self.at, self.failure, self.outcome, self.reruns, self.detail)
        _put_try(state, self.test, Try(self.number, *reported))


EDITS_KEPT: Final = 200
_PATH_LIMIT: Final = 300
_HUNK: Final = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? ")


class FileEdit(NamedTuple):
    """A range of lines that an agent replaced, removed or inserted text between; 0 to 0 for a new file."""

    path: str
    first: int
    last: int


def parse_edits(difference: str) -> tuple[FileEdit, ...]:
    """Return the edits in the headers of a diff without context. Other lines are ignored.

    A line `?? PATH` names a new file. The content of an agent's file may look like a header, so a path is accepted
    only directly after the first line of a file's diff.
    """
    edits: dict[FileEdit, None] = {}
    path, lines_since_begin = "", 9
    for line in difference.split("\n"):
        lines_since_begin += 1
        if line.startswith("diff --git "):
            path, lines_since_begin = "", 0
        elif line.startswith("--- a/") and lines_since_begin <= 1:
            path = line[6:]
        elif line.startswith("+++ b/") and lines_since_begin <= 2 and not path:
            _add(edits, line[6:], 0, 0)
        elif line.startswith("?? "):
            _add(edits, line[3:], 0, 0)
        elif path and (hunk := _HUNK.match(line)):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            # Text inserted after a line conflicts with edits of that line and of the next one.
            _add(edits, path, first, first + max(count - 1, 0) if count else first + 1)
        if len(edits) >= EDITS_KEPT:
            break
    return tuple(edits)


def _add(edits: dict[FileEdit, None], path: str, first: int, last: int) -> None:
    edits[FileEdit(plain(path.rstrip("\t"), _PATH_LIMIT), first, last)] = None


class FilesEdited(TestEvent, frozen=True):
    """The set of lines that the agent has changed, committed or not, is different from the last check."""

    edits: tuple[FileEdit, ...] = ()

    def apply(self, state: SweepState) -> None:
        state.change(self.test, edits=self.edits)


class CommitsCounted(TestEvent, frozen=True):
    """The number of commits in the agent's copy changed; written at most every five seconds for each test."""

    commits: int

    def apply(self, state: SweepState) -> None:
        tokens = state.find_or_new(self.test).tokens or 0
        state.change(self.test, commits=self.commits, tokens_at_progress=tokens)


class ForeignImportsFound(TestEvent, frozen=True):
    """The test ran against modules of the user's checkout instead of the agent's copy."""

    modules: tuple[str, ...] = ()

    def apply(self, state: SweepState) -> None:
        state.change(self.test, foreign_imports=self.modules)

    def log_line(self) -> LogLine | None:
        text = f"imported modules from your checkout instead of its copy: {', '.join(self.modules[:3])}"
        return self.logged(text, "warning", self.test)


class AgentOutput(TestEvent, frozen=True):
    """The last line of the agent's output; written at most once a second for each test."""

    line: str

    def apply(self, state: SweepState) -> None:
        if self.test == INTEGRATOR_KEY:
            state.integration = replace(state.integration, last_line=self.line)
        state.change(self.test, last_line=self.line, last_line_at=self.at)

    def log_line(self) -> LogLine | None:
        return self.logged(self.line, test=self.test) if self.test == INTEGRATOR_KEY and self.line else None

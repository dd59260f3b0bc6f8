"""Watches one agent: tries and words from its files, its life from the probe; says what is new and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from swarm_tui.adapters.probe import AgentState
from swarm_tui.agents.contract import ARCHIVE_PATH, TRIES_PATH
from swarm_tui.agents.judging import End
from swarm_tui.agents.kinds import AgentKind
from swarm_tui.agents.transcript_summary import TranscriptSummary
from swarm_tui.engine.file_tail import Tail
from swarm_tui.engine.pull import find_transcript
from swarm_tui.engine.reach import LocalFiles
from swarm_tui.engine.tries import TryReader
from swarm_tui.model.events import KnownEvent, Said, Seen, Spent
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State

# What is seen once may be a moment between two things; what is seen twice, a second apart, is so.
CONFIRMATIONS: Final = 2
SAID_INTERVAL: Final = 1.0
SPENT_INTERVAL: Final = 5.0
_END_OF: Final[dict[AgentState | None, End]] = {
    "DONE": End.CRASH,
    "STOPPED": End.CLOSED,
    None: End.GONE,
}


@dataclass(slots=True)
class Watch:
    """One living agent. Times are those of the monotonic clock: the wall clock may jump."""

    test: str
    agent: str
    kind: AgentKind
    files: LocalFiles
    session: str
    started: float
    timeout: float
    wait_timeout: float
    state: State = State.RUNNING
    waiting_since: float | None = None
    waited: float = 0.0
    questions: int = 0
    _tries: Tail = field(init=False)
    _reader: TryReader = field(init=False)
    _transcript: Tail | None = None
    _summary: TranscriptSummary = field(init=False)
    _recorded: TranscriptSummary = field(init=False)
    _said_at: float = float("-inf")
    _spent_at: float = float("-inf")
    _was_active: bool = False
    _sightings: tuple[AgentState | None, int] = ("RUNNING", 0)

    def __post_init__(self) -> None:
        self._tries = Tail(self.files, "state", TRIES_PATH)
        self._reader = TryReader(self.test)
        self._summary, self._recorded = self.kind.new_summary(), self.kind.new_summary()

    def know(self, record: TestRecord) -> None:
        """Take over what the journal knows of an agent that was watched before."""
        self._reader = TryReader(self.test, record.tries)
        self._recorded.last_line = record.last_line
        self._was_active = True

    async def look(self, now: float) -> list[KnownEvent]:
        """Read the agent's files; return what is new in them."""
        events: list[KnownEvent] = list(self._reader.read(await self._tries.read()))
        if self._transcript is None and now >= self._said_at + SAID_INTERVAL:
            self._said_at = now
            path = await find_transcript(self.files, self.kind.transcript_emitters)
            self._transcript = Tail(self.files, "state", path) if path else None
        if self._transcript is not None:
            self._summary.read(await self._transcript.read())
            events += self._news(now)
        return events

    def _news(self, now: float) -> list[KnownEvent]:
        events: list[KnownEvent] = []
        summary, recorded = self._summary, self._recorded
        if summary.last_line != recorded.last_line and now >= self._said_at + SAID_INTERVAL:
            self._said_at, recorded.last_line = now, summary.last_line
            events.append(Said(test=self.test, line=summary.last_line))
        has_spent = (summary.dollars, summary.tokens) != (recorded.dollars, recorded.tokens)
        if has_spent and now >= self._spent_at + SPENT_INTERVAL:
            self._spent_at, recorded.dollars, recorded.tokens = now, summary.dollars, summary.tokens
            events.append(Spent(test=self.test, dollars=summary.dollars, tokens=summary.tokens))
        return events

    def last_news(self) -> list[KnownEvent]:
        """Return what was held back, at the end of the watch."""
        self._said_at = self._spent_at = float("-inf")
        return self._news(0.0)

    async def has_archive(self) -> bool:
        """Whether the agent has handed in its work."""
        return await self.files.size("state", ARCHIVE_PATH) is not None

    def sight(self, seen: AgentState | None, now: float) -> tuple[Seen | None, End | None]:
        """Take what a probe saw (None: no such agent); give the change of state, or the end, that follows from it."""
        known, times = self._sightings
        self._sightings = (seen, times + 1 if seen == known else 1)
        self._was_active = self._was_active or seen == "RUNNING"
        if seen == "RUNNING" or seen == "REPLACED":
            return self._became(State.RUNNING, now), None
        if self._sightings[1] < CONFIRMATIONS:
            return None, None
        if seen == "WAITING":
            is_starting = not self._was_active and now < self.started + self.kind.ready_within
            return (None if is_starting else self._became(State.WAITING, now)), None
        return None, _END_OF[seen]

    def _became(self, state: State, now: float) -> Seen | None:
        if state is self.state:
            return None
        if state is State.WAITING:
            self.waiting_since = now
            self.questions += 1
            question = self._summary.question or self._recorded.last_line
            self.state = state
            return Seen(test=self.test, state=State.WAITING, source="process", question=question)
        if self.waiting_since is not None:
            self.waited += now - self.waiting_since
        self.waiting_since = None
        self.state = state
        return Seen(test=self.test, state=State.RUNNING, source="process")

    def overdue(self, now: float) -> End | None:
        """Whether the agent has worked, or waited for an answer, longer than it may."""
        if self.waiting_since is not None:
            return End.NO_ANSWER if now - self.waiting_since >= self.wait_timeout else None
        return End.TIMEOUT if now - self.started - self.waited >= self.timeout else None

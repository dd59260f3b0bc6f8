"""Watches agents: their tries and transcripts, whether they wait for an answer, and how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from swarm_tui.agents.contract import ARCHIVE_PATH, TRIES_PATH
from swarm_tui.agents.judging import End
from swarm_tui.agents.transcript_summary import TranscriptSummary
from swarm_tui.engine.agent_task import AgentTask
from swarm_tui.engine.file_tail import FileTail
from swarm_tui.engine.transcripts import find_transcripts
from swarm_tui.engine.tries import TryReader
from swarm_tui.model.events import KnownEvent, Said, Seen, Spent
from swarm_tui.model.state import TestRecord
from swarm_tui.model.states import State
from swarm_tui.places.place import AgentAddress, AgentFile, AgentState, FileSlice, Place, ReadRequest

# One observation may fall into the moment in which an agent changes its state, so it takes two, a second apart.
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

    task: AgentTask
    address: AgentAddress
    started: float
    timeout: float
    wait_timeout: float
    state: State = State.RUNNING
    waiting_since: float | None = None
    waited: float = 0.0
    questions: int = 0
    has_archive: bool = False
    """Whether the agent has handed in its work."""
    _tries: FileTail = field(init=False)
    _reader: TryReader = field(init=False)
    _transcript: FileTail | None = None
    _summary: TranscriptSummary = field(init=False)
    _recorded: TranscriptSummary = field(init=False)
    _said_at: float = float("-inf")
    _spent_at: float = float("-inf")
    _was_active: bool = False
    _observed: tuple[AgentState | None, int] = ("RUNNING", 0)
    """The last observed state, and how often it was observed in a row."""

    def __post_init__(self) -> None:
        self._tries = FileTail(AgentFile(self.address, TRIES_PATH))
        self._reader = TryReader(self.task.key)
        self._summary, self._recorded = self.task.kind.new_summary(), self.task.kind.new_summary()

    def continue_from(self, record: TestRecord) -> None:
        """Continue where the journal ends for an agent that was watched before."""
        self._reader = TryReader(self.task.key, record.tries)
        self._recorded.last_line = record.last_line
        self._was_active = True

    def is_searched(self, now: float) -> bool:
        """Return whether the agent's transcript is to be looked for now."""
        is_due = self._transcript is None and now >= self._said_at + SAID_INTERVAL
        if is_due:
            self._said_at = now
        return is_due

    def follow_transcript(self, path: str) -> None:
        """Read the transcript from now on."""
        self._transcript = FileTail(AgentFile(self.address, path))

    def read_requests(self) -> list[ReadRequest]:
        """Return what is to be read of the agent's files."""
        transcript = [self._transcript.request] if self._transcript is not None else []
        return [ReadRequest(AgentFile(self.address, ARCHIVE_PATH)), self._tries.request, *transcript]

    def new_events(self, slices: Sequence[FileSlice | None], now: float) -> list[KnownEvent]:
        """Return the events that follow from the answers to `read_requests`."""
        archive, tries, *transcript = slices
        self.has_archive = archive is not None
        events: list[KnownEvent] = list(self._reader.read(self._tries.read_lines(tries)))
        if self._transcript is not None and transcript:
            self._summary.read(self._transcript.read_lines(transcript[0]))
            events += self._transcript_events(now)
        return events

    def _transcript_events(self, now: float) -> list[KnownEvent]:
        events: list[KnownEvent] = []
        summary, recorded = self._summary, self._recorded
        if summary.last_line != recorded.last_line and now >= self._said_at + SAID_INTERVAL:
            self._said_at, recorded.last_line = now, summary.last_line
            events.append(Said(test=self.task.key, line=summary.last_line))
        has_spent = (summary.dollars, summary.tokens) != (recorded.dollars, recorded.tokens)
        if has_spent and now >= self._spent_at + SPENT_INTERVAL:
            self._spent_at, recorded.dollars, recorded.tokens = now, summary.dollars, summary.tokens
            events.append(Spent(test=self.task.key, dollars=summary.dollars, tokens=summary.tokens))
        return events

    def held_back_events(self) -> list[KnownEvent]:
        """Return what the intervals have held back so far."""
        self._said_at = self._spent_at = float("-inf")
        return self._transcript_events(0.0)

    def observe(self, seen: AgentState | None, now: float) -> tuple[Seen | None, End | None]:
        """Return the change of state, or the end, that follows from an observed state; None: there is no such agent."""
        state, times = self._observed
        self._observed = (seen, times + 1 if seen == state else 1)
        self._was_active = self._was_active or seen == "RUNNING"
        if seen == "RUNNING" or seen == "REPLACED":
            return self._change_to(State.RUNNING, now), None
        if self._observed[1] < CONFIRMATIONS:
            return None, None
        if seen == "WAITING":
            is_starting = not self._was_active and now < self.started + self.task.kind.ready_within
            return (None if is_starting else self._change_to(State.WAITING, now)), None
        return None, _END_OF[seen]

    def _change_to(self, state: State, now: float) -> Seen | None:
        if state is self.state:
            return None
        if state is State.WAITING:
            self.waiting_since = now
            self.questions += 1
            question = self._summary.question or self._recorded.last_line
            self.state = state
            return Seen(test=self.task.key, state=State.WAITING, source="process", question=question)
        if self.waiting_since is not None:
            self.waited += now - self.waiting_since
        self.waiting_since = None
        self.state = state
        return Seen(test=self.task.key, state=State.RUNNING, source="process")

    def overdue_end(self, now: float) -> End | None:
        """Return the end of an agent that has worked, or waited for an answer, longer than it may."""
        if self.waiting_since is not None:
            return End.NO_ANSWER if now - self.waiting_since >= self.wait_timeout else None
        return End.TIMEOUT if now - self.started - self.waited >= self.timeout else None


async def read_new_events(place: Place, watches: Sequence[Watch], now: float) -> list[KnownEvent]:
    """Read the files of many agents at once; return the events that follow from what is new in them."""
    searched = [watch for watch in watches if watch.is_searched(now)]
    wanted = [(watch.address, watch.task.kind.transcript_emitters) for watch in searched]
    for watch, path in zip(searched, await find_transcripts(place, wanted), strict=True):
        if path is not None:
            watch.follow_transcript(path)
    requests = [watch.read_requests() for watch in watches]
    slices = iter(await place.read_files([request for of_watch in requests for request in of_watch]))
    events = []
    for watch, of_watch in zip(watches, requests, strict=True):
        events += watch.new_events([next(slices) for _ in of_watch], now)
    return events

"""Turn the files and states of an agent into events."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Final, Literal, Protocol

from msgspec import structs

from swarm_tui.agents.contract import ARCHIVE_PATH, TRIES_PATH
from swarm_tui.agents.judging import AgentEnd
from swarm_tui.agents.observer import AgentObserver, Observation
from swarm_tui.agents.prices import current_prices
from swarm_tui.agents.summary import CallRepeats, TranscriptSummary, billed_tokens
from swarm_tui.agents.types import AgentType
from swarm_tui.files import appending_descriptor
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, AgentState, FileSlice, FoundFile, ReadRequest
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.events import AgentStateChanged
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.work_events import AgentOutput
from swarm_tui.limits.events import ApiError
from swarm_tui.model.event import Event
from swarm_tui.model.questions import ClosedQuestion
from swarm_tui.model.results import State
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.money.events import UsageReported, most_dollars
from swarm_tui.money.prices import dollars_for
from swarm_tui.questions.events import BY_TYPING, QuestionAsked, QuestionClosed
from swarm_tui.sweep.agent_files import CommitLog, FileTail, ObservedFiles, TryReader
from swarm_tui.transcripts.locate import choose_transcript, subagent_logs

SIZE_LIMIT: Final = 500_000_000


class KeptTranscript:
    """A copy of the transcript in the sweep folder that grows with it; pulling the work replaces it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size = -1

    def append(self, lines: Sequence[bytes]) -> None:
        """Append lines. The first ones replace the file, which may be from an earlier launch."""
        content = b"".join(line + b"\n" for line in lines)
        if not content or self._size + len(content) > SIZE_LIMIT:
            return
        is_first = self._size < 0
        # If the disk is full, this copy stays incomplete. Pulling the work brings the whole transcript.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(appending_descriptor(self._path), "ab") as file:
                if is_first:
                    file.truncate(0)
                file.write(content)
        self._size = max(self._size, 0) + len(content)


# A poll may hit the moment in which an agent changes its state, so two polls are necessary.
CONFIRMATIONS: Final = 2
SEARCH_INTERVAL: Final = 1.0
SAID_INTERVAL: Final = 1.0
SPENT_INTERVAL: Final = 5.0
# An agent that keeps writing is not silent, even if its last line stays the same, such as `uses Bash`.
HEARD_INTERVAL: Final = 30.0
# Seconds that an agent may take to finish its last turn after it has submitted its work.
LAST_WORDS_LIMIT: Final = 60.0
# Seconds to wait for the files with the state of an agent that has submitted its work.
UNSEEN_LIMIT: Final = 5.0
# The lines at the end of the screen that may contain a dialog.
DIALOG_LINES: Final = 20
_RULE_LENGTH: Final = 20
# Limits of a subscription last a week at most. Later times in an agent's files are ignored.
LONGEST_LIMIT: Final = 8 * 86_400.0
_Watched = Literal[State.RUNNING, State.WAITING]
_END_OF: Final[dict[AgentState | None, AgentEnd]] = {
    "DONE": AgentEnd.CRASH,
    "STOPPED": AgentEnd.CLOSED,
    None: AgentEnd.GONE,
}


@dataclass(slots=True)
class QuestionTracker:
    """Turns what an agent asks through its hook into events."""

    test: str
    typed_until: float = 0.0
    """When a text was last typed into its terminal, by the wall clock; `inf` while it is being typed."""
    _open: set[str] = field(default_factory=set)
    _recorded_until: float = 0.0
    """An earlier engine has recorded all questions up to this time."""
    _ended: int = 0
    """The number of closed questions that were read."""

    def continue_from(self, record: TestRecord) -> None:
        """Continue where the journal ends."""
        self._open = {each.question.id for each in record.open_questions}
        self._recorded_until = record.questions_until

    def new_events(self, observer: AgentObserver) -> list[Event]:
        """Return the questions that were asked or closed since the last call."""
        events: list[Event] = []
        for ended in islice(observer.closed_questions.values(), self._ended, None):
            self._ended += 1
            if ended.question.id not in self._open and ended.question.at > self._recorded_until:
                events.append(QuestionAsked(test=self.test, question=ended.question))
            elif ended.question.id not in self._open:
                continue
            self._open.discard(ended.question.id)
            events.append(QuestionClosed(test=self.test, question=ended.question.id, why=self._why(ended)))
        for identity, question in observer.open_questions.items():
            if identity not in self._open and question.at > self._recorded_until:
                self._open.add(identity)
                events.append(QuestionAsked(test=self.test, question=question))
        return events

    def _why(self, ended: ClosedQuestion) -> str:
        # If mngr does not soon see that a text has arrived, it presses Enter again, which answers a dialog.
        is_by_keys = ended.why in ("on the screen", "interrupted")
        return BY_TYPING if is_by_keys and ended.question.at <= self.typed_until else ended.why


class WatchedTask(Protocol):
    """The part of an agent's job that is necessary to follow the agent."""

    @property
    def key(self) -> str:
        """The test as named in the journal, or INTEGRATOR_KEY."""

    @property
    def kind(self) -> AgentType: ...


@dataclass(slots=True)
class AgentFollower:
    """Follows one agent. Times are those of the monotonic clock, because the wall clock may jump."""

    task: WatchedTask
    address: AgentAddress
    started: float
    timeout: float
    wait_timeout: float
    is_foreign: bool = False
    """Whether no sweep launched it: it has no work to submit, and no hook that reports its questions."""
    state: _Watched = State.RUNNING
    waiting_since: float | None = None
    excused: float = 0.0
    """How long the agent has waited for the user or for its model. Its time limit excludes that."""
    _excused_since: float | None = None
    questions: int = 0
    kept_transcript: KeptTranscript | None = None
    """Where the transcript is kept if it is on another host or in several files."""
    handed_in_at: float | None = None
    """When the agent's archive was first seen."""
    is_unread: bool = True
    """Whether none of its files was read yet. They are then read even if no change was reported."""
    _tries: FileTail = field(init=False)
    _reader: TryReader = field(init=False)
    _commit_log: CommitLog = field(init=False)
    _transcript: str | None = None
    _logs: dict[str, FileTail] = field(default_factory=dict)
    """The transcript and the logs of subagents, by path."""
    _summary: TranscriptSummary = field(init=False)
    _recorded: TranscriptSummary = field(init=False)
    _observed_files: ObservedFiles | None = field(init=False)
    _asks: QuestionTracker = field(init=False)
    _shown: AgentStateChanged | None = None
    """The last recorded state of the agent."""
    _searched_at: float = float("-inf")
    _own_dollars: float | None = None
    """The last sum that the agent itself reported."""
    _own_tokens: int = 0
    """Its tokens at that time."""
    _said_at: float = float("-inf")
    _spent_at: float = float("-inf")
    _has_written: bool = False
    """Whether its transcript has grown since its last line was recorded."""
    _was_active: bool = False
    _process: tuple[AgentState | None, int] = ("RUNNING", 0)
    """The last state of its process, and how many polls in a row have returned it."""

    def __post_init__(self) -> None:
        self._tries = FileTail(AgentFile(self.address, TRIES_PATH))
        self._reader = TryReader(self.task.key)
        self._commit_log = CommitLog(self.task.key, self.address)
        kind = self.task.kind
        self._summary, self._recorded = kind.new_summary(), kind.new_summary()
        self._asks = QuestionTracker(self.task.key)
        observer = kind.new_observer()
        self._observed_files = ObservedFiles(self.address, observer) if observer is not None else None

    def continue_from(self, record: TestRecord) -> None:
        """Continue where the journal ends, for an agent that an earlier engine followed."""
        self._reader = TryReader(self.task.key, record.tries)
        self._recorded.last_line = record.last_line
        self._commit_log.continue_from(record.commits)
        self._shown = AgentStateChanged(
            test=record.test,
            state=State.RUNNING,
            question=record.question,
            options=record.options,
            status_detail=record.status_detail,
            api_error=record.api_error,
        )
        self._asks.continue_from(record)
        self._was_active = True

    @property
    def observer(self) -> AgentObserver | None:
        """The state of the agent according to its own files."""
        return self._observed_files.observer if self._observed_files is not None else None

    def note_typing(self, until: float) -> None:
        """Set until when text is typed into its terminal, by the wall clock; `inf` while it is being typed."""
        self._asks.typed_until = until

    @property
    def is_unconfirmed(self) -> bool:
        """Whether only one poll has returned the present state of its process, so that it is not certain."""
        return self._process[1] < CONFIRMATIONS

    @property
    def repeats(self) -> CallRepeats:
        """How often the agent has repeated a call."""
        return self._summary.repeats

    @property
    def has_archive(self) -> bool:
        """Whether the agent has submitted its work."""
        return self.handed_in_at is not None

    def is_ready_to_pull(self, now: float, clock: float) -> bool:
        """Return whether the work was submitted and the agent's turn is over. Before that, its log is incomplete."""
        if self.handed_in_at is None:
            return False
        if self.observer is None:
            return True
        observation = self.observer.observe(clock)
        if observation is None:
            # A quick agent may finish before its files are found, above all on other hosts.
            return now >= self.handed_in_at + UNSEEN_LIMIT
        return not self.is_mid_turn(clock) or now >= self.handed_in_at + LAST_WORDS_LIMIT

    def is_mid_turn(self, clock: float) -> bool:
        """Return whether the agent or one of its subagents is still working or asks a question."""
        observation = self.observer.observe(clock) if self.observer is not None else None
        if self.observer is None or observation is None:
            return False
        is_over = observation.needs_user or has_given_up(observation.api_error)
        return not is_over or bool(self.observer.open_questions)

    def is_searched(self, now: float) -> bool:
        """Return whether it is time to search for the agent's files."""
        has_all = self._transcript is not None and self._observed_files is None
        is_due = not has_all and now >= self._searched_at + SEARCH_INTERVAL
        if is_due:
            self._searched_at = now
        return is_due

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of the files to search for."""
        observed = self._observed_files.observer.files if self._observed_files is not None else ()
        return (*self.task.kind.transcript_sources.patterns, *(file.pattern for file in observed))

    def set_found_files(self, files: Sequence[FoundFile]) -> None:
        """Follow the files that were found."""
        paths, sources = [file.path for file in files], self.task.kind.transcript_sources
        if self._transcript is None or self._transcript not in paths:
            self._transcript = choose_transcript(paths, sources, self.address.agent_id)
        if self._transcript is not None:
            for path in (self._transcript, *subagent_logs(paths, sources, self._transcript)):
                self._logs.setdefault(path, FileTail(AgentFile(self.address, path)))
        if self._observed_files is not None:
            self._observed_files.set_found(files)

    def read_requests(self) -> list[ReadRequest]:
        """Return the next reads of the agent's files."""
        observed = self._observed_files.requests() if self._observed_files is not None else []
        logs = [log.request for log in self._logs.values()]
        archive = ReadRequest(AgentFile(self.address, ARCHIVE_PATH))
        return [archive, self._tries.request, self._commit_log.request, *logs, *observed]

    def new_events(self, slices: Sequence[FileSlice | None], now: float) -> list[Event]:
        """Return the events in the answers to `read_requests`."""
        rest = iter(slices)
        self.is_unread = False
        has_archive = next(rest) is not None
        self.handed_in_at = (self.handed_in_at or now) if has_archive else None
        events: list[Event] = list(self._reader.read(self._tries.read_lines(next(rest))))
        events += self._commit_log.read(next(rest), now)
        for log in self._logs.values():
            lines = log.read_lines(next(rest))
            self._has_written = self._has_written or bool(lines)
            self._summary.read(lines)
            if self.kept_transcript is not None:
                self.kept_transcript.append(lines)
        if self._observed_files is not None:
            self._observed_files.read(rest)
            events += self._asks.new_events(self._observed_files.observer)
        return events + self._transcript_events(now)

    def _transcript_events(self, now: float) -> list[Event]:
        events: list[Event] = []
        summary, recorded = self._summary, self._recorded
        is_new = summary.last_line != recorded.last_line
        if (is_new and now >= self._said_at + SAID_INTERVAL) or (
            self._has_written and now >= self._said_at + HEARD_INTERVAL
        ):
            self._has_written = False
            self._said_at, recorded.last_line = now, summary.last_line
            events.append(AgentOutput(test=self.task.key, line=summary.last_line))
        models = self.observer.models if self.observer is not None else ()
        if models:
            summary.models, summary.tokens = models, billed_tokens(models)
        dollars = self._dollars()
        has_spent = (dollars, summary.tokens) != (recorded.dollars, recorded.tokens)
        if has_spent and now >= self._spent_at + SPENT_INTERVAL:
            self._spent_at, recorded.dollars, recorded.tokens = now, dollars, summary.tokens
            spent = UsageReported(test=self.task.key, dollars=dollars, tokens=summary.tokens, models=summary.models)
            events.append(spent)
        return events

    def _dollars(self) -> float | None:
        """Return what the agent has spent: the sum of its log, or its own sum, which comes later and is complete.

        Its own sum is ignored if its tokens cannot cost that much, because the agent can write that line.
        """
        own = self.observer.dollars if self.observer is not None else None
        models, summed = self._summary.models, self._summary.dollars
        if summed is None and self.observer is not None and self.observer.models:
            summed = dollars_for(current_prices(), models)
        if own != self._own_dollars:
            self._own_dollars, self._own_tokens = own, billed_tokens(models)
        if summed is None and billed_tokens(models) > self._own_tokens:
            # Its own sum is of an earlier turn, and the price of a model is unknown.
            return None
        if own is None or own > most_dollars(self._summary.models):
            return summed
        return max(own, summed or 0.0)

    def held_back_events(self) -> list[Event]:
        """Return the events that the intervals have held back."""
        self._said_at = self._spent_at = float("-inf")
        return self._transcript_events(0.0)

    def observe(
        self, process: AgentState | None, now: float, clock: float, screen: str | None = None
    ) -> tuple[AgentStateChanged | None, AgentEnd | None]:
        """Return the change of state, or the end, that follows from the state of the agent's process.

        While the process lives, the agent's own files take precedence. `process` is None for an agent that does not
        exist; `clock` is the time since 1970, and `screen` the content of its terminal.
        """
        state, times = self._process
        self._process = (process, times + 1 if process == state else 1)
        self._was_active = self._was_active or process == "RUNNING"
        if self.has_archive and process in ("RUNNING", "WAITING"):
            return None, None
        if process in ("RUNNING", "WAITING") and (observation := self._observation(clock, screen)):
            return self._record_observation(observation, now), None
        if process == "RUNNING" or process == "REPLACED":
            return self._record_observation(Observation(False, "process"), now), None
        if self._process[1] < CONFIRMATIONS:
            return None, None
        if process == "WAITING":
            is_starting = not self._was_active and now < self.started + self.task.kind.ready_within
            question = self._summary.question or self._recorded.last_line
            waiting = Observation(True, "process", question)
            return (None if is_starting else self._record_observation(waiting, now)), None
        return None, _END_OF[process]

    def needs_screen(self, now: float, clock: float) -> bool:
        """Return whether only its terminal can show its state: a dialog may be open since its start."""
        kind = self.task.kind
        if self._observed_files is None or not kind.dialog_signs or now < self.started + kind.ready_within:
            return False
        return self._observed_files.observer.observe(clock) is None

    def _observation(self, clock: float, screen: str | None) -> Observation | None:
        if self._observed_files is None:
            return None
        observation = self._observed_files.observer.observe(clock)
        if observation is None and screen is not None:
            dialog = find_dialog(screen, self.task.kind.dialog_signs)
            return Observation(True, "screen", dialog, needs_terminal=True) if dialog else None
        if observation is not None and self.is_foreign:
            observation = self._in_its_words(observation)
        if observation is None or observation.api_error is None:
            return observation
        until = observation.api_error.until or self._summary.limited_until
        is_sensible = until is not None and clock < until < clock + LONGEST_LIMIT
        api_error = structs.replace(observation.api_error, until=until if is_sensible else None)
        return replace(observation, api_error=api_error)

    def _in_its_words(self, observation: Observation) -> Observation:
        """Return an observation from its session file with the question in its transcript."""
        if not observation.needs_user or observation.source != "session file":
            return observation
        if observation.needs_terminal:
            asked = f": {self._summary.asked}" if self._summary.asked else ""
            return replace(observation, question=observation.question + asked)
        return replace(observation, question=self._summary.question or "its turn is over")

    def _record_observation(self, observation: Observation, now: float) -> AgentStateChanged | None:
        """Return the event of an observation, or None if nothing has changed."""
        state: _Watched = State.WAITING if observation.needs_user else State.RUNNING
        seen = AgentStateChanged(
            test=self.task.key,
            state=state,
            source=observation.source,
            question=observation.question,
            options=observation.options,
            status_detail=observation.status_detail,
            api_error=observation.api_error,
            needs_terminal=observation.needs_terminal,
        )
        shown = self._shown or AgentStateChanged(test=self.task.key, state=self.state, source=observation.source)
        if state is self.state and seen == structs.replace(shown, source=seen.source):
            return None
        if state is State.WAITING and self.state is not State.WAITING:
            self.waiting_since = now
            self.questions += 1
        elif state is State.RUNNING:
            self.waiting_since = None
        self._excuse(state is State.WAITING or observation.api_error is not None, now)
        self.state, self._shown = state, seen
        return seen

    def _excuse(self, is_excused: bool, now: float) -> None:
        """Start or stop excluding time from the time limit."""
        if is_excused:
            self._excused_since = self._excused_since or now
        elif self._excused_since is not None:
            self.excused += now - self._excused_since
            self._excused_since = None

    def last_api_error(self, clock: float) -> ApiError | None:
        """Return the API error that the agent had at the last poll."""
        observation = self.observer.observe(clock) if self.observer is not None else None
        if observation is not None:
            return observation.api_error
        return self._shown.api_error if self._shown is not None else None

    def overdue_end(self, now: float) -> AgentEnd | None:
        """Return the end of an agent that has exceeded its time limit, or its limit for waiting."""
        if self.waiting_since is not None:
            return AgentEnd.NO_ANSWER if now - self.waiting_since >= self.wait_timeout else None
        excused = self.excused + (now - self._excused_since if self._excused_since is not None else 0.0)
        return AgentEnd.TIMEOUT if now - self.started - excused >= self.timeout else None


def has_given_up(api_error: ApiError | None) -> bool:
    return api_error is not None and api_error.has_given_up


def find_dialog(screen: str, signs: Sequence[str]) -> str:
    """Return the text of a dialog at the end of a screen, up to the first line that only a dialog has; "" without one.

    The dialog begins below a horizontal line. Without one, only the recognized line is returned.
    """
    lines = [line.strip() for line in plain_lines(screen).rstrip().split("\n")[-DIALOG_LINES:]]
    end = next((place for place, line in enumerate(lines) if any(re.search(sign, line) for sign in signs)), None)
    if end is None:
        return ""
    above = [place for place, line in enumerate(lines[:end]) if len(line) >= _RULE_LENGTH and not line.strip("─╌━═")]
    begin = above[-1] + 1 if above else end
    return plain(" · ".join(line for line in lines[begin : end + 1] if line), 200)


async def read_new_events(hosts: Hosts, watches: Sequence[AgentFollower], now: float) -> list[Event]:
    """Read the files of many agents at once, and return the events in their new content."""
    searched = [watch for watch in watches if watch.is_searched(now)]
    if searched:
        patterns = tuple(dict.fromkeys(pattern for watch in searched for pattern in watch.patterns))
        found = await hosts.find_files([watch.address for watch in searched], patterns, follow=True)
        for watch, files in zip(searched, found, strict=True):
            watch.set_found_files(files)
    requests = [watch.read_requests() for watch in watches]
    slices = iter(await hosts.read_files([one for of_watch in requests for one in of_watch], follow=True))
    events = []
    for watch, of_watch in zip(watches, requests, strict=True):
        events += watch.new_events([next(slices) for _ in of_watch], now)
    return events

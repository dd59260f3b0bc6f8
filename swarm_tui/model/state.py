"""What a sweep is at one moment: the result of folding its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from swarm_tui.model.asks import OpenAsk
from swarm_tui.model.baseline import Baseline
from swarm_tui.model.edits import FileEdit
from swarm_tui.model.failure import FailureDetail
from swarm_tui.model.harvest import NOT_HARVESTED, HarvestReport
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.revision import Revision
from swarm_tui.model.spending import NOTHING_SPENT, ModelTokens, Spending, spending_of_agent
from swarm_tui.model.states import FINISHED_STATES, HINDERED, Result, State, mark_of
from swarm_tui.model.trouble import Trouble


class Try(NamedTuple):
    """One pytest run that the agent made of its test."""

    number: int
    passed: bool | None
    """None while it runs."""
    seconds: float
    at: float
    failure: str = ""
    outcome: str = ""
    """pytest's own word: passed, failed, skipped, xfailed or xpassed; empty in older journals and while it runs."""
    reruns: int = 0
    """How often a plugin of the project ran the test again before that."""
    detail: FailureDetail | None = None

    @property
    def word(self) -> str:
        """The word by which it is shown: runs, passed, skipped or failed."""
        if self.passed is None:
            return "runs"
        return "passed" if self.passed else "skipped" if self.outcome == "skipped" else "failed"


class TestRecord(NamedTuple):
    """Everything that is known of one test. Each change makes a new record, so that caches can compare by identity.

    A NamedTuple: a sweep of 10,000 tests makes 200,000 of these, and a frozen dataclass takes four times as long.
    """

    test: str
    agent: str = ""
    branch: str = ""
    file: str = ""
    line: int = 0
    block: str = ""
    group: str = ""
    """Of tests in the same group, only one has an agent at work."""
    baseline: Baseline = Baseline.UNKNOWN
    """What it came to in fresh copies, before any agent was launched."""
    number: int = 0
    """The number of its agent among those that live."""
    state: State = State.QUEUED
    result: Result | None = None
    reason: str = ""
    source: str = "queue"
    """The source of the state: queue, engine, process, live tries, archive, person, mngr list."""
    since: float = 0.0
    launched_at: float | None = None
    ended_at: float | None = None
    attempt: int = 0
    agent_id: str = ""
    host: str = ""
    work_dir: str = ""
    state_dir: str = ""
    own_folder: str = ""
    tries: tuple[Try, ...] = ()
    harvest: HarvestReport = NOT_HARVESTED
    foreign_imports: tuple[str, ...] = ()
    question: str = ""
    options: tuple[str, ...] = ()
    condition: str = ""
    last_line: str = ""
    dollars: float | None = None
    tokens: int | None = None
    stale_since: float | None = None
    is_held: bool = False
    last_line_at: float = 0.0
    """When the agent last wrote something."""
    spent_before: Spending = NOTHING_SPENT
    """What the agents of earlier attempts have used."""
    over_budget_at: float | None = None
    """When the agent was asked to hand in, because it had used up what one agent may cost."""
    edits: tuple[FileEdit, ...] = ()
    """What the agent has changed so far, as far as is known."""
    held_for: str = ""
    """The cause that the breaker holds it for, until a person releases it."""
    traits: tuple[str, ...] = ()
    """What the test may share with others, in words: `fixture db`, `marker slow`, `parameter size=3`."""
    trouble: Trouble | None = None
    """Why its model does not answer."""
    trouble_at: float = 0.0
    """When it last was seen in trouble."""
    needs_terminal: bool = False
    """Whether what it waits for can only be answered at its terminal."""
    asks: tuple[OpenAsk, ...] = ()
    """What it asks through its hook, the oldest first."""
    asked_until: float = 0.0
    """When the newest of its asks so far was made."""
    commits: int = 0
    tokens_at_progress: int = 0
    """What the agent had used when it last began a try or made a commit."""
    stuck: str = ""
    """Why the agent does not get on."""
    revision: Revision | None = None
    """What of its work a person has sent back, for this agent to do anew."""
    is_nudged: bool = False
    """Whether it was told so."""
    models: tuple[ModelTokens, ...] = ()
    """The agent's tokens by model, where it says so."""
    is_guessed: bool = False
    """Whether the id of the test is not known, and its name only guessed from its agent's."""

    @property
    def mark(self) -> str:
        """The word under which this test is shown and counted."""
        return HINDERED if self.is_hindered else mark_of(self.state, self.result)

    @property
    def is_hindered(self) -> bool:
        """Whether the agent is at work, and its model does not answer."""
        return self.trouble is not None and self.state is State.RUNNING

    @property
    def spending(self) -> Spending:
        """What all agents of this test have used."""
        return self.spent_before.plus(spending_of_agent(self.dollars, self.tokens, self.models))

    @property
    def own_places(self) -> dict[str, str]:
        """What is the agent's own, by the names that it has where agents ask alike, and in rules."""
        return {"COPY": self.work_dir, "OWN": self.own_folder, "BRANCH": self.branch}

    @property
    def state_dir_here(self) -> str:
        """mngr's folder of the agent if it is on this machine, else nothing."""
        return self.state_dir if self.host in ("", LOCAL_HOST) else ""

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED_STATES


@dataclass(frozen=True, slots=True)
class Integration:
    """Where the integrated branch stands."""

    state: str = "none"
    """none, integrating, done, failed"""
    branch: str | None = None
    tip: str = ""
    fixes: int = 0
    left_out: int = 0
    detail: str = ""
    at: float | None = None
    started_at: float | None = None
    last_line: str = ""
    """What the integrator said last, while it works."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of the log that people read."""

    at: float
    level: str
    text: str
    test: str = ""

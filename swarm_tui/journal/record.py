"""The record of one test in the state of a sweep."""

from __future__ import annotations

from typing import Final

import msgspec

from swarm_tui.integrator.events import Revision
from swarm_tui.journal.work_events import FileEdit, Try
from swarm_tui.limits.events import ApiError
from swarm_tui.model.pulled import NOT_PULLED, PulledWork
from swarm_tui.model.questions import OpenQuestion
from swarm_tui.model.results import API_ERROR, FINISHED_STATES, Baseline, Result, State, mark_of
from swarm_tui.model.spec import LOCAL_HOST
from swarm_tui.money.events import NOTHING_SPENT, ModelTokens, Spending, spending_of_agent

NAMES: Final = ("test", "agent", "branch", "file", "line", "block", "group", "baseline", "traits")
"""Fields that both sweep.json and the `queued` event contain."""


class TestRecord(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The state of one test and its agent. Each change creates a new record, so that caches can compare by identity.

    A record contains no cycles, so the garbage collector does not track it. That halves the time of a long fold.
    """

    __test__ = False

    test: str
    agent: str = ""
    branch: str = ""
    file: str = ""
    line: int = 0
    block: str = ""
    group: str = ""
    """Only one test of a group has a running agent at any time."""
    baseline: Baseline = Baseline.UNKNOWN
    number: int = 0
    """The number of its agent, unique among the live agents."""
    state: State = State.QUEUED
    result: Result | None = None
    reason: str = ""
    source: str = "queue"
    """The source of the state: queue, engine, process, live tries, archive, person, mngr list."""
    since: float = 0.0
    launched_at: float | None = None
    ended_at: float | None = None
    launch: int = 0
    agent_id: str = ""
    host: str = ""
    work_dir: str = ""
    state_dir: str = ""
    agent_dir: str = ""
    tries: tuple[Try, ...] = ()
    pulled: PulledWork = NOT_PULLED
    foreign_imports: tuple[str, ...] = ()
    question: str = ""
    options: tuple[str, ...] = ()
    status_detail: str = ""
    last_line: str = ""
    dollars: float | None = None
    tokens: int | None = None
    stale_since: float | None = None
    is_held: bool = False
    last_line_at: float = 0.0
    """When the agent last wrote output."""
    spent_before: Spending = NOTHING_SPENT
    """The usage of the agents of earlier launches."""
    over_budget_at: float | None = None
    """When the agent was asked to submit because it reached the limit for one agent."""
    edits: tuple[FileEdit, ...] = ()
    """The lines that the agent has changed, as of the last check."""
    held_for: str = ""
    """The cause of the alert that holds the test, until the user releases it."""
    traits: tuple[str, ...] = ()
    """Properties that tests can have in common: `fixture db`, `marker slow`, `parameter size=3`."""
    api_error: ApiError | None = None
    """The API error of the agent, if any."""
    api_error_at: float = 0.0
    """When the agent last had an API error."""
    needs_terminal: bool = False
    """Whether its question can be answered only in its terminal."""
    open_questions: tuple[OpenQuestion, ...] = ()
    """The open questions from its hook, oldest first."""
    questions_until: float = 0.0
    """The time of its newest question so far."""
    commits: int = 0
    tokens_at_progress: int = 0
    """The tokens it had used at its last try or commit."""
    stuck: str = ""
    """Why the agent is stuck; empty if it is not."""
    revision: Revision | None = None
    """The fix that the user sent back for this agent to revise."""
    note: str = ""
    """The user's note for this agent, given with a retry."""
    is_nudged: bool = False
    """Whether a message told the agent that it is stuck."""
    models: tuple[ModelTokens, ...] = ()
    """The agent's tokens by model, if reported."""

    @property
    def mark(self) -> str:
        """The name of the mark that this test is shown with and counted under."""
        return API_ERROR if self.has_api_error else mark_of(self.state, self.result)

    @property
    def has_api_error(self) -> bool:
        """Whether the agent is running and has an API error."""
        return self.api_error is not None and self.state is State.RUNNING

    @property
    def spending(self) -> Spending:
        """The usage of all agents of this test."""
        return self.spent_before.plus(spending_of_agent(self.dollars, self.tokens, self.models))

    @property
    def own_places(self) -> dict[str, str]:
        """The agent's own paths and branch, by the names that replace them in rules and groups of questions."""
        return {"COPY": self.work_dir, "OWN": self.agent_dir, "BRANCH": self.branch}

    @property
    def state_dir_here(self) -> str:
        """mngr's state folder of the agent if the agent runs on this machine, otherwise ""."""
        return self.state_dir if self.host in ("", LOCAL_HOST) else ""

    @property
    def is_finished(self) -> bool:
        return self.state in FINISHED_STATES

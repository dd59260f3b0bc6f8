"""The event types of the journal, events.jsonl: one line is one event.

`launching` is written before an agent is created and `launched` afterwards. If the engine crashes in between, the next
engine looks for the agent.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from swarm_tui.model.api_error_events import Committed as Committed
from swarm_tui.model.api_error_events import DialTurned as DialTurned
from swarm_tui.model.api_error_events import LoginLost as LoginLost
from swarm_tui.model.api_error_events import LoginRestored as LoginRestored
from swarm_tui.model.api_error_events import Stuck as Stuck
from swarm_tui.model.api_errors import ApiError
from swarm_tui.model.edits import FileEdit
from swarm_tui.model.event import Event as Event
from swarm_tui.model.event import TestEvent as TestEvent
from swarm_tui.model.failures import FailureDetail
from swarm_tui.model.money import ModelTokens
from swarm_tui.model.pulled import ClaimCheck, PulledWork
from swarm_tui.model.questions import AskAnswered as AskAnswered
from swarm_tui.model.questions import AskClosed as AskClosed
from swarm_tui.model.questions import Asked as Asked
from swarm_tui.model.questions import RuleEnded as RuleEnded
from swarm_tui.model.questions import RuleMade as RuleMade
from swarm_tui.model.results import Baseline, Result, State
from swarm_tui.model.revision import Revision


class EngineStarted(Event, frozen=True):
    """An engine started or resumed the sweep."""

    pid: int
    machine: str = ""
    version: str = ""
    is_resumed: bool = False
    slots: int = 0
    budget: float = 0.0
    """Dollars for the whole sweep; 0 means unlimited."""
    budget_each: float = 0.0


class EngineEnded(Event, frozen=True):
    """The engine exited."""

    why: Literal["finished", "stopped", "failed"] = "finished"
    reason: str = ""


class Queued(TestEvent, frozen=True):
    """A test is waiting for a slot. The first such event of a test adds it to the sweep."""

    agent: str = ""
    branch: str = ""
    file: str = ""
    line: int = 0
    block: str = ""
    group: str = ""
    baseline: Baseline = Baseline.UNKNOWN
    reason: str = ""
    traits: tuple[str, ...] = ()
    """Properties that tests can have in common: `fixture db`, `marker slow`, `parameter size=3`."""
    revision: Revision | None = None
    """The fix that was sent back, if the agent continues earlier work."""
    note: str = ""
    """The user's note for the new agent of a test that is retried."""


class Launching(TestEvent, frozen=True):
    """`mngr create` is about to be called."""

    attempt: int = 1
    number: int = 0
    """The agent's number, unique among the live agents; 0 for none."""
    host: str = ""
    """The host of the agent; empty in journals of versions without hosts."""


class Launched(TestEvent, frozen=True):
    """The agent exists."""

    agent_id: str = ""
    host: str = ""
    work_dir: str = ""
    state_dir: str = ""
    own_folder: str = ""
    """The folder with the agent's task file and interpreter, as a path on its host."""
    is_adopted: bool = False


class LaunchFailed(TestEvent, frozen=True):
    """`mngr create` failed. It is repeated unless `is_final`."""

    reason: str
    attempt: int = 1
    is_final: bool = False


class Seen(TestEvent, frozen=True):
    """The state of the agent changed; `source` names the source of the information."""

    state: State
    """Running or waiting."""
    source: str = "process"
    question: str = ""
    options: tuple[str, ...] = ()
    """The options of the question, if any."""
    condition: str = ""
    """Details of the state, such as an API request that is being retried."""
    trouble: ApiError | None = None
    """The API error, if any."""
    needs_terminal: bool = False
    """Whether the agent shows a dialog that can be answered only in its terminal."""

    def __post_init__(self) -> None:
        if self.state not in (State.RUNNING, State.WAITING):
            raise ValueError(f"invalid state of an agent: {self.state.value}")


class ProbeFailed(Event, frozen=True):
    """A poll of the agents of these tests (all tests if empty) failed, so their states are stale."""

    tests: tuple[str, ...] = ()
    reason: str = ""


class ProbeRecovered(Event, frozen=True):
    """Polls of the agents of these tests (all tests if empty) succeed again."""

    tests: tuple[str, ...] = ()


class HostSeen(Event, frozen=True):
    """A host answered a poll; written at most twice a minute for each host."""

    host: str
    load: float = 0.0
    """The load average over one minute."""
    processors: int = 0


class HostLost(Event, frozen=True):
    """A host does not answer. The states of its agents are stale and stay as they are."""

    host: str
    reason: str = ""


class HostBack(Event, frozen=True):
    """A host answers again, and its agents are polled again."""

    host: str
    seconds: float = 0.0
    """How long it did not answer."""


class HostGone(Event, frozen=True):
    """A host was given up because it did not answer for too long. Its tests are queued for other hosts, or fail."""

    host: str
    reason: str = ""


class HostMaking(Event, frozen=True):
    """mngr is about to create a host with this name."""

    host: str


class HostMade(Event, frozen=True):
    """A new host was created and is reachable by ssh. An idle agent, the keeper, keeps it from being stopped."""

    host: str
    host_id: str = ""
    keeper: str = ""
    """The keeper's agent id."""
    access: dict[str, Any] = msgspec.field(default_factory=dict)
    """The fields of `HostSettings`."""


class HostEnded(Event, frozen=True):
    """A host that was created for the sweep was destroyed, or could not be created."""

    host: str
    reason: str = ""
    is_failed: bool = False


class TryStarted(TestEvent, frozen=True):
    """The agent started a pytest run of its test, as reported by the live plugin."""

    number: int = 1


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


class Edited(TestEvent, frozen=True):
    """The set of lines that the agent has changed, committed or not, is different from the last check."""

    edits: tuple[FileEdit, ...] = ()


class ForeignImports(TestEvent, frozen=True):
    """The test ran against modules of the user's checkout instead of the agent's copy."""

    modules: tuple[str, ...] = ()


class Said(TestEvent, frozen=True):
    """The last line of the agent's output; written at most once a second for each test."""

    line: str


class Spent(TestEvent, frozen=True):
    """The usage of the agent so far."""

    dollars: float | None = None
    tokens: int | None = None
    models: tuple[ModelTokens, ...] = ()


class Harvesting(TestEvent, frozen=True):
    """The agent has finished, and its work is being pulled."""

    source: str = "archive"


class Harvested(TestEvent, frozen=True):
    """The agent's work was pulled into the sweep folder as far as possible, and its result was determined."""

    result: Result
    reason: str = ""
    harvest: PulledWork = PulledWork()


class ClaimChecked(TestEvent, frozen=True):
    """swarm-tui ran a test on the commit that its agent submitted, or could not run it."""

    result: Result
    check: ClaimCheck
    reason: str = ""


class Stopped(TestEvent, frozen=True):
    """A test was stopped before it finished, by the user or with the sweep. It can be retried or resumed."""

    reason: str = ""
    source: str = "person"
    """Who stopped it, or the source that reported it as stopped."""


class AgentsStopped(Event, frozen=True):
    """Agents were stopped after their work was pulled."""

    agents: tuple[str, ...] = ()


class SlotsChanged(Event, frozen=True):
    """The number of slots, which are the agents that may run at the same time, was changed."""

    slots: int


class BudgetChanged(Event, frozen=True):
    """The user changed the budget of the sweep or of each agent. None keeps a limit, 0 removes it."""

    total: float | None = None
    each: float | None = None
    by: str = ""


class BudgetSpent(Event, frozen=True):
    """A percentage of the budget was reached. At 100 nothing is launched until the budget is changed."""

    percent: Literal[80, 100]
    dollars: float
    budget: float


class BudgetBlind(Event, frozen=True):
    """The budget cannot be enforced because agents use a model with an unknown price."""

    tokens: int = 0


class CheckoutChanged(Event, frozen=True):
    """The user's repository has changed since before launch, and swarm-tui did not change it."""

    changes: tuple[str, ...]
    """All changes so far, one sentence each."""


class OverBudget(TestEvent, frozen=True):
    """An agent reached the limit for one agent, and is asked to submit its work."""

    dollars: float
    budget: float


class PatternRaised(Event, frozen=True):
    """The number of tests with the same cause reached `--alert`; recorded once for each cause."""

    cause: str
    tests: tuple[str, ...] = ()
    shared: str = ""
    """What these tests have in common, and the other tests do not."""


class QueueHeld(Event, frozen=True):
    """The queue, or only the named tests, will not be launched until released."""

    tests: tuple[str, ...] = ()
    reason: str = ""
    cause: str = ""
    """The cause of the alert; empty if the user holds the tests."""


class QueueReleased(Event, frozen=True):
    """The queue, or the named tests, may be launched again."""

    tests: tuple[str, ...] = ()


class MessageSent(TestEvent, frozen=True):
    """A message was typed into the agent's pane."""

    text: str = ""
    by: str = ""
    error: str = ""


class RequestAnswered(Event, frozen=True):
    """The engine carried out a request, or refused it with a reason."""

    request: str
    is_done: bool = True
    detail: str = ""


class Integrating(Event, frozen=True):
    """The integrator started."""

    by: str = "builtin"
    branches: int = 0
    agent: str = ""
    """The name of the integrating agent, which has its own events; empty for the built-in integrator."""
    branch: str = ""
    attempt: int = 0
    """The number of agents that integrated this sweep before."""


class IntegratorSaid(Event, frozen=True):
    """A line of progress from the integrator."""

    line: str = ""


class Integrated(Event, frozen=True):
    """The integrated branch was created."""

    branch: str | None = None
    tip: str = ""
    fixes: int = 0
    left_out: int = 0
    detail: str = ""
    by: str = ""
    """Who created the branch: builtin or agent."""
    refused: str = ""
    """Why the branch of the integrating agent is not used."""
    problems: tuple[str, ...] = ()
    """Problems of the branch: conflict markers, and tests that passed before and fail on it."""


class IntegrationFailed(Event, frozen=True):
    """The integration failed. It can be repeated with `swarm-tui integrate`."""

    reason: str = ""


class Noted(Event, frozen=True):
    """A line for the log, about one test or the whole sweep."""

    level: Literal["info", "warning", "error"] = "info"
    text: str = ""
    test: str = ""


class UnknownEvent(Event, frozen=True):
    """An event whose type this version does not support."""

    name: str = "unknown"

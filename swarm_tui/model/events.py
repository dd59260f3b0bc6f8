"""The event types of the journal, events.jsonl: one line is one event.

`launching` is written before an agent is created and `launched` afterwards. If the engine crashes in between, the next
engine looks for the agent.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from swarm_tui.model.api_error_events import Committed as Committed
from swarm_tui.model.api_error_events import DialTurned as DialTurned
from swarm_tui.model.api_error_events import LoginLost as LoginLost
from swarm_tui.model.api_error_events import LoginRestored as LoginRestored
from swarm_tui.model.api_error_events import Stuck as Stuck
from swarm_tui.model.api_errors import ApiError
from swarm_tui.model.edits import FileEdit
from swarm_tui.model.event_base import EventBase as EventBase
from swarm_tui.model.event_base import TestEvent as TestEvent
from swarm_tui.model.failures import FailureDetail
from swarm_tui.model.money import ModelTokens
from swarm_tui.model.questions import AskAnswered as AskAnswered
from swarm_tui.model.questions import AskClosed as AskClosed
from swarm_tui.model.questions import Asked as Asked
from swarm_tui.model.questions import RuleEnded as RuleEnded
from swarm_tui.model.questions import RuleMade as RuleMade
from swarm_tui.model.report import ClaimCheck, PulledWork
from swarm_tui.model.results import Baseline, Result, State
from swarm_tui.model.revision import Revision


class EngineStarted(EventBase):
    """An engine started or resumed the sweep."""

    type: Literal["engine_started"] = "engine_started"
    pid: int
    machine: str = ""
    version: str = ""
    is_resumed: bool = False
    slots: int = 0
    budget: float = 0.0
    """Dollars for the whole sweep; 0 means unlimited."""
    budget_each: float = 0.0


class EngineEnded(EventBase):
    """The engine exited."""

    type: Literal["engine_ended"] = "engine_ended"
    why: Literal["finished", "stopped", "failed"] = "finished"
    reason: str = ""


class Queued(TestEvent):
    """A test is waiting for a slot. The first such event of a test adds it to the sweep."""

    type: Literal["queued"] = "queued"
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


class Launching(TestEvent):
    """`mngr create` is about to be called."""

    type: Literal["launching"] = "launching"
    attempt: int = 1
    number: int = 0
    """The agent's number, unique among the live agents; 0 for none."""
    host: str = ""
    """The host of the agent; empty in journals of versions without hosts."""


class Launched(TestEvent):
    """The agent exists."""

    type: Literal["launched"] = "launched"
    agent_id: str = ""
    host: str = ""
    work_dir: str = ""
    state_dir: str = ""
    own_folder: str = ""
    """The folder with the agent's task file and interpreter, as a path on its host."""
    is_adopted: bool = False


class LaunchFailed(TestEvent):
    """`mngr create` failed. It is repeated unless `is_final`."""

    type: Literal["launch_failed"] = "launch_failed"
    reason: str
    attempt: int = 1
    is_final: bool = False


class Seen(TestEvent):
    """The state of the agent changed; `source` names the source of the information."""

    type: Literal["seen"] = "seen"
    state: Literal[State.RUNNING, State.WAITING]
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


class ProbeFailed(EventBase):
    """A poll of the agents of these tests (all tests if empty) failed, so their states are stale."""

    type: Literal["probe_failed"] = "probe_failed"
    tests: tuple[str, ...] = ()
    reason: str = ""


class ProbeRecovered(EventBase):
    """Polls of the agents of these tests (all tests if empty) succeed again."""

    type: Literal["probe_recovered"] = "probe_recovered"
    tests: tuple[str, ...] = ()


class HostSeen(EventBase):
    """A host answered a poll; written at most twice a minute for each host."""

    type: Literal["host_seen"] = "host_seen"
    host: str
    load: float = 0.0
    """The load average over one minute."""
    processors: int = 0


class HostLost(EventBase):
    """A host does not answer. The states of its agents are stale and stay as they are."""

    type: Literal["host_lost"] = "host_lost"
    host: str
    reason: str = ""


class HostBack(EventBase):
    """A host answers again, and its agents are polled again."""

    type: Literal["host_back"] = "host_back"
    host: str
    seconds: float = 0.0
    """How long it did not answer."""


class HostGone(EventBase):
    """A host was given up because it did not answer for too long. Its tests are queued for other hosts, or fail."""

    type: Literal["host_gone"] = "host_gone"
    host: str
    reason: str = ""


class HostMaking(EventBase):
    """mngr is about to create a host with this name."""

    type: Literal["host_making"] = "host_making"
    host: str


class HostMade(EventBase):
    """A new host was created and is reachable by ssh. An idle agent, the keeper, keeps it from being stopped."""

    type: Literal["host_made"] = "host_made"
    host: str
    host_id: str = ""
    keeper: str = ""
    """The keeper's agent id."""
    access: dict[str, Any] = Field(default_factory=dict)
    """The fields of `HostSettings`."""


class HostEnded(EventBase):
    """A host that was created for the sweep was destroyed, or could not be created."""

    type: Literal["host_ended"] = "host_ended"
    host: str
    reason: str = ""
    is_failed: bool = False


class TryStarted(TestEvent):
    """The agent started a pytest run of its test, as reported by the live plugin."""

    type: Literal["try_started"] = "try_started"
    number: int = 1


class TryFinished(TestEvent):
    """A pytest run of the test finished."""

    type: Literal["try_finished"] = "try_finished"
    number: int = 1
    passed: bool
    seconds: float = 0.0
    failure: str = ""
    outcome: str = ""
    reruns: int = 0
    detail: FailureDetail | None = None
    """None in journals of older versions, and if pytest gave no details."""


class Edited(TestEvent):
    """The set of lines that the agent has changed, committed or not, is different from the last check."""

    type: Literal["edited"] = "edited"
    edits: tuple[FileEdit, ...] = ()


class ForeignImports(TestEvent):
    """The test ran against modules of the user's checkout instead of the agent's copy."""

    type: Literal["foreign_imports"] = "foreign_imports"
    modules: tuple[str, ...] = ()


class Said(TestEvent):
    """The last line of the agent's output; written at most once a second for each test."""

    type: Literal["said"] = "said"
    line: str


class Spent(TestEvent):
    """The usage of the agent so far."""

    type: Literal["spent"] = "spent"
    dollars: float | None = None
    tokens: int | None = None
    models: tuple[ModelTokens, ...] = ()


class Harvesting(TestEvent):
    """The agent has finished, and its work is being pulled."""

    type: Literal["harvesting"] = "harvesting"
    source: str = "archive"


class Harvested(TestEvent):
    """The agent's work was pulled into the sweep folder as far as possible, and its result was determined."""

    type: Literal["harvested"] = "harvested"
    result: Result
    reason: str = ""
    harvest: PulledWork = PulledWork()

    @model_validator(mode="before")
    @classmethod
    def _nest_flat_fields(cls, data: Any) -> Any:
        # Format 1 had the fields of the report next to the result.
        if not isinstance(data, dict) or "harvest" in data:
            return data
        report = {name: data[name] for name in PulledWork.model_fields if name in data}
        return {name: value for name, value in data.items() if name not in report} | {"harvest": report}


class ClaimChecked(TestEvent):
    """swarm-tui ran a test on the commit that its agent submitted, or could not run it."""

    type: Literal["claim_checked"] = "claim_checked"
    result: Result
    reason: str = ""
    check: ClaimCheck


class Stopped(TestEvent):
    """A test was stopped before it finished, by the user or with the sweep. It can be retried or resumed."""

    type: Literal["stopped"] = "stopped"
    reason: str = ""
    source: str = "person"
    """Who stopped it, or the source that reported it as stopped."""


class AgentsStopped(EventBase):
    """Agents were stopped after their work was pulled."""

    type: Literal["agents_stopped"] = "agents_stopped"
    agents: tuple[str, ...] = ()


class SlotsChanged(EventBase):
    """The number of slots, which are the agents that may run at the same time, was changed."""

    type: Literal["slots_changed"] = "slots_changed"
    slots: int


class BudgetChanged(EventBase):
    """The user changed the budget of the sweep or of each agent. None keeps a limit, 0 removes it."""

    type: Literal["budget_changed"] = "budget_changed"
    total: float | None = None
    each: float | None = None
    by: str = ""


class BudgetSpent(EventBase):
    """A percentage of the budget was reached. At 100 nothing is launched until the budget is changed."""

    type: Literal["budget_spent"] = "budget_spent"
    percent: Literal[80, 100]
    dollars: float
    budget: float


class BudgetBlind(EventBase):
    """The budget cannot be enforced because agents use a model with an unknown price."""

    type: Literal["budget_blind"] = "budget_blind"
    tokens: int = 0


class CheckoutChanged(EventBase):
    """The user's repository has changed since before launch, and swarm-tui did not change it."""

    type: Literal["checkout_changed"] = "checkout_changed"
    changes: tuple[str, ...]
    """All changes so far, one sentence each."""


class OverBudget(TestEvent):
    """An agent reached the limit for one agent, and is asked to submit its work."""

    type: Literal["over_budget"] = "over_budget"
    dollars: float
    budget: float


class PatternRaised(EventBase):
    """The number of tests with the same cause reached `--alert`; recorded once for each cause."""

    type: Literal["pattern_raised"] = "pattern_raised"
    cause: str
    tests: tuple[str, ...] = ()
    shared: str = ""
    """What these tests have in common, and the other tests do not."""


class QueueHeld(EventBase):
    """The queue, or only the named tests, will not be launched until released."""

    type: Literal["queue_held"] = "queue_held"
    tests: tuple[str, ...] = ()
    reason: str = ""
    cause: str = ""
    """The cause of the alert; empty if the user holds the tests."""


class QueueReleased(EventBase):
    """The queue, or the named tests, may be launched again."""

    type: Literal["queue_released"] = "queue_released"
    tests: tuple[str, ...] = ()


class MessageSent(TestEvent):
    """A message was typed into the agent's pane."""

    type: Literal["message_sent"] = "message_sent"
    text: str = ""
    by: str = ""
    error: str = ""


class RequestAnswered(EventBase):
    """The engine carried out a request, or refused it with a reason."""

    type: Literal["request_answered"] = "request_answered"
    request: str
    is_done: bool = True
    detail: str = ""


class Integrating(EventBase):
    """The integrator started."""

    type: Literal["integrating"] = "integrating"
    by: str = "builtin"
    branches: int = 0
    agent: str = ""
    """The name of the integrating agent, which has its own events; empty for the built-in integrator."""
    branch: str = ""
    attempt: int = 0
    """The number of agents that integrated this sweep before."""


class IntegratorSaid(EventBase):
    """A line of progress from the integrator."""

    type: Literal["integrator_said"] = "integrator_said"
    line: str = ""


class Integrated(EventBase):
    """The integrated branch was created."""

    type: Literal["integrated"] = "integrated"
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


class IntegrationFailed(EventBase):
    """The integration failed. It can be repeated with `swarm-tui integrate`."""

    type: Literal["integration_failed"] = "integration_failed"
    reason: str = ""


class Noted(EventBase):
    """A line for the log, about one test or the whole sweep."""

    type: Literal["noted"] = "noted"
    level: Literal["info", "warning", "error"] = "info"
    text: str = ""
    test: str = ""


class UnknownEvent(EventBase):
    """An event whose type this version does not support."""

    type: str = "unknown"


KnownEvent = Annotated[
    EngineStarted
    | EngineEnded
    | Queued
    | Launching
    | Launched
    | LaunchFailed
    | Seen
    | ProbeFailed
    | ProbeRecovered
    | HostSeen
    | HostLost
    | HostBack
    | HostGone
    | HostMaking
    | HostMade
    | HostEnded
    | TryStarted
    | TryFinished
    | Edited
    | ForeignImports
    | Said
    | Spent
    | Harvesting
    | Harvested
    | ClaimChecked
    | Stopped
    | AgentsStopped
    | SlotsChanged
    | BudgetChanged
    | BudgetSpent
    | BudgetBlind
    | OverBudget
    | CheckoutChanged
    | DialTurned
    | LoginLost
    | LoginRestored
    | PatternRaised
    | Committed
    | Stuck
    | QueueHeld
    | QueueReleased
    | MessageSent
    | Asked
    | AskAnswered
    | AskClosed
    | RuleMade
    | RuleEnded
    | RequestAnswered
    | Integrating
    | IntegratorSaid
    | Integrated
    | IntegrationFailed
    | Noted,
    Field(discriminator="type"),
]

Event = KnownEvent | UnknownEvent
KNOWN_EVENTS: Final[tuple[type[EventBase], ...]] = get_args(get_args(KnownEvent)[0])

_EVENT: Final[TypeAdapter[Any]] = TypeAdapter(KnownEvent)
_UNKNOWN: Final = TypeAdapter(UnknownEvent)


def parse_event(line: bytes) -> Event:
    """Return the event in a line of the journal. Raise ValueError if the line is invalid."""
    try:
        event: Event = _EVENT.validate_json(line)
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False)[0]["type"] == "union_tag_invalid":
            return _UNKNOWN.validate_json(line)
        raise
    return event

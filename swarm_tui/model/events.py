"""The events of a sweep: the lines of events.jsonl, one frozen model for each kind.

`launching` is written before an agent is created and `launched` after it, so that after a crash in between the next
engine knows to look for the agent.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from swarm_tui.model.ask_events import AskAnswered as AskAnswered
from swarm_tui.model.ask_events import AskClosed as AskClosed
from swarm_tui.model.ask_events import Asked as Asked
from swarm_tui.model.ask_events import RuleEnded as RuleEnded
from swarm_tui.model.ask_events import RuleMade as RuleMade
from swarm_tui.model.baseline import Baseline
from swarm_tui.model.edits import FileEdit
from swarm_tui.model.event_base import EventBase as EventBase
from swarm_tui.model.event_base import TestEvent as TestEvent
from swarm_tui.model.failure import FailureDetail
from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.revision import Revision
from swarm_tui.model.spending import ModelTokens
from swarm_tui.model.states import Result, State
from swarm_tui.model.trouble import Trouble
from swarm_tui.model.trouble_events import Committed as Committed
from swarm_tui.model.trouble_events import DialTurned as DialTurned
from swarm_tui.model.trouble_events import LoginLost as LoginLost
from swarm_tui.model.trouble_events import LoginRestored as LoginRestored
from swarm_tui.model.trouble_events import Stuck as Stuck


class EngineStarted(EventBase):
    """An engine started or resumed the sweep."""

    type: Literal["engine_started"] = "engine_started"
    pid: int
    machine: str = ""
    version: str = ""
    is_resumed: bool = False
    slots: int = 0
    budget: float = 0.0
    """Dollars for the whole sweep; 0 is no limit."""
    budget_each: float = 0.0


class EngineEnded(EventBase):
    """The engine ended."""

    type: Literal["engine_ended"] = "engine_ended"
    why: Literal["finished", "stopped", "failed"] = "finished"
    reason: str = ""


class Queued(TestEvent):
    """A test waits for a slot. The first such event of a test also adds it to the sweep."""

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
    """What the test may share with others, in words: `fixture db`, `marker slow`, `parameter size=3`."""
    is_guessed: bool = False
    """Whether the test's name is all that is known of its id."""
    revision: Revision | None = None
    """What of its work was sent back, when its agent goes on instead of beginning anew."""


class Launching(TestEvent):
    """`mngr create` is about to be called."""

    type: Literal["launching"] = "launching"
    attempt: int = 1
    number: int = 0
    """The agent's number among those that live; 0 for none."""
    host: str = ""
    """Where the agent is to run; empty in journals from before there were hosts."""


class Launched(TestEvent):
    """The agent exists."""

    type: Literal["launched"] = "launched"
    agent_id: str = ""
    host: str = ""
    work_dir: str = ""
    state_dir: str = ""
    own_folder: str = ""
    """Where the agent's task and its interpreter lie, as it sees them."""
    is_adopted: bool = False


class LaunchFailed(TestEvent):
    """`mngr create` failed; another attempt follows unless `is_final`."""

    type: Literal["launch_failed"] = "launch_failed"
    reason: str
    attempt: int = 1
    is_final: bool = False


class Seen(TestEvent):
    """The agent was observed in another state; `source` names what it was observed by."""

    type: Literal["seen"] = "seen"
    state: Literal[State.RUNNING, State.WAITING]
    source: str = "process"
    question: str = ""
    options: tuple[str, ...] = ()
    """The answers that it offers, if any."""
    condition: str = ""
    """What else is to be seen of it, such as a request to its model that is tried again."""
    trouble: Trouble | None = None
    """Why its model does not answer."""
    needs_terminal: bool = False
    """Whether only somebody at its terminal can answer: a dialog stands there that no hook knows."""


class ProbeFailed(EventBase):
    """The agents of these tests (of all, when empty) could not be observed: their states are stale."""

    type: Literal["probe_failed"] = "probe_failed"
    tests: tuple[str, ...] = ()
    reason: str = ""


class ProbeRecovered(EventBase):
    """The agents of these tests (of all, when empty) are observed again."""

    type: Literal["probe_recovered"] = "probe_recovered"
    tests: tuple[str, ...] = ()


class HostSeen(EventBase):
    """A host was heard of; at most two events a minute for each."""

    type: Literal["host_seen"] = "host_seen"
    host: str
    load: float = 0.0
    """Its load average over a minute."""
    processors: int = 0


class HostLost(EventBase):
    """A host does not answer: the states of its agents are stale, and nothing is concluded from that."""

    type: Literal["host_lost"] = "host_lost"
    host: str
    reason: str = ""


class HostBack(EventBase):
    """A host answers again; its agents are watched where they are."""

    type: Literal["host_back"] = "host_back"
    host: str
    seconds: float = 0.0
    """How long it was lost."""


class HostGone(EventBase):
    """A host did not answer for so long that it was given up: its tests are queued again for other hosts, or fail."""

    type: Literal["host_gone"] = "host_gone"
    host: str
    reason: str = ""


class HostMaking(EventBase):
    """A provider is about to be asked for a new host of that name."""

    type: Literal["host_making"] = "host_making"
    host: str


class HostMade(EventBase):
    """A new host is there and reached by ssh; an agent of ours, its keeper, holds it until it is given back."""

    type: Literal["host_made"] = "host_made"
    host: str
    host_id: str = ""
    keeper: str = ""
    """The keeper's agent id."""
    access: dict[str, Any] = Field(default_factory=dict)
    """The fields of `HostAccess`."""


class HostEnded(EventBase):
    """A host that was made for the sweep was given back, or could not be made."""

    type: Literal["host_ended"] = "host_ended"
    host: str
    reason: str = ""
    is_failed: bool = False


class TryStarted(TestEvent):
    """The agent began a pytest run of its test, as the live plugin reported."""

    type: Literal["try_started"] = "try_started"
    number: int = 1


class TryFinished(TestEvent):
    """A pytest run of the test ended."""

    type: Literal["try_finished"] = "try_finished"
    number: int = 1
    passed: bool
    seconds: float = 0.0
    failure: str = ""
    outcome: str = ""
    reruns: int = 0
    detail: FailureDetail | None = None
    """None in journals of older versions, and where pytest itself knows no more."""


class Edited(TestEvent):
    """The agent has changed other lines than before, committed or not; looked at from time to time."""

    type: Literal["edited"] = "edited"
    edits: tuple[FileEdit, ...] = ()


class ForeignImports(TestEvent):
    """The test ran against modules of the user's checkout instead of the agent's copy."""

    type: Literal["foreign_imports"] = "foreign_imports"
    modules: tuple[str, ...] = ()


class Said(TestEvent):
    """The last line that the agent wrote; at most one event a second for each test."""

    type: Literal["said"] = "said"
    line: str


class Spent(TestEvent):
    """What the agent has cost so far."""

    type: Literal["spent"] = "spent"
    dollars: float | None = None
    tokens: int | None = None
    models: tuple[ModelTokens, ...] = ()


class Harvesting(TestEvent):
    """The agent's work is over and is being pulled."""

    type: Literal["harvesting"] = "harvesting"
    source: str = "archive"


class Harvested(TestEvent):
    """The agent's work has been pulled into the sweep folder, as far as possible, and judged."""

    type: Literal["harvested"] = "harvested"
    result: Result
    reason: str = ""
    harvest: HarvestReport = HarvestReport()

    @model_validator(mode="before")
    @classmethod
    def _nest_flat_fields(cls, data: Any) -> Any:
        # Format 1 wrote the fields of the report beside the result.
        if not isinstance(data, dict) or "harvest" in data:
            return data
        report = {name: data[name] for name in HarvestReport.model_fields if name in data}
        return {name: value for name, value in data.items() if name not in report} | {"harvest": report}


class Stopped(TestEvent):
    """A test was stopped before its end, by a person or with the sweep; it can be retried or resumed."""

    type: Literal["stopped"] = "stopped"
    reason: str = ""
    source: str = "person"
    """Who stopped it, or by what it was seen that it had stopped."""


class AgentsStopped(EventBase):
    """Agents whose work was harvested were stopped."""

    type: Literal["agents_stopped"] = "agents_stopped"
    agents: tuple[str, ...] = ()


class SlotsChanged(EventBase):
    """The number of agents that may work at once was changed."""

    type: Literal["slots_changed"] = "slots_changed"
    slots: int


class BudgetChanged(EventBase):
    """Somebody set what the sweep, or each agent, may cost. None leaves a limit as it is, 0 takes it away."""

    type: Literal["budget_changed"] = "budget_changed"
    total: float | None = None
    each: float | None = None
    by: str = ""


class BudgetSpent(EventBase):
    """So much of the budget is spent. At 100 percent nothing further is launched until the budget is changed."""

    type: Literal["budget_spent"] = "budget_spent"
    percent: Literal[80, 100]
    dollars: float
    budget: float


class BudgetBlind(EventBase):
    """The budget cannot hold: agents use a model of which the price is not known."""

    type: Literal["budget_blind"] = "budget_blind"
    tokens: int = 0


class OverBudget(TestEvent):
    """An agent has used up what one agent may cost, and is asked to hand in its work."""

    type: Literal["over_budget"] = "over_budget"
    dollars: float
    budget: float


class PatternRaised(EventBase):
    """As many tests have met the same cause as the alarm of the sweep asks for; recorded once for each cause."""

    type: Literal["pattern_raised"] = "pattern_raised"
    cause: str
    tests: tuple[str, ...] = ()
    shared: str = ""
    """What sets them apart from the other tests, in words."""


class QueueHeld(EventBase):
    """The queue, or only the named tests, are not launched until they are released."""

    type: Literal["queue_held"] = "queue_held"
    tests: tuple[str, ...] = ()
    reason: str = ""
    cause: str = ""
    """The cause of the pattern that the breaker holds them for; empty where a person holds them."""


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
    """A request was carried out, or refused with a reason."""

    type: Literal["request_answered"] = "request_answered"
    request: str
    is_done: bool = True
    detail: str = ""


class Integrating(EventBase):
    """The integrator began."""

    type: Literal["integrating"] = "integrating"
    by: str = "builtin"
    branches: int = 0
    agent: str = ""
    """The name of the agent that integrates, which has events of its own; empty without one."""
    branch: str = ""
    attempt: int = 0
    """How many agents have integrated this sweep before."""


class IntegratorSaid(EventBase):
    """A line of progress from the integrator."""

    type: Literal["integrator_said"] = "integrator_said"
    line: str = ""


class Integrated(EventBase):
    """The integrated branch was made."""

    type: Literal["integrated"] = "integrated"
    branch: str | None = None
    tip: str = ""
    fixes: int = 0
    left_out: int = 0
    detail: str = ""


class IntegrationFailed(EventBase):
    """The integration failed; `swarm-tui integrate` repeats it."""

    type: Literal["integration_failed"] = "integration_failed"
    reason: str = ""


class Noted(EventBase):
    """A line for the log, about one test or the whole sweep."""

    type: Literal["noted"] = "noted"
    level: Literal["info", "warning", "error"] = "info"
    text: str = ""
    test: str = ""


class UnknownEvent(EventBase):
    """An event of a kind that only a newer swarm-tui knows."""

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
    | Stopped
    | AgentsStopped
    | SlotsChanged
    | BudgetChanged
    | BudgetSpent
    | BudgetBlind
    | OverBudget
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
    """Return the event in a line of the journal; raise ValueError for any other line."""
    try:
        event: Event = _EVENT.validate_json(line)
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False)[0]["type"] == "union_tag_invalid":
            return _UNKNOWN.validate_json(line)
        raise
    return event

"""What happened in a sweep: the lines of events.jsonl, one frozen model a kind.

An intent is written before the act (`launching`), the deed after it (`launched`), so that an engine
that died in between can ask mngr what became of it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from swarm_tui.model.harvest import HarvestReport
from swarm_tui.model.states import Result, State


class EventBase(BaseModel):
    """Every event has a place in the order and a time (seconds since 1970)."""

    model_config = ConfigDict(frozen=True, extra="allow")

    seq: int = 0
    at: float = 0.0


class TestEvent(EventBase):
    """An event of one test."""

    __test__ = False

    test: str


class EngineStarted(EventBase):
    """An engine took hold of the sweep, for the first time or to resume it."""

    type: Literal["engine_started"] = "engine_started"
    pid: int
    machine: str = ""
    version: str = ""
    is_resumed: bool = False
    slots: int = 0


class EngineEnded(EventBase):
    """The engine let go of the sweep."""

    type: Literal["engine_ended"] = "engine_ended"
    why: Literal["finished", "stopped", "failed"] = "finished"
    reason: str = ""


class Queued(TestEvent):
    """A test waits for a slot; the first time it also introduces the test."""

    type: Literal["queued"] = "queued"
    agent: str = ""
    branch: str = ""
    file: str = ""
    line: int = 0
    block: str = ""
    reason: str = ""


class Launching(TestEvent):
    """`mngr create` is about to be called."""

    type: Literal["launching"] = "launching"
    attempt: int = 1


class Launched(TestEvent):
    """The agent exists."""

    type: Literal["launched"] = "launched"
    agent_id: str = ""
    host: str = ""
    work_dir: str = ""
    state_dir: str = ""
    is_adopted: bool = False


class LaunchFailed(TestEvent):
    """`mngr create` failed; another attempt follows unless `is_final`."""

    type: Literal["launch_failed"] = "launch_failed"
    reason: str
    attempt: int = 1
    is_final: bool = False


class Seen(TestEvent):
    """The probe saw the agent in another state; `source` says from what that is known."""

    type: Literal["seen"] = "seen"
    state: Literal[State.RUNNING, State.WAITING]
    source: str = "process"
    question: str = ""
    options: tuple[str, ...] = ()
    """The answers that it offers, if any."""
    condition: str = ""
    """What else is to be seen of it, such as a request to its model that is tried again."""


class ProbeFailed(EventBase):
    """Nothing could be learned about these tests (all, when empty): what is shown is stale, not wrong."""

    type: Literal["probe_failed"] = "probe_failed"
    tests: tuple[str, ...] = ()
    reason: str = ""


class ProbeRecovered(EventBase):
    """The probe answers again for these tests (all, when empty)."""

    type: Literal["probe_recovered"] = "probe_recovered"
    tests: tuple[str, ...] = ()


class TryStarted(TestEvent):
    """The agent began a pytest run of its test; told by the live plugin."""

    type: Literal["try_started"] = "try_started"
    number: int = 1


class TryFinished(TestEvent):
    """A pytest run of the test ended."""

    type: Literal["try_finished"] = "try_finished"
    number: int = 1
    passed: bool
    seconds: float = 0.0
    failure: str = ""


class ForeignImports(TestEvent):
    """The test ran against modules of the user's checkout instead of the agent's copy."""

    type: Literal["foreign_imports"] = "foreign_imports"
    modules: tuple[str, ...] = ()


class Said(TestEvent):
    """The last line that the agent wrote, at most one a second a test."""

    type: Literal["said"] = "said"
    line: str


class Spent(TestEvent):
    """What the agent has cost so far."""

    type: Literal["spent"] = "spent"
    dollars: float | None = None
    tokens: int | None = None


class Harvesting(TestEvent):
    """The agent's work is over and is being pulled."""

    type: Literal["harvesting"] = "harvesting"
    source: str = "archive"


class Harvested(TestEvent):
    """Everything of the agent's work that could be had is in the sweep folder."""

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
    """A person, or the end of the sweep, stopped this test before its end; it can be retried or resumed."""

    type: Literal["stopped"] = "stopped"
    reason: str = ""


class AgentsStopped(EventBase):
    """Agents whose work was harvested were stopped."""

    type: Literal["agents_stopped"] = "agents_stopped"
    agents: tuple[str, ...] = ()


class SlotsChanged(EventBase):
    """From now on so many agents may work at once."""

    type: Literal["slots_changed"] = "slots_changed"
    slots: int


class QueueHeld(EventBase):
    """No further test is launched until the queue is released; with tests named, only those are held."""

    type: Literal["queue_held"] = "queue_held"
    tests: tuple[str, ...] = ()
    reason: str = ""


class QueueReleased(EventBase):
    """The queue, or the tests named, may be launched again."""

    type: Literal["queue_released"] = "queue_released"
    tests: tuple[str, ...] = ()


class MessageSent(TestEvent):
    """A message was typed into the agent's pane."""

    type: Literal["message_sent"] = "message_sent"
    text: str = ""
    by: str = ""
    error: str = ""


class RequestAnswered(EventBase):
    """A request was carried out, or was not and why."""

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
    """The name of the agent that integrates, of whose life further events tell; empty without one."""
    branch: str = ""
    attempt: int = 0
    """How many agents have integrated this sweep before."""


class IntegratorSaid(EventBase):
    """What the integrator does now, in its own words."""

    type: Literal["integrator_said"] = "integrator_said"
    line: str = ""


class Integrated(EventBase):
    """The integrated branch is there."""

    type: Literal["integrated"] = "integrated"
    branch: str | None = None
    tip: str = ""
    fixes: int = 0
    left_out: int = 0
    detail: str = ""


class IntegrationFailed(EventBase):
    """The integrator gave up; `swarm-tui integrate` repeats it."""

    type: Literal["integration_failed"] = "integration_failed"
    reason: str = ""


class Noted(EventBase):
    """Something a person should be able to read later; with a test when it concerns one."""

    type: Literal["noted"] = "noted"
    level: Literal["info", "warning", "error"] = "info"
    text: str = ""
    test: str = ""


class UnknownEvent(EventBase):
    """An event that a newer swarm-tui wrote: kept in the order, without a meaning here."""

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
    | TryStarted
    | TryFinished
    | ForeignImports
    | Said
    | Spent
    | Harvesting
    | Harvested
    | Stopped
    | AgentsStopped
    | SlotsChanged
    | QueueHeld
    | QueueReleased
    | MessageSent
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
    """Read one line of the journal; a line that is no event raises ValueError."""
    try:
        event: Event = _EVENT.validate_json(line)
    except ValidationError as error:
        if error.errors(include_url=False, include_input=False)[0]["type"] == "union_tag_invalid":
            return _UNKNOWN.validate_json(line)
        raise
    return event

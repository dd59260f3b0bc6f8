"""Events about the throttle, lost logins, commits and stuck agents."""

from __future__ import annotations

from dataclasses import dataclass, replace

from swarm_tui.model.api_errors import HOLDING, OPEN, WORDS, ApiError, ApiErrorKind, Throttle, why_turned
from swarm_tui.model.event import Event, TestEvent
from swarm_tui.model.formatting import counted


class DialTurned(Event, frozen=True):
    """The throttle changed. The fields are those of `Throttle`."""

    slots: int | None = None
    cause: str = ""
    detail: str = ""
    until: float | None = None
    is_halved: bool = False
    too_many: int | None = None


class LoginLost(Event, frozen=True):
    """The API refuses the agents' login, or the account has no credit. Launching stops until the user releases it."""

    kind: ApiErrorKind = ApiErrorKind.LOGIN_LOST
    test: str = ""
    reason: str = ""


class LoginRestored(Event, frozen=True):
    """The user reported that the login works again."""

    by: str = ""


class Committed(TestEvent, frozen=True):
    """The number of commits in the agent's copy changed; written at most every five seconds for each test."""

    commits: int


class Stuck(TestEvent, frozen=True):
    """The agent is stuck for this reason; without a reason, it is no longer stuck."""

    reason: str = ""
    is_nudged: bool = False
    """Whether a message is sent to the agent, which happens once for each agent."""


AccessEvent = DialTurned | LoginLost | LoginRestored


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """The state of the API access after all events so far."""

    dial: Throttle = OPEN
    hindered_at: float = 0.0
    """When an agent last had an API error other than a lost login or missing credit."""
    lost: str = ""
    """`login_lost` or `unpaid` while launching is stopped for that reason; otherwise empty."""
    lost_reason: str = ""
    restored_at: float = 0.0
    """When the user last reported that the API works again."""

    @property
    def lost_words(self) -> str:
        """`login lost` or `no credit`; empty if access is not lost."""
        return WORDS[ApiErrorKind(self.lost)] if self.lost else ""

    def is_holding(self, now: float) -> bool:
        """Return whether launching is stopped by a lost login, missing credit or a rate limit."""
        return bool(self.lost) or now < (self.dial.until or 0.0)

    def after_trouble(self, trouble: ApiError | None, at: float) -> ApiAccess:
        """Return the state after a poll of an agent, with its API error if any."""
        return self if trouble is None or trouble.kind in HOLDING else replace(self, hindered_at=at)

    def after_event(self, event: AccessEvent) -> ApiAccess:
        match event:
            case LoginLost():
                return replace(self, lost=event.kind.value, lost_reason=event.reason)
            case LoginRestored():
                return replace(self, lost="", lost_reason="", restored_at=event.at)
            case DialTurned():
                return replace(self, dial=_dial_of(event, self.dial.halved_at))


def _dial_of(event: DialTurned, halved_at: float = 0.0) -> Throttle:
    return Throttle(
        slots=event.slots,
        cause=event.cause,
        detail=event.detail,
        until=event.until,
        halved_at=event.at if event.is_halved else halved_at,
        changed_at=event.at,
        too_many=event.too_many,
    )


def access_line(event: AccessEvent) -> tuple[str, str, str]:
    """Return the level, text and test of the log line for an event."""
    match event:
        case LoginLost():
            return "error", f"{WORDS[event.kind]}, the queue is held: {event.reason}", event.test
        case LoginRestored():
            return "info", f"{event.by or 'a user'} released the queue: the API works again", ""
        case DialTurned():
            limit = "throttle off"
            if event.slots is not None:
                limit = f"throttled to {counted(event.slots, 'agent')}"
            if not event.is_halved:
                return "info", limit, ""
            return "warning", f"{limit}: {why_turned(_dial_of(event), event.at)}", ""

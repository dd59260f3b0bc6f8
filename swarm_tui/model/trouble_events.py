"""The events about agents that do not get on: the dial, a login that is lost, commits, and who is stuck."""

from __future__ import annotations

from typing import Literal

from swarm_tui.model.event_base import EventBase, TestEvent
from swarm_tui.model.trouble import TroubleKind


class DialTurned(EventBase):
    """Fewer agents than the person has set are to be at work, or more again; the fields are those of `Dial`."""

    type: Literal["dial_turned"] = "dial_turned"
    slots: int | None = None
    cause: str = ""
    detail: str = ""
    until: float | None = None
    is_halved: bool = False
    too_many: int | None = None


class LoginLost(EventBase):
    """The agents' model refuses their login, or is not paid any more: nothing is launched until it is released."""

    type: Literal["login_lost"] = "login_lost"
    kind: TroubleKind = TroubleKind.LOGIN_LOST
    test: str = ""
    reason: str = ""


class LoginRestored(EventBase):
    """A person says that the login works again."""

    type: Literal["login_restored"] = "login_restored"
    by: str = ""


class Committed(TestEvent):
    """The agent has made so many commits in its copy; at most one event in five seconds for each test."""

    type: Literal["committed"] = "committed"
    commits: int


class Stuck(TestEvent):
    """The agent does not get on, for this reason; without one it does again."""

    type: Literal["stuck"] = "stuck"
    reason: str = ""
    is_nudged: bool = False
    """A message tells it so. That happens once for each agent."""

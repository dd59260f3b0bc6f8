"""Base classes of events."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class EventBase(BaseModel):
    """Base of all events, with a sequence number and a time in seconds since 1970."""

    model_config = ConfigDict(frozen=True, extra="allow")

    seq: int = 0
    at: float = 0.0


class TestEvent(EventBase):
    """An event of one test."""

    __test__ = False

    test: str

"""What was brought home of one agent's work: written once by the engine, and held whole by the test's record."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

from swarm_tui.model.outcome import Escalation


class HarvestedChange(BaseModel):
    """One change of an outcome as the journal keeps it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: str
    status: str
    summary: str = ""
    commit: str = ""


class HarvestReport(BaseModel):
    """The outcome that the agent reported, shortened and made harmless, and what was found beside it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    end: str = "archive"
    """How the agent's work came to its end: by its archive, or without one (timeout, crash, gone, ...)."""
    summary: str = ""
    passing_before: bool | None = None
    passing_after: bool | None = None
    errored: bool = False
    changes: tuple[HarvestedChange, ...] = ()
    escalations: tuple[Escalation, ...] = ()
    tip: str = ""
    """The agent's last commit, fetched to refs/swarm/<sweep>/<branch's last part>; empty without commits."""
    has_uncommitted: bool = False


NOT_HARVESTED: Final = HarvestReport(end="")
"""Stands in the record of a test whose agent's work has not been harvested."""

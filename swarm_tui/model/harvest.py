"""What was brought home of one agent's work: written once by the engine, and held whole by the test's record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict

from swarm_tui.model.outcome import ChangeKind, Escalation, Location, Outcome
from swarm_tui.model.text import plain, plain_lines

_TEXT_LIMIT: Final = 8_000
_ESCALATION_LIMIT: Final = 20
_LOCATION_LIMIT: Final = 20


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
    weaker: str = ""
    """How the agent's own test became weaker, as far as its source tells."""


NOT_HARVESTED: Final = HarvestReport(end="")
"""Stands in the record of a test whose agent's work has not been harvested."""


def report_of(
    outcome: Outcome,
    commit_of: Mapping[ChangeKind | None, str],
    *,
    end: str,
    tip: str,
    has_uncommitted: bool,
    weaker: str = "",
) -> HarvestReport:
    """Return the report on an outcome, its texts cut and made harmless; `commit_of` names the commit of each kind."""
    return HarvestReport(
        end=end,
        summary=_clipped(outcome.summary_markdown),
        passing_before=outcome.tests_passing_before,
        passing_after=outcome.tests_passing_after,
        errored=outcome.errored,
        changes=tuple(
            HarvestedChange(
                kind=kind.value,
                status=change.status.value,
                summary=_clipped(change.summary_markdown),
                commit=commit_of.get(kind, ""),
            )
            for kind, change in outcome.changes.items()
        ),
        escalations=tuple(
            Escalation(
                kind=plain(escalation.kind, 60),
                title=plain(escalation.title, 300),
                detail_markdown=_clipped(escalation.detail_markdown),
                locations=tuple(
                    Location(path=plain(each.path, 300), line=each.line)
                    for each in escalation.locations[:_LOCATION_LIMIT]
                ),
            )
            for escalation in outcome.escalations[:_ESCALATION_LIMIT]
        ),
        tip=tip,
        has_uncommitted=has_uncommitted,
        weaker=weaker,
    )


def _clipped(text: str) -> str:
    return plain_lines(text[:_TEXT_LIMIT])

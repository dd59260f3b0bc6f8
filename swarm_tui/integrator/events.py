"""Integration and revisions: types, events, how events change the state, and their log lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from swarm_tui.model.event import Event, LogLine, Value

if TYPE_CHECKING:
    from swarm_tui.journal.state import SweepState


@dataclass(frozen=True, slots=True)
class Integration:
    """The state of the integration."""

    state: str = "none"
    """none, integrating, done, failed"""
    branch: str | None = None
    tip: str = ""
    fixes: int = 0
    left_out: int = 0
    detail: str = ""
    at: float | None = None
    started_at: float | None = None
    last_line: str = ""
    """The last line of the running integrator."""
    by: str = ""
    """Who created the branch: builtin or agent."""
    refused: str = ""
    """Why the branch of the integrating agent is not used."""
    problems: tuple[str, ...] = ()
    """Problems of the branch."""


class Revision(Value, frozen=True, kw_only=True):
    """The request to revise one fix."""

    fix: str
    """The fix, as a commit of the integrated branch."""
    comment: str
    hunk: str = ""
    """The lines to revise, as a diff; "" for the whole fix."""
    by: str = ""
    tip: str
    """The agent's last commit. The new agent continues from it."""
    first_tip: str = ""
    """The agent's last commit before the first revision."""
    number: int = 1
    """The number of revisions of this agent's fixes, including this one."""


class IntegrationStarted(Event, frozen=True):
    """The integrator started."""

    by: str = "builtin"
    branches: int = 0
    agent: str = ""
    """The name of the integrating agent, which has its own events; empty for the built-in integrator."""
    branch: str = ""
    launch: int = 0
    """The number of agents that integrated this sweep before."""

    def apply(self, state: SweepState) -> None:
        state.integration = Integration(state="integrating", at=self.at, detail=self.by, started_at=self.at)
        if self.agent:
            state.begin_integrator(self.agent, self.branch, self.launch, self.at)

    def log_line(self) -> LogLine | None:
        return self.logged(f"integrating {self.branches} branches ({self.by})")


class IntegratorOutput(Event, frozen=True):
    """A line of progress from the integrator."""

    line: str = ""

    def apply(self, state: SweepState) -> None:
        state.integration = replace(state.integration, last_line=self.line)

    def log_line(self) -> LogLine | None:
        return self.logged(f"the integrator: {self.line}") if self.line else None


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

    def apply(self, state: SweepState) -> None:
        state.integration = Integration(
            state="done",
            branch=self.branch,
            tip=self.tip,
            fixes=self.fixes,
            left_out=self.left_out,
            detail=self.detail,
            at=self.at,
            started_at=state.integration.started_at,
            by=self.by,
            refused=self.refused,
            problems=self.problems,
        )
        state.end_integrator(self.at)

    def log_line(self) -> LogLine | None:
        text = f"integrated{f' on {self.branch}' if self.branch else ''}: {self.fixes} fixes"
        text = text if self.branch or self.tip else "nothing to integrate"
        text += f", {self.left_out} left out" if self.left_out else ""
        return self.logged("; ".join((text, *self.problems)), "error" if self.problems else "info")


class IntegrationFailed(Event, frozen=True):
    """The integration failed. It can be repeated with `swarm-tui integrate`."""

    reason: str = ""

    def apply(self, state: SweepState) -> None:
        started_at = state.integration.started_at
        state.integration = Integration(state="failed", detail=self.reason, at=self.at, started_at=started_at)
        state.end_integrator(self.at)

    def log_line(self) -> LogLine | None:
        return self.logged(f"integration failed: {self.reason}", "error")

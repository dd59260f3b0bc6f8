"""A fix that the user sent back to its agent."""

from __future__ import annotations

from swarm_tui.model.event import Value


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

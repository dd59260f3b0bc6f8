"""A fix that a person has sent back to its author: what was said, and where its agent goes on."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Revision(BaseModel):
    """What one agent is asked to do anew."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    fix: str
    """The commit of the integrated branch that is sent back."""
    comment: str
    hunk: str = ""
    """The lines that it is about, as a diff; "" where it is about the whole fix."""
    by: str = ""
    tip: str
    """The agent's last commit, on which the new agent goes on."""
    first_tip: str = ""
    """The agent's last commit before a fix of its was sent back for the first time."""
    number: int = 1
    """How often fixes of this agent were sent back, this time included."""

"""Reads what the integrator measured of each fix from the part of its outcome that only the built-in one writes."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.text import plain


@dataclass(frozen=True, slots=True)
class MeasuredEffect:
    """What one fix alone did to the tests of the sweep."""

    turned_green: tuple[str, ...]
    broken: tuple[str, ...]
    is_measured: bool
    """False when these are only what its agents reported."""
    why: str
    """Why it has its rank, in one line."""
    branches: tuple[str, ...] = ()
    """The agents' branches that it came from."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    commit: str
    turned_green: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    is_measured: bool = False
    why: str = ""
    branches: tuple[str, ...] = ()


_ENTRIES = TypeAdapter(tuple[_Entry, ...])


def read_measured_effects(outcome: IntegratorOutcome | None) -> dict[str, MeasuredEffect]:
    """Return what was measured, by commit; nothing when this integrator did not measure, or wrote something else."""
    entries_read = (outcome.model_extra or {}).get("ranking") if outcome else None
    try:
        entries = _ENTRIES.validate_python(entries_read or ())
    except ValidationError:
        return {}
    return {
        entry.commit: MeasuredEffect(
            entry.turned_green, entry.broken, entry.is_measured, plain(entry.why, 300), entry.branches
        )
        for entry in entries
    }

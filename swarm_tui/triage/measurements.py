"""Reads what the integrator measured of each fix from the part of its outcome that only the built-in one writes."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from swarm_tui.model.outcome import IntegratorOutcome
from swarm_tui.model.text import plain


class MeasuredEffect(BaseModel):
    """What one fix alone did to the tests of the sweep."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    commit: str
    title: Annotated[str, AfterValidator(lambda title: plain(title, 300))] = ""
    turned_green: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    is_measured: bool = False
    """False when these are only what its agents reported."""
    why: Annotated[str, AfterValidator(lambda why: plain(why, 300))] = ""
    """Why it has its rank, in one line."""
    branches: tuple[str, ...] = ()
    """The agents' branches that it came from."""


_EFFECTS = TypeAdapter(tuple[MeasuredEffect, ...])


def read_measured_effects(outcome: IntegratorOutcome | None) -> dict[str, MeasuredEffect]:
    """Return what was measured, by commit; nothing when this integrator did not measure, or wrote something else."""
    ranking = (outcome.model_extra or {}).get("ranking") if outcome else None
    try:
        return {effect.commit: effect for effect in _EFFECTS.validate_python(ranking or ())}
    except ValidationError:
        return {}

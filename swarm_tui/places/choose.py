"""Chooses the place in which the agents of a sweep run."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from swarm_tui.errors import UsageError
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.local import LocalPlace
from swarm_tui.places.place import Place

LOCAL: Final = "local"


def check_provider(provider: str) -> None:
    """Raise UsageError for a provider of mngr whose agents cannot be reached."""
    if provider != LOCAL:
        raise UsageError(
            f"agents on {provider!r} cannot be reached yet", "leave --provider out: they run on this machine"
        )


def place_for(spec: SweepSpec) -> Place:
    """Return the place in which the agents of a sweep run."""
    check_provider(spec.provider)
    return LocalPlace(spec.mngr, Path(spec.repository))

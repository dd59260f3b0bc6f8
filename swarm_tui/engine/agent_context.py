"""What it takes to write to agents and to answer them; the engine of a sweep has it, and so has a watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.engine.watch import Watch
from swarm_tui.journal.fold import SweepState
from swarm_tui.model.events import KnownEvent
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.place import Place


class AgentContext(Protocol):
    """Where agents are, and where it is written down what becomes of them."""

    @property
    def spec(self) -> SweepSpec: ...

    @property
    def state(self) -> SweepState: ...

    @property
    def mngr(self) -> MngrAdapter: ...

    @property
    def place(self) -> Place: ...

    def record(self, event: KnownEvent) -> None:
        """Write an event to the journal and take it into the state."""

    def note(self, text: str, *, level: Literal["info", "warning", "error"] = "info", test: str = "") -> None:
        """Leave a sentence in the log for people."""


class AgentWatches(Protocol):
    """The living agents that are watched."""

    @property
    def watches(self) -> Mapping[str, Watch]:
        """The watches by test."""

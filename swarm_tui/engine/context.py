"""What every part of the engine works with: the sweep, its journal, its agents' place, mngr and git."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.engine.copy_source import CopySource, copy_variables
from swarm_tui.engine.host_preparation import HostPreparation
from swarm_tui.engine.names import agent_address
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder, make_own_folder
from swarm_tui.model.events import KnownEvent, Noted
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.place import AgentAddress, Place


def agents_environment(spec: SweepSpec, repository: Repository) -> dict[str, str]:
    """Return the environment of mngr's calls, with what the agents get from that of this process."""
    passed = {name: os.environ[name] for name in spec.agent_environment if name in os.environ}
    environment = mngr_environment(spec.mngr, passed | copy_variables(repository, spec.fill))
    # mngr's tmux server would hand the integrator's to every agent.
    withheld = set(spec.integrator_environment) - set(spec.agent_environment)
    return {name: value for name, value in environment.items() if name not in withheld}


@dataclass(slots=True)
class EngineContext:
    """One sweep in the hands of its engine. Only the event loop's own thread records."""

    folder: SweepFolder
    spec: SweepSpec
    writer: JournalWriter
    state: SweepState
    mngr: MngrAdapter
    place: Place
    repository: Repository
    """The user's repository: its objects and refs, never its checkout."""
    begun_at: float = field(default_factory=time.time)
    """When this engine began: what was asked earlier was asked of another."""
    copy_source: CopySource = field(init=False)
    preparation: HostPreparation = field(init=False)
    _noted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.copy_source = CopySource(self.repository, self.spec)
        self.preparation = HostPreparation(self.spec, self.folder, self.repository, self._note_error)

    def record(self, event: KnownEvent) -> None:
        """Write an event to the journal and take it into the state."""
        self.state.apply(self.writer.append(event))

    def note(self, text: str, *, level: Literal["info", "warning", "error"] = "info", test: str = "") -> None:
        """Leave a sentence in the log for people."""
        self.record(Noted(level=level, text=text, test=test))

    def note_once(self, text: str, *, level: Literal["info", "warning", "error"] = "info") -> None:
        """Leave a sentence in the log that this engine has not left there before."""
        if text not in self._noted:
            self._noted.add(text)
            self.note(text, level=level)

    def _note_error(self, text: str) -> None:
        self.note_once(text, level="error")

    def address_of(self, agent: str, attempt: int, host: str = LOCAL_HOST) -> AgentAddress:
        return agent_address(self.spec, self.place.host_dir_of(host), agent, attempt, host)

    def agent_folder(self, agent: str) -> Path:
        """Return the folder of what is known of one agent; it is made when missing."""
        return make_own_folder(self.folder.agent(agent))

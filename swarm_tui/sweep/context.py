"""What every part of the engine works with: the sweep, its journal, its hosts, mngr and git."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.adapters.mngr_settings import HOST_VARIABLES, mngr_environment
from swarm_tui.adapters.processes.environment import passed_variables
from swarm_tui.hosts.preparation import HostPreparation
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.append import JournalWriter
from swarm_tui.journal.events import LogMessage
from swarm_tui.journal.folder import SweepFolder, make_own_folder
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import INTEGRATOR_KEY, Event
from swarm_tui.model.spec import LOCAL_HOST, SweepSpec
from swarm_tui.sweep.agent_context import agent_address
from swarm_tui.sweep.copies import CopySource, copy_variables
from swarm_tui.sweep.slots import SHORTAGE_PAUSES


def agents_environment(spec: SweepSpec, repository: Repository) -> dict[str, str]:
    """Return the environment of mngr's calls, including what the agents get from the environment of this process."""
    passed = passed_variables(spec.agent_environment)
    environment = mngr_environment(spec.mngr, passed | copy_variables(repository, spec.fill))
    # Withheld, because mngr's tmux server would pass them to every agent.
    withheld = set(spec.integrator_environment)
    if not spec.access and spec.provider == LOCAL_HOST:
        withheld |= set(HOST_VARIABLES)
    return {name: value for name, value in environment.items() if name not in withheld - set(spec.agent_environment)}


@dataclass(slots=True)
class SweepContext:
    """One sweep and its adapters, for all parts of its engine. Only the thread of the event loop records events."""

    folder: SweepFolder
    spec: SweepSpec
    writer: JournalWriter
    state: SweepState
    mngr: MngrAdapter
    hosts: Hosts
    repository: Repository
    """The user's repository. Only objects and refs are changed, never the checkout."""
    begun_at: float = field(default_factory=time.time)
    """When this engine began. Earlier requests were for another engine."""
    shortage_pauses: Sequence[float] = SHORTAGE_PAUSES
    """Seconds to wait before each retry after a shortage of resources."""
    copy_source: CopySource = field(init=False)
    preparation: HostPreparation = field(init=False)
    _noted: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.copy_source = CopySource(self.repository, self.spec)
        self.preparation = HostPreparation(self.spec, self.folder, self.repository, self._note_error)

    def record(self, event: Event) -> None:
        """Append an event to the journal and apply it to the state."""
        self.state.apply(self.writer.append(event))

    def note(self, text: str, *, level: Literal["info", "warning", "error"] = "info", test: str = "") -> None:
        """Add a sentence to the log."""
        self.record(LogMessage(level=level, text=text, test=test))

    def note_once(self, text: str, *, level: Literal["info", "warning", "error"] = "info") -> None:
        """Add a sentence to the log if this engine has not added it before."""
        if text not in self._noted:
            self._noted.add(text)
            self.note(text, level=level)

    def _note_error(self, text: str) -> None:
        self.note_once(text, level="error")

    def address_of(self, agent: str, launch_number: int, host: str = LOCAL_HOST) -> AgentAddress:
        return agent_address(self.spec, self.hosts[host].host_dir, agent, launch_number, host)

    def work_folder(self, key: str) -> Path:
        """Return the folder of the sweep for the work of a test's agent, or of the integrator; it is created."""
        is_integrator = key == INTEGRATOR_KEY
        return make_own_folder(
            self.folder.integrator if is_integrator else self.folder.agent(self.state.record_of(key).agent)
        )

"""What messages and answers to agents require, for the engine of a sweep and for `watch`; names and refs."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping
from typing import Final, Literal, Protocol

from swarm_tui.adapters.mngr import MngrAdapter
from swarm_tui.hosts.protocol import AgentAddress
from swarm_tui.hosts.registry import Hosts
from swarm_tui.journal.events import Launched
from swarm_tui.journal.record import TestRecord
from swarm_tui.journal.state import SweepState
from swarm_tui.model.event import Event
from swarm_tui.model.spec import LOCAL_HOST, SweepSpec
from swarm_tui.sweep.watch import AgentFollower


class AgentContext(Protocol):
    """The adapters and the journal of the agents."""

    @property
    def spec(self) -> SweepSpec: ...

    @property
    def state(self) -> SweepState: ...

    @property
    def mngr(self) -> MngrAdapter: ...

    @property
    def hosts(self) -> Hosts: ...

    def record(self, event: Event) -> None:
        """Append an event to the journal and apply it to the state."""

    def note(self, text: str, *, level: Literal["info", "warning", "error"] = "info", test: str = "") -> None:
        """Add a sentence to the log."""


class AgentWatches(Protocol):
    """Agents that are followed."""

    @property
    def watches(self) -> Mapping[str, AgentFollower]:
        """The followers by test."""


LABEL_SWEEP: Final = "swarm_sweep"
LABEL_TEST: Final = "swarm_test"
LABEL_ROLE: Final = "swarm_role"
ROLE_MAPPER: Final = "mapper"


def agent_id_of(spec: SweepSpec, agent: str, launch_number: int) -> str:
    """Return the id of the agent of one launch. No other sweep or user creates an agent with this id."""
    key = "\0".join((spec.repository, spec.sweep, repr(spec.created_at), agent, str(launch_number)))
    return f"agent-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def agent_address(
    spec: SweepSpec, host_dir: str, agent: str, launch_number: int, host: str = LOCAL_HOST
) -> AgentAddress:
    """Return the address of the agent of one launch, below mngr's folder on its host."""
    agent_id = agent_id_of(spec, agent, launch_number)
    copies = "worktrees" if spec.transfer == "worktree" else "copies"
    return AgentAddress(
        name=agent,
        agent_id=agent_id,
        session=session_of(spec, agent),
        state_dir=posixpath.join(host_dir, "agents", agent_id),
        work_dir=posixpath.join(host_dir, copies, f"{agent}-{launch_number}"),
        host=host,
    )


def launched_event(test: str, address: AgentAddress, *, is_adopted: bool, agent_dir: str = "") -> Launched:
    """Return the event of an agent that was created, or of one that was created before and is adopted now."""
    return Launched(
        test=test,
        agent_id=address.agent_id,
        host=address.host,
        work_dir=address.work_dir,
        state_dir=address.state_dir,
        agent_dir=agent_dir,
        is_adopted=is_adopted,
    )


def recorded_address(spec: SweepSpec, record: TestRecord) -> AgentAddress:
    """Return the address of a test's agent according to the journal."""
    session = session_of(spec, record.agent)
    return AgentAddress(
        record.agent, record.agent_id, session, record.state_dir, record.work_dir, record.host or LOCAL_HOST
    )


def session_of(spec: SweepSpec, agent: str) -> str:
    return f"{spec.mngr.prefix}{agent}"


def before_refs(spec: SweepSpec) -> str:
    """Return the prefix of the refs that keep branches as they were before a fix was sent back."""
    return f"refs/swarm/{spec.sweep}/before-"


def held_refs(spec: SweepSpec) -> str:
    """Return the prefix of the refs that keep commits from `git gc` until `swarm-tui clean`."""
    return f"refs/swarm-held/{spec.sweep}"


def pulled_ref(spec: SweepSpec, branch: str) -> str:
    """Return the ref under which an agent's commits are kept in the user's repository."""
    return f"refs/swarm/{spec.sweep}/{slug_of(branch)}"


def slug_of(branch: str) -> str:
    """Return the last part of a branch's name, which is unique in the sweep."""
    return branch.rpartition("/")[2]

"""Derives names, ids and folders of agents: always the same, so that a resumed engine finds them again."""

from __future__ import annotations

import hashlib
import posixpath
from typing import Final

from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import INTEGRATOR_SLUG, SweepSpec
from swarm_tui.places.place import AgentAddress

LABEL_SWEEP: Final = "swarm_sweep"
LABEL_TEST: Final = "swarm_test"
LABEL_ROLE: Final = "swarm_role"
ROLE_MAPPER: Final = "mapper"


def integrator_of(spec: SweepSpec) -> str:
    return f"swarm-{spec.sweep}-{INTEGRATOR_SLUG}"


def agent_id_of(spec: SweepSpec, agent: str, attempt: int) -> str:
    """Return the id of the agent of one attempt; no other sweep and no person makes an agent of that id."""
    key = "\0".join((spec.repository, spec.sweep, repr(spec.created_at), agent, str(attempt)))
    return f"agent-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def agent_address(spec: SweepSpec, host_dir: str, agent: str, attempt: int, host: str = LOCAL_HOST) -> AgentAddress:
    """Return where the agent of one attempt lives, below mngr's folder in its place."""
    agent_id = agent_id_of(spec, agent, attempt)
    copies = "worktrees" if spec.transfer == "worktree" else "copies"
    return AgentAddress(
        name=agent,
        agent_id=agent_id,
        session=session_of(spec, agent),
        state_dir=posixpath.join(host_dir, "agents", agent_id),
        work_dir=posixpath.join(host_dir, copies, f"{agent}-{attempt}"),
        host=host,
    )


def recorded_address(spec: SweepSpec, record: TestRecord) -> AgentAddress:
    """Return where the journal says that the agent of a test lives."""
    session = session_of(spec, record.agent)
    return AgentAddress(
        record.agent, record.agent_id, session, record.state_dir, record.work_dir, record.host or LOCAL_HOST
    )


def session_of(spec: SweepSpec, agent: str) -> str:
    return f"{spec.mngr.prefix}{agent}"


def before_refs(spec: SweepSpec) -> str:
    """Return how the refs begin under which branches stay that had a fix before it was sent back."""
    return f"refs/swarm/{spec.sweep}/before-"


def harvest_ref(spec: SweepSpec, branch: str) -> str:
    """Return the ref under which an agent's commits are kept in the user's repository."""
    return f"refs/swarm/{spec.sweep}/{branch.rsplit('/', 1)[-1]}"

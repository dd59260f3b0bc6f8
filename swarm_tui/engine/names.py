"""Derives the names and places of a test's agent: always the same, so that a resumed engine finds them again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.model.sweep import INTEGRATOR_SLUG, SweepSpec

LABEL_SWEEP: Final = "swarm_sweep"
LABEL_TEST: Final = "swarm_test"
LABEL_ROLE: Final = "swarm_role"
ROLE_MAPPER: Final = "mapper"


def integrator_of(spec: SweepSpec) -> str:
    """Return the name of the agent that integrates a sweep."""
    return f"swarm-{spec.sweep}-{INTEGRATOR_SLUG}"


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """Where the agent of one attempt lives."""

    agent_id: str
    state_dir: Path
    work_dir: Path


def place_of(spec: SweepSpec, agent: str, attempt: int) -> AgentPlace:
    """Derive the id and folders of an agent.

    The id tells our agent from one of the same name that another sweep, or a person, has made.
    """
    key = "\0".join((spec.repository, spec.sweep, repr(spec.created_at), agent, str(attempt)))
    agent_id = f"agent-{hashlib.sha256(key.encode()).hexdigest()[:32]}"
    home = Path(spec.mngr.host_dir or "~/.mngr").expanduser()
    copies = "worktrees" if spec.transfer == "worktree" else "copies"
    return AgentPlace(agent_id, home / "agents" / agent_id, home / copies / f"{agent}-{attempt}")


def harvest_ref(spec: SweepSpec, branch: str) -> str:
    """Return the ref under which an agent's commits are kept in the user's repository."""
    return f"refs/swarm/{spec.sweep}/{branch.rsplit('/', 1)[-1]}"

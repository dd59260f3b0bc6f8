"""A mngr in memory, which keeps the contract of the adapter without starting a process for an agent."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from swarm_tui.adapters.mngr_messages import (
    ActionReport,
    AgentDetails,
    AgentFailure,
    AgentListing,
    Created,
    CreateRequest,
    MessageReport,
    Plugin,
    checked_address,
)
from swarm_tui.errors import AgentExists
from swarm_tui.hosts.protocol import AgentState


@dataclass
class FakeAgent:
    """An agent without a process; a test sets its state."""

    agent_id: str
    request: CreateRequest
    work_dir: Path
    state_dir: Path
    state: AgentState = "WAITING"
    is_at_prompt: bool = False
    received: list[str] = field(default_factory=list)
    screen: list[str] = field(default_factory=list)

    @property
    def is_alive(self) -> bool:
        """Return whether the agent can get messages."""
        return self.state in ("RUNNING", "WAITING")


def _ignore(agent: FakeAgent, text: str) -> None:
    """Ignore a message."""


class FakeMngr:
    """Keeps agents in memory, and their state and work folders below one root."""

    def __init__(self, root: Path, react: Callable[[FakeAgent, str], None] = _ignore) -> None:
        self.root = root
        self.agents: dict[str, FakeAgent] = {}
        self.settings: dict[str, str] = {}
        # Called with each message that an agent gets, the first one included.
        self._react = react

    async def plugins(self) -> tuple[Plugin, ...]:
        return tuple(Plugin(name=name, enabled=True) for name in ("claude", "command", "local"))

    async def create(self, request: CreateRequest, timeout: float = 0.0) -> Created:
        if request.name in self.agents:
            raise AgentExists(f"an agent named {request.name} exists already", "adopt it or destroy it")
        agent_id = _option(request, "--id") or f"agent-{uuid.uuid4().hex}"
        work_dir = Path(_option(request, "--target-path") or self.root / "copies" / agent_id)
        agent = FakeAgent(agent_id, request, work_dir, self.root / "agents" / agent_id)
        agent.work_dir.mkdir(parents=True)
        agent.state_dir.mkdir(parents=True, exist_ok=True)
        self.agents[request.name] = agent
        (agent.state_dir / "data.json").write_text(json.dumps({"id": agent_id, "name": request.name}))
        if request.message is not None:
            self._deliver(agent, request.message)
        return Created(agent_id=agent_id)

    async def list_agents(self, provider: str | None = "local") -> AgentListing:
        listed = (agent for agent in self.agents.values() if provider in (None, agent.request.provider))
        return AgentListing(agents=tuple(map(_details, listed)))

    async def stop(self, names: Sequence[str]) -> ActionReport:
        present, missing = self._present(names)
        for name in present:
            self.agents[name].state = "STOPPED"
        return ActionReport(done=present, missing=missing)

    async def start(self, names: Sequence[str]) -> ActionReport:
        present, missing = self._present(names)
        for name in present:
            # mngr says "started" of an agent that is DONE too, and leaves it as it is: its session is still there.
            if self.agents[name].state == "STOPPED":
                self.agents[name].state = "WAITING"
        return ActionReport(done=present, missing=missing)

    async def destroy(self, names: Sequence[str], *, is_branch_deleted: bool = False) -> ActionReport:
        present, missing = self._present(names)
        for name in present:
            agent = self.agents.pop(name)
            shutil.rmtree(agent.work_dir, ignore_errors=True)
            shutil.rmtree(agent.state_dir, ignore_errors=True)
        return ActionReport(done=present, missing=missing)

    async def destroy_host(self, name: str, provider: str) -> None:
        on_it = [agent for agent in self.agents.values() if agent.request.host == name]
        await self.destroy([agent.request.name for agent in on_it])

    async def message(self, names: Sequence[str], text: str) -> MessageReport:
        present, missing = self._present(names)
        sent, failed = [], []
        for name in present:
            agent = self.agents[name]
            if agent.is_alive:
                self._deliver(agent, text)
                sent.append(name)
            else:
                failed.append(AgentFailure(agent=name, error=f"Agent is not running (state: {agent.state})"))
        return MessageReport(sent=tuple(sent), failed=tuple(failed), missing=missing)

    async def set_config(self, key: str, value: str) -> None:
        self.settings[key] = value

    def connect_command(self, name: str) -> list[str]:
        return ["mngr", "connect", checked_address(name)]

    def _deliver(self, agent: FakeAgent, text: str) -> None:
        agent.received.append(text)
        self._react(agent, text)

    def _present(self, names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        checked = [checked_address(name) for name in dict.fromkeys(names)]
        present = tuple(name for name in checked if name in self.agents)
        return present, tuple(name for name in checked if name not in self.agents)


def _option(request: CreateRequest, name: str) -> str | None:
    words = request.extra_arguments
    return words[words.index(name) + 1] if name in words else None


def _details(agent: FakeAgent) -> AgentDetails:
    return AgentDetails(
        id=agent.agent_id,
        name=agent.request.name,
        work_dir=str(agent.work_dir),
        initial_branch=agent.request.branch,
        state=agent.state,
        labels=dict(agent.request.labels),
    )

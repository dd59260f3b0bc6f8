"""A host with the agents of a mngr in memory: their files are real, their processes and terminals are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from swarm_tui.adapters.tmux import Tmux
from swarm_tui.hosts.local import LocalHost
from swarm_tui.hosts.protocol import AgentAddress, AgentStatus, AgentStatuses
from swarm_tui.model.spec import LOCAL_HOST, MngrSettings
from tests.fake_mngr import FakeAgent, FakeMngr


class FakeTmux(Tmux):
    """The terminals of the fake mngr's agents."""

    def __init__(self, mngr: FakeMngr) -> None:
        super().__init__({})
        self._mngr = mngr
        self.protected: set[str] = set()
        self.forgotten: tuple[str, ...] = ()

    async def capture(self, sessions: Sequence[str], *, history: int = 0) -> dict[str, str | None]:
        screens: dict[str, str | None] = {}
        for session in sessions:
            agent = self._mngr.agents.get(session.removeprefix("mngr-"))
            is_shown = agent is not None and agent.state != "STOPPED"
            screens[session] = "\n".join(agent.screen) + "\n" if agent is not None and is_shown else None
        return screens

    async def protect_session(self, session: str) -> None:
        self.protected.add(session)

    async def forget_variables(self, names: Sequence[str]) -> None:
        self.forgotten = tuple(names)


class FakeHost(LocalHost):
    """This machine's files, and the states and screens of the fake mngr's agents."""

    def __init__(self, mngr: FakeMngr, name: str = LOCAL_HOST) -> None:
        super().__init__(MngrSettings(path="mngr", host_dir=str(mngr.root), home=str(mngr.root)))
        self.name = name
        self.tmux: FakeTmux = FakeTmux(mngr)
        self._mngr = mngr

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        return AgentStatuses({agent.agent_id: _status(agent, self.name) for agent in self._mngr.agents.values()})

    async def record_terminal(self, agent: AgentAddress, cast: Path) -> None:
        cast.parent.mkdir(parents=True, exist_ok=True)
        cast.write_text("")


def _status(agent: FakeAgent, host: str) -> AgentStatus:
    address = AgentAddress(
        name=agent.request.name,
        agent_id=agent.agent_id,
        session=f"mngr-{agent.request.name}",
        state_dir=str(agent.state_dir),
        work_dir=str(agent.work_dir),
        host=host,
    )
    return AgentStatus(
        address,
        agent.state,
        branch=agent.request.branch,
        labels=dict(agent.request.labels),
        is_at_prompt=agent.is_at_prompt,
    )

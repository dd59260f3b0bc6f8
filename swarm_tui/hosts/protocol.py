"""What every place offers for many agents at once, and the data that it speaks of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from swarm_tui.errors import AdapterError
from swarm_tui.model.hosts import LOCAL_HOST, mngr_address

if TYPE_CHECKING:
    from swarm_tui.adapters.git import Repository
    from swarm_tui.adapters.processes.run import Finished
    from swarm_tui.hosts.attach import Attacher

AgentState = Literal["RUNNING", "WAITING", "DONE", "STOPPED", "REPLACED"]
"""As mngr names it; REPLACED: another program than the agent's runs in its terminal."""

AgentFolder = Literal["state", "work"]
"""mngr's folder of the agent, or its copy of the repository."""


class HostUnreachable(AdapterError):
    """The place did not answer: what was known of its agents is stale, and not contradicted."""


@dataclass(frozen=True, slots=True)
class AgentAddress:
    """Where one agent lives. The folders are paths of its place: only the place may open them."""

    name: str
    agent_id: str
    session: str
    """Its tmux session."""
    state_dir: str
    work_dir: str
    host: str = LOCAL_HOST
    """The host that it lives on."""

    @property
    def mngr_name(self) -> str:
        """Its name for mngr: NAME on this machine, else NAME@HOST.PROVIDER."""
        return mngr_address(self.name, self.host)


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """What one agent is doing."""

    address: AgentAddress
    state: AgentState
    process_id: int | None = None
    """The agent's own process while it is RUNNING or WAITING."""
    branch: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    agent_type: str = ""
    """Its type as mngr knows it; empty where only the agent's name matters."""
    created_at: str = ""
    """When mngr made it, as mngr wrote it down."""
    is_at_prompt: bool = False
    """The shell below its program is in front: text typed now would be run as a command."""

    @property
    def name(self) -> str:
        return self.address.name

    @property
    def reads_input(self) -> bool:
        """Whether text typed into its terminal reaches the agent's program."""
        return self.state in ("RUNNING", "WAITING") and not self.is_at_prompt


@dataclass(frozen=True, slots=True)
class AgentStatuses:
    """All agents of a place by their ids, and what is not known."""

    agents: Mapping[str, AgentStatus]
    unreadable: tuple[str, ...] = ()
    """The ids of agents whose records cannot be read."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """The hosts that do not answer, each with the reason: nothing is known of their agents."""

    @property
    def by_name(self) -> dict[str, AgentStatus]:
        """The same by name; on several hosts two may have one."""
        return {status.name: status for status in self.agents.values()}

    def is_unknown(self, address: AgentAddress) -> bool:
        """Return whether nothing can be told of an agent, not even that it is gone."""
        return address.agent_id in self.unreadable or address.host in self.lost


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file in one of an agent's folders, by its relative path."""

    agent: AgentAddress
    path: str
    folder: AgentFolder = "state"


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Ask for at most `limit` bytes of a file from `offset` on; with a limit of 0, for its size only."""

    file: AgentFile
    offset: int = 0
    limit: int = 0
    is_whole: bool = False
    """The file is not appended to but written anew, and is read from its beginning."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A part of a regular file, and the size of the whole."""

    size: int
    offset: int = 0
    """As requested, or 0 when the file has become shorter than that."""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file that fits a pattern."""

    path: str
    size: int
    modified_at: float


@dataclass(frozen=True, slots=True)
class HostReport:
    """How it stands with the connection to a host."""

    host: str
    is_there: bool
    reason: str = ""
    """Why it does not answer; empty while it is there, and until the first answer is due."""
    heard_at: float = 0.0
    load: float = 0.0
    processors: int = 0


class Host(Protocol):
    """One host with agents, or several. Every call answers for many agents; none starts a process for each of them.

    PlaceUnreachable is raised by any of them when a host that was asked does not answer. The calls `latest_...` wait
    for no other machine: they return what it said last, some tenths of a second ago.
    """

    def host_dir_of(self, host: str) -> str:
        """Return the folder of mngr on a host."""
        ...

    def reports(self) -> Sequence[HostReport]:
        """Return how it stands with the other machines of this place; waits for none."""
        ...

    async def has_mngr(self) -> bool:
        """Return whether mngr's folder is in this place; it is made with the first agent."""
        ...

    async def agent_statuses(self) -> AgentStatuses:
        """Return what all agents of this place are doing."""
        ...

    async def latest_statuses(self) -> AgentStatuses:
        """Return the same as far as it is known; hosts that do not answer are named in it."""
        ...

    async def latest_files(self, requests: Sequence[ReadRequest]) -> list[FileSlice | None]:
        """Return a slice for each request that is repeated again and again; None also for a file not seen yet.

        Files that are not asked for any more are forgotten.
        """
        ...

    async def latest_found(self, agents: Sequence[AgentAddress], patterns: Sequence[str]) -> list[list[FoundFile]]:
        """Return what `find_files` would, as far as it is known."""
        ...

    def on_news(self, tell: Callable[[str], object]) -> None:
        """Call `tell` with an agent's id, in the event loop, when a file that `latest_files` returns may have changed.

        It is a hint, and called often: who is told looks now and then all the same.
        """
        ...

    def tells_all_news(self) -> bool:
        """Return whether every such change is told; else one has to look again and again."""
        ...

    async def read_files(self, requests: Sequence[ReadRequest]) -> list[FileSlice | None]:
        """Return a slice for each request; None where there is no regular file."""
        ...

    async def find_files(self, agents: Sequence[AgentAddress], patterns: Sequence[str]) -> list[list[FoundFile]]:
        """Return for each agent the files of its state folder that fit a pattern such as `events/*/log`."""
        ...

    async def fetch_file(self, file: AgentFile, target: Path, *, limit: int) -> bool:
        """Copy at most the first `limit` bytes of a file to this machine; False when there is none.

        The target is replaced by a whole copy or stays as it is; OSError when it cannot be written.
        """
        ...

    async def write_file(self, file: AgentFile, content: bytes, *, is_new: bool = False) -> None:
        """Write a small file whole, or not at all; its folder is made. OSError when it cannot be written.

        With `is_new`, FileExistsError when there is one already, which stays as it is.
        """
        ...

    async def run(self, agent: AgentAddress, words: Sequence[str], *, timeout: float = 60.0) -> Finished:
        """Run a command in the agent's copy of the repository."""
        ...

    async def fetch_commits(self, agent: AgentAddress, repository: Repository, *, base: str, tip: str, ref: str) -> str:
        """Fetch a commit of the agent's copy as `ref` and return it; "" when it adds nothing to the base."""
        ...

    async def uncommitted_paths(self, agent: AgentAddress, *, without: str) -> tuple[str, ...]:
        """Return what the agent's copy holds beyond its last commit, outside the folder `without`.

        Return nothing when the copy is gone; SwarmError when it is no git repository any more.
        """
        ...

    async def uncommitted_patch(self, agent: AgentAddress, *, without: str, limit: int) -> bytes:
        """Return the same as a patch, whole; SwarmError when it is larger than `limit` bytes."""
        ...

    async def capture_screens(self, agents: Sequence[AgentAddress], *, history: int = 0) -> dict[str, str | None]:
        """Return by session what the agents' terminals show, colours included; None where there is no terminal."""
        ...

    async def protect_session(self, agent: AgentAddress) -> None:
        """Disable the keys in an agent's terminal by which mngr destroys and stops agents."""
        ...

    async def forget_variables(self, agent: AgentAddress, names: Sequence[str]) -> None:
        """Keep variables that an agent was given from the terminals of others on its host."""
        ...

    async def record_terminal(self, agent: AgentAddress, cast: Path) -> None:
        """Record what an agent's terminal shows, from now to its end, into a new file on this machine."""
        ...

    async def close(self) -> None:
        """End the connections to other machines; a later call opens them again."""
        ...

    def attacher(self, host: str, own: Mapping[str, str] | None = None) -> Attacher:
        """Return the way to connect a person's terminal to a host's agents; `own` is that terminal's environment."""
        ...

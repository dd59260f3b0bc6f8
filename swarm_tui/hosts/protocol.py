"""The protocol of a host, and its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from swarm_tui.adapters.processes.run import OUTPUT_LIMIT, Finished
from swarm_tui.errors import AdapterError
from swarm_tui.model.spec import LOCAL_HOST, HostSettings, mngr_address

if TYPE_CHECKING:
    from swarm_tui.adapters.tmux import Tmux

AgentState = Literal["RUNNING", "WAITING", "DONE", "STOPPED", "REPLACED"]
"""A state in mngr's words. REPLACED: another program than the agent's runs in its terminal."""

AgentFolder = Literal["state", "work"]
"""mngr's folder of the agent, or its copy of the repository."""


class HostUnreachable(AdapterError):
    """The host did not answer. Its agents are as they were when it last answered."""


class HostUnfit(HostUnreachable):
    """The host answers, but cannot run the program of swarm-tui, and never will."""


@dataclass(frozen=True, slots=True)
class AgentAddress:
    """The host, the folders and the session of an agent. The folders are paths on its host."""

    name: str
    agent_id: str
    session: str
    """The agent's tmux session."""
    state_dir: str
    work_dir: str
    host: str = LOCAL_HOST

    @property
    def mngr_name(self) -> str:
        """Return the name for mngr: NAME on this machine, otherwise NAME@HOST.PROVIDER."""
        return mngr_address(self.name, self.host)


@dataclass(frozen=True, slots=True)
class AgentStatus:
    """The state of an agent."""

    address: AgentAddress
    state: AgentState
    process_id: int | None = None
    """The agent's own process while the agent is RUNNING or WAITING."""
    branch: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    agent_type: str = ""
    """The name of the type in mngr."""
    created_at: str = ""
    """The time of creation in mngr's format."""
    is_at_prompt: bool = False
    """A shell reads the terminal, so it would run a text that is typed now as a command."""

    @property
    def name(self) -> str:
        return self.address.name

    @property
    def reads_input(self) -> bool:
        """Whether the agent's program reads a text that is typed into its terminal."""
        return self.state in ("RUNNING", "WAITING") and not self.is_at_prompt


@dataclass(frozen=True, slots=True)
class AgentStatuses:
    """The states of all agents by their ids."""

    agents: Mapping[str, AgentStatus]
    unreadable: tuple[str, ...] = ()
    """The ids of agents whose records are unreadable."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """The hosts that do not answer, each with the reason. The states of their agents are unknown."""

    @property
    def by_name(self) -> dict[str, AgentStatus]:
        """The states by name. Agents on different hosts can have the same name."""
        return {status.name: status for status in self.agents.values()}

    def is_unknown(self, address: AgentAddress) -> bool:
        """Return whether the state of an agent is unknown, so that the agent may or may not exist."""
        return address.agent_id in self.unreadable or address.host in self.lost


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file in one of an agent's folders, by its relative path."""

    agent: AgentAddress
    path: str
    folder: AgentFolder = "state"

    @property
    def full_path(self) -> str:
        return f"{self.agent.state_dir if self.folder == 'state' else self.agent.work_dir}/{self.path}"


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """Read at most `limit` bytes of a file from `offset`. A limit of 0 reads only the size."""

    file: AgentFile
    offset: int = 0
    limit: int = 0
    is_whole: bool = False
    """The file is replaced, not appended to, and is read from its beginning."""


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A part of a regular file, and the size of the file."""

    size: int
    offset: int = 0
    """The requested offset, or 0 if the file has become shorter than that."""
    content: bytes = b""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A regular file that matches a pattern."""

    path: str
    size: int
    modified_at: float


@dataclass(frozen=True, slots=True)
class HostReport:
    """The state of the connection to a host."""

    host: str
    is_there: bool
    reason: str = ""
    """Why the host does not answer. Empty while it answers, and during the first connection."""
    heard_at: float = 0.0
    load: float = 0.0
    processors: int = 0
    greeting: str = ""
    """The output of the host's shell before every command."""


class Host(Protocol):
    """A machine with agents. A call for many agents takes no process per agent.

    All coroutines raise HostUnreachable if the host does not answer. With `follow`, they return at once what the host
    reported last, some tenths of a second ago; from then on, the host reports changes. Use it for repeated calls.
    """

    @property
    def name(self) -> str:
        """LOCAL_HOST, or NAME.PROVIDER."""
        ...

    @property
    def settings(self) -> HostSettings | None:
        """How to connect to the host; None for this machine."""
        ...

    @property
    def host_dir(self) -> str:
        """mngr's folder on the host."""
        ...

    @property
    def tmux(self) -> Tmux:
        """The tmux server of the agents."""
        ...

    def report(self) -> HostReport | None:
        """Return the state of the connection; None for this machine."""
        ...

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        """Return the states of all agents. With `follow`, a host that does not answer is in `lost`."""
        ...

    async def read_files(self, requests: Sequence[ReadRequest], *, follow: bool = False) -> list[FileSlice | None]:
        """Return a slice for each request; None if there is no regular file or, with `follow`, no report of it yet."""
        ...

    async def find_files(
        self, agents: Sequence[AgentAddress], patterns: Sequence[str], *, follow: bool = False
    ) -> list[list[FoundFile]]:
        """Return for each agent the files of its state folder that match a pattern such as `events/*/log`."""
        ...

    def on_change(self, tell: Callable[[str], object]) -> None:
        """Call `tell` with an agent's id, in the event loop, when a followed file may have changed."""
        ...

    def reports_changes(self) -> bool:
        """Return whether all changes are reported. If not, poll."""
        ...

    async def fetch_file(self, path: str, target: Path, *, limit: int) -> bool:
        """Copy at most the first `limit` bytes of a file to this machine; return False if there is no file.

        The target is replaced by a complete copy or not at all. Raise OSError if it cannot be written.
        """
        ...

    async def write_file(self, path: str, content: bytes, *, mode: int = 0o600, is_new: bool = False) -> None:
        """Write a small file completely or not at all, and create its folder. Raise OSError if that fails.

        With `is_new`, an existing file is not replaced: raise FileExistsError.
        """
        ...

    async def run(
        self,
        words: Sequence[str],
        *,
        cwd: str | None = None,
        stdin: bytes | None = None,
        timeout: float = 60.0,
        output_limit: int = OUTPUT_LIMIT,
    ) -> Finished:
        """Run a command on the host."""
        ...

    async def record_terminal(self, agent: AgentAddress, cast: Path) -> None:
        """Record an agent's terminal from now until its end, into a new file on this machine."""
        ...

    async def close(self) -> None:
        """Close the connection. The next call opens it again."""
        ...

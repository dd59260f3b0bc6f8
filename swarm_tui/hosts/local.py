"""This machine as a host."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Final, TypeVar, cast

from swarm_tui.adapters.file_notices import FileNotices, NoticedFile
from swarm_tui.adapters.mngr_settings import AgentTypes, host_dir_of, mngr_environment
from swarm_tui.adapters.processes.ends import ProcessEnds
from swarm_tui.adapters.processes.environment import project_environment
from swarm_tui.adapters.processes.run import OUTPUT_LIMIT, Finished, run_process
from swarm_tui.adapters.tmux import Pane, Tmux
from swarm_tui.errors import AdapterError, NoTmuxServer, raise_shortage
from swarm_tui.files import read_regular, replacing
from swarm_tui.hosts import program
from swarm_tui.hosts.processes import (
    PS_COMMAND,
    AgentTable,
    ProcessTable,
    agent_panes,
    parse_processes,
)
from swarm_tui.hosts.protocol import (
    AgentAddress,
    AgentStatuses,
    FileSlice,
    FoundFile,
    HostReport,
    HostUnreachable,
    ReadRequest,
)
from swarm_tui.model.spec import LOCAL_HOST, HostSettings, MngrSettings
from swarm_tui.model.text import parse_json

# mngr writes a note every 5 s while a pane exists. Older notes mean nothing.
_PANE_NOTE_LIFETIME: Final = 12.0
_PS_TIMEOUT: Final = 10.0


def has_live_pane(state_dir: str, processes: ProcessTable) -> bool:
    """Return whether mngr has just noted a pane of this agent, whose process exists."""
    note = Path(state_dir, "activity", "process")
    try:
        if time.time() - note.stat().st_mtime > _PANE_NOTE_LIFETIME:
            return False
        return int(parse_json(read_regular(note))["pane_pid"]) in processes.command_of
    except (OSError, ValueError, KeyError, TypeError):
        return False


async def list_processes(environment: Mapping[str, str]) -> ProcessTable | None:
    """Return all processes of this machine; None if the list is incomplete, without our own process."""
    finished = await run_process(PS_COMMAND, environment=environment, timeout=_PS_TIMEOUT)
    processes = parse_processes(finished.text)
    is_whole = finished.code == 0 and not finished.is_truncated and os.getpid() in processes.command_of
    return processes if is_whole else None


STATUS_PAUSE: Final = 0.05
"""The minimum of seconds between two calls."""


class StatusNotices:
    """Follows mngr's files and the agents' processes for one event loop.

    It does not notice when another program is started in an agent's terminal.
    """

    def __init__(self, host_dir: Path, tell: Callable[[], object]) -> None:
        self._tell = tell
        self._notices = FileNotices()
        self._ends = ProcessEnds(tell)
        self._agents = host_dir / "agents"
        self._files: dict[Path, tuple[NoticedFile, ...]] = {self._agents: self._followed(self._agents / "*")}
        self.is_complete = False
        """Whether all other changes are reported."""

    def follow(self, folders: Iterable[Path], process_ids: Iterable[int]) -> None:
        """Follow the agents with these folders, and the processes of their terminals."""
        wanted = {self._agents, *folders}
        for folder in self._files.keys() - wanted:
            for file in self._files.pop(folder):
                file.close()
        if new := wanted - self._files.keys():
            # There may have been changes before.
            self._tell()
        for folder in new:
            # mngr writes this file when it starts a stopped agent.
            self._files[folder] = self._followed(folder / "*", folder / "activity" / "start")
        are_noticed = all(file.is_noticed for files in self._files.values() for file in files)
        self.is_complete = self._ends.follow(process_ids) and are_noticed

    def _followed(self, *paths: Path) -> tuple[NoticedFile, ...]:
        return tuple(self._notices.follow(path, self._tell, pause=STATUS_PAUSE) for path in paths)

    def close(self) -> None:
        self._notices.close()
        self._ends.close()


# As in the mirror of a host: files that were not requested for this time are not followed any more.
FORGOTTEN_AFTER: Final = 30.0
FILE_PAUSE: Final = 0.01
"""The minimum of seconds between two notifications about a file."""


class LocalFiles:
    """Follows files of agents with notifications of the system, once `tell` is set."""

    def __init__(self) -> None:
        self.tell: Callable[[str], object] | None = None
        self._notices: FileNotices | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._files: dict[str, tuple[NoticedFile, float]] = {}
        """By path, each with the time of the last request."""
        self._swept_at = 0.0
        self.is_complete = True
        """Whether every change is reported."""

    def follow(self, files: Iterable[tuple[str, str]]) -> None:
        """Follow files by the ids of their agents. A path that ends in `/*` means all files of a folder."""
        if self.tell is None:
            return
        loop = asyncio.get_running_loop()
        if self._notices is None or self._loop is not loop:
            self.close()
            self._notices, self._loop = FileNotices(), loop
        now = time.monotonic()
        for agent, path in files:
            known = self._files.get(path)
            file = (
                known[0]
                if known is not None
                else self._notices.follow(path, partial(self.tell, agent), pause=FILE_PAUSE)
            )
            self.is_complete = self.is_complete and file.is_noticed
            self._files[path] = file, now
        if now >= self._swept_at + FORGOTTEN_AFTER:
            self._swept_at = now
            for path in [path for path, (_, asked_at) in self._files.items() if asked_at < now - FORGOTTEN_AFTER]:
                self._files.pop(path)[0].close()
            self.is_complete = all(file.is_noticed for file, _ in self._files.values())

    def close(self) -> None:
        if self._notices is not None and self._loop is not None and not self._loop.is_closed():
            self._notices.close()
        self._notices = None
        self._files.clear()


_CHUNK: Final = 1 << 20

_First = TypeVar("_First")
_Second = TypeVar("_Second")


class LocalHost:
    """This machine, with one home of mngr."""

    settings: HostSettings | None = None

    def __init__(
        self, mngr: MngrSettings, repository: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = LOCAL_HOST
        self._prefix = mngr.prefix
        self.tmux = Tmux(mngr_environment(mngr, environment))
        folder = host_dir_of(mngr)
        self.host_dir = str(folder)
        self._records = program.AgentRecords()
        self._agent_types = AgentTypes(folder, repository)
        self._files = LocalFiles()
        self._changes: StatusNotices | None = None

    def report(self) -> HostReport | None:
        return None

    async def close(self) -> None:
        if self._changes is not None:
            self._changes.close()
        self._files.close()

    # States of agents.

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        try:
            # Read records first, so that an agent that is created now is in the next answer.
            records, unreadable = self._records.read(f"{self.host_dir}/agents")
            panes, processes = await _both(self._panes(), list_processes(self.tmux.environment))
        except AdapterError as error:
            raise HostUnreachable(error.message, error.hint) from error
        except OSError as error:
            raise HostUnreachable(str(error)) from error
        if processes is None:
            raise HostUnreachable("ps lists no processes", "install procps; the ps of busybox is not enough")
        types = self._agent_types.parents()
        table = AgentTable(self.name, f"{self.host_dir}/agents", self._prefix, panes, processes, types)
        agents = {}
        for folder, (record, is_active) in records.items():
            if table.pane_of(record) is None and has_live_pane(f"{table.agents_dir}/{folder}", processes):
                raise HostUnreachable(
                    f"the agent {record['name']} runs on another tmux server",
                    f"TMUX_TMPDIR is {self.tmux.environment.get('TMUX_TMPDIR') or 'not set'}",
                )
            status = table.status(folder, record, is_active=is_active)
            agents[status.address.agent_id] = status
        if self._changes is not None:
            in_terminals = {pane.process_id for pane in panes.values()} & processes.command_of.keys()
            of_agents = {status.process_id for status in agents.values() if status.process_id is not None}
            self._changes.follow((Path(table.agents_dir, folder) for folder in records), in_terminals | of_agents)
        return AgentStatuses(agents, tuple(unreadable))

    def on_status_change(self, tell: Callable[[], object]) -> None:
        """Call `tell` when the state of an agent may have changed since the last call of `statuses`."""
        self._changes = StatusNotices(Path(self.host_dir), tell)

    def reports_status_changes(self) -> bool:
        """Return whether all changes of states are reported. If not, poll."""
        return self._changes is not None and self._changes.is_complete

    async def _panes(self) -> dict[str, Pane]:
        try:
            return agent_panes(await self.tmux.list_panes())
        except NoTmuxServer:
            return {}

    # Files.

    async def read_files(self, requests: Sequence[ReadRequest], *, follow: bool = False) -> list[FileSlice | None]:
        if follow:
            self._files.follow((request.file.agent.agent_id, request.file.full_path) for request in requests)
        with _own_shortage():
            return [_read_slice(request) for request in requests]

    async def find_files(
        self, agents: Sequence[AgentAddress], patterns: Sequence[str], *, follow: bool = False
    ) -> list[list[FoundFile]]:
        if follow:
            searched = {_searched_first(pattern) for pattern in patterns}
            self._files.follow((agent.agent_id, f"{agent.state_dir}/{path}") for agent in agents for path in searched)
        with _own_shortage():
            found = [program.find(agent.state_dir, patterns) for agent in agents]
        return [[FoundFile(*file) for file in files] for files in found]

    def on_change(self, tell: Callable[[str], object]) -> None:
        self._files.tell = tell

    def reports_changes(self) -> bool:
        return self._files.is_complete

    async def fetch_file(self, path: str, target: Path, *, limit: int) -> bool:
        with _own_shortage():
            descriptor = program.open_regular(path)
        if descriptor is None:
            return False
        try:
            with replacing(target, is_synced=False) as copy:
                offset = 0
                while offset < limit and (chunk := os.pread(descriptor, min(_CHUNK, limit - offset), offset)):
                    # Writing a long file must not block the event loop.
                    await asyncio.to_thread(copy.write, chunk)
                    offset += len(chunk)
        finally:
            os.close(descriptor)
        return True

    async def write_file(self, path: str, content: bytes, *, mode: int = 0o600, is_new: bool = False) -> None:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with replacing(Path(path), mode, is_new=is_new, is_synced=False) as draft:
            draft.write(content)

    # Programs.

    async def run(
        self,
        words: Sequence[str],
        *,
        cwd: str | None = None,
        stdin: bytes | None = None,
        timeout: float = 60.0,
        output_limit: int = OUTPUT_LIMIT,
    ) -> Finished:
        return await run_process(
            words,
            cwd=None if cwd is None else Path(cwd),
            environment=project_environment(),
            stdin=stdin,
            timeout=timeout,
            output_limit=output_limit,
        )

    async def record_terminal(self, agent: AgentAddress, cast: Path) -> None:
        from swarm_tui.adapters.recorder import record_pane

        await record_pane(self.tmux, agent.session, cast)


async def _both(first: Awaitable[_First], second: Awaitable[_Second]) -> tuple[_First, _Second]:
    """Wait for both. If one fails, wait for the other before raising, which `gather` does not do."""
    answers = await asyncio.gather(first, second, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return cast(tuple[_First, _Second], tuple(answers))


def _read_slice(request: ReadRequest) -> FileSlice | None:
    found = program.read_slice(request.file.full_path, request.offset, request.limit)
    return None if found is None else FileSlice(*found)


def _searched_first(pattern: str) -> str:
    """Return a pattern up to its first folder with unknown names, as `logs/*`."""
    parts = pattern.split("/")
    known = list(takewhile(lambda part: not set(part) & set("*?["), parts))
    return "/".join(known if len(known) == len(parts) else [*known, "*"])


@contextlib.contextmanager
def _own_shortage() -> Iterator[None]:
    """Raise ResourceShortage if no file can be opened now, so that an existing file is not taken for a missing one."""
    try:
        yield
    except OSError as error:
        raise_shortage(error)
        raise

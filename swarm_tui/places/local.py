"""This machine as a place: its files are opened, its processes and its tmux server are asked once for all agents."""

from __future__ import annotations

import asyncio
import fnmatch
import os
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.mngr_settings import AgentTypes, mngr_environment
from swarm_tui.adapters.process import Finished, run_process
from swarm_tui.adapters.tmux import Pane, Tmux
from swarm_tui.errors import AdapterError, NoTmuxServer
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.sweep import MngrSettings
from swarm_tui.places.attach import Attacher
from swarm_tui.places.local_agents import AgentRecords, has_live_pane, list_processes
from swarm_tui.places.local_changes import LocalChanges
from swarm_tui.places.local_news import LocalNews
from swarm_tui.places.mngr_agents import ProcessTable, decide_state, expected_process, is_at_prompt
from swarm_tui.places.place import (
    AgentAddress,
    AgentFile,
    AgentStatus,
    AgentStatuses,
    FileSlice,
    FoundFile,
    HostReport,
    PlaceUnreachable,
    ReadRequest,
)

if TYPE_CHECKING:
    from swarm_tui.adapters.git import Repository

_CHUNK: Final = 1 << 20
# An agent may fill its own folders with names.
_ENTRIES_READ: Final = 1_000

_First = TypeVar("_First")
_Second = TypeVar("_Second")


class LocalPlace:
    """The agents of one mngr home on this machine."""

    def __init__(
        self, settings: MngrSettings, repository: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._settings = settings
        self._repository = repository
        self.tmux = Tmux(mngr_environment(settings, environment))
        home = Path(settings.home or Path.home())
        self._host_dir = Path(settings.host_dir).expanduser() if settings.host_dir else home / ".mngr"
        self._records = AgentRecords(self._host_dir)
        self._agent_types = AgentTypes(self._host_dir, repository)
        self._news = LocalNews()
        self._changes: LocalChanges | None = None

    def host_dir_of(self, host: str) -> str:
        return str(self._host_dir)

    def reports(self) -> tuple[HostReport, ...]:
        return ()

    # What agents do.

    async def has_mngr(self) -> bool:
        return self._host_dir.is_dir()

    async def agent_statuses(self) -> AgentStatuses:
        try:
            # The records first: an agent that is made after that is in the next answer.
            records = self._records.read()
            panes, processes = await _both(self._panes(), list_processes(self.tmux.environment))
        except AdapterError as error:
            raise PlaceUnreachable(error.message, error.hint) from error
        except OSError as error:
            raise PlaceUnreachable(str(error)) from error
        if processes is None:
            raise PlaceUnreachable("ps gave no list of processes", "install procps: the ps of busybox cannot do it")
        parent_types = self._agent_types.parents()
        agents = {}
        for folder, record in records.items():
            pane = panes.get(str(record["id"])) or panes.get(self._session_of(record))
            if pane is None and has_live_pane(folder, processes):
                raise PlaceUnreachable(
                    f"the agent {record['name']} lives on another tmux server than the one that was asked",
                    f"asked with TMUX_TMPDIR={self.tmux.environment.get('TMUX_TMPDIR') or '(not set)'}",
                )
            expected = expected_process(str(record.get("type")), str(record.get("command") or ""), parent_types)
            agents[str(record["id"])] = self._status(folder, record, pane, processes, expected)
        if self._changes is not None:
            in_terminals = {pane.process_id for pane in panes.values()} & processes.command_of.keys()
            of_agents = {status.process_id for status in agents.values() if status.process_id is not None}
            self._changes.follow(records, in_terminals | of_agents)
        return AgentStatuses(agents, self._records.unreadable)

    def on_changes(self, tell: Callable[[], object]) -> None:
        """Call back when the statuses of agents may have changed, beginning with the next look at them."""
        self._changes = LocalChanges(self._host_dir, tell)

    def tells_all_changes(self) -> bool:
        return self._changes is not None and self._changes.is_complete

    async def latest_statuses(self) -> AgentStatuses:
        return await self.agent_statuses()

    def _status(
        self, folder: Path, record: dict[str, Any], pane: Pane | None, processes: ProcessTable, expected: str
    ) -> AgentStatus:
        is_active = (folder / "active").exists() and not (folder / "permissions_waiting").exists()
        state, process_id = decide_state(pane, processes, expected, is_active=is_active)
        labels = record.get("labels")
        return AgentStatus(
            address=AgentAddress(
                name=str(record["name"]),
                agent_id=str(record["id"]),
                session=pane.session if pane is not None else self._session_of(record),
                state_dir=str(folder),
                work_dir=str(record.get("work_dir") or ""),
            ),
            state=state,
            process_id=process_id,
            branch=branch if isinstance(branch := record.get("created_branch_name"), str) else None,
            labels=labels if isinstance(labels, dict) else {},
            agent_type=str(record.get("type") or ""),
            created_at=str(record.get("create_time") or ""),
            is_at_prompt=is_at_prompt(pane, processes),
        )

    def _session_of(self, record: Mapping[str, Any]) -> str:
        return f"{self._settings.prefix}{record['name']}"

    async def _panes(self) -> dict[str, Pane]:
        """Return the agents' panes by agent id and by session; none when no server runs any more."""
        try:
            listed = await self.tmux.list_panes()
        except NoTmuxServer:
            return {}
        panes: dict[str, Pane] = {}
        for pane in listed:
            if pane.is_agent_pane:
                panes.setdefault(pane.session, pane)
                if pane.agent_id:
                    panes.setdefault(pane.agent_id, pane)
        return panes

    # Their files.

    async def read_files(self, requests: Sequence[ReadRequest]) -> list[FileSlice | None]:
        return [_read_slice(request) for request in requests]

    async def find_files(self, agents: Sequence[AgentAddress], patterns: Sequence[str]) -> list[list[FoundFile]]:
        return [[file for pattern in patterns for file in _find_files(agent.state_dir, pattern)] for agent in agents]

    def on_news(self, tell: Callable[[str], object]) -> None:
        self._news.tell = tell

    def tells_all_news(self) -> bool:
        return self._news.is_complete

    async def latest_files(self, requests: Sequence[ReadRequest]) -> list[FileSlice | None]:
        self._news.follow((request.file.agent.agent_id, _path(request.file)) for request in requests)
        return [_read_slice(request) for request in requests]

    async def latest_found(self, agents: Sequence[AgentAddress], patterns: Sequence[str]) -> list[list[FoundFile]]:
        searched = {_searched_first(pattern) for pattern in patterns}
        self._news.follow((agent.agent_id, f"{agent.state_dir}/{path}") for agent in agents for path in searched)
        return await self.find_files(agents, patterns)

    async def fetch_file(self, file: AgentFile, target: Path, *, limit: int) -> bool:
        descriptor = _open_regular(_path(file))
        if descriptor is None:
            return False
        draft = target.with_name(f".{target.name}.draft")
        try:
            with draft.open("wb") as copy:
                offset = 0
                while offset < limit and (chunk := os.pread(descriptor, min(_CHUNK, limit - offset), offset)):
                    # A long file must not keep the event loop from everything else.
                    await asyncio.to_thread(copy.write, chunk)
                    offset += len(chunk)
            draft.replace(target)
        finally:
            os.close(descriptor)
        return True

    async def write_file(self, file: AgentFile, content: bytes, *, is_new: bool = False) -> None:
        path = Path(_path(file))
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        draft.write_bytes(content)
        if not is_new:
            draft.replace(path)
            return
        try:
            # A link is made only where there is nothing yet, and shows the file whole.
            os.link(draft, path)
        finally:
            draft.unlink(missing_ok=True)

    # Their copies.

    async def run(self, agent: AgentAddress, words: Sequence[str], *, timeout: float = 60.0) -> Finished:
        environment = scrubbed_environment()
        return await run_process(words, cwd=Path(agent.work_dir), environment=environment, timeout=timeout)

    async def fetch_commits(
        self, agent: AgentAddress, repository: Repository, *, base: str, branch: str, ref: str
    ) -> str:
        from swarm_tui.places.local_copies import fetch_from_copy

        copy = Path(agent.work_dir)
        return await asyncio.to_thread(fetch_from_copy, repository, copy, base=base, branch=branch, ref=ref)

    async def uncommitted_paths(self, agent: AgentAddress, *, without: str) -> tuple[str, ...]:
        from swarm_tui.places.local_copies import uncommitted_paths

        return await asyncio.to_thread(uncommitted_paths, Path(agent.work_dir), without)

    async def uncommitted_patch(self, agent: AgentAddress, *, without: str, limit: int) -> bytes:
        from swarm_tui.places.local_copies import uncommitted_patch

        return await asyncio.to_thread(uncommitted_patch, Path(agent.work_dir), without, limit)

    # Their terminals.

    async def capture_screens(self, agents: Sequence[AgentAddress], *, history: int = 0) -> dict[str, str | None]:
        return await self.tmux.capture([agent.session for agent in agents], history=history)

    async def protect_session(self, agent: AgentAddress) -> None:
        await self.tmux.protect_session(agent.session)

    async def forget_variables(self, agent: AgentAddress, names: Sequence[str]) -> None:
        await self.tmux.forget_variables(names)

    async def record_terminal(self, agent: AgentAddress, cast: Path) -> None:
        from swarm_tui.adapters.recorder import record_pane

        await record_pane(self.tmux, agent.session, cast)

    async def close(self) -> None:
        if self._changes is not None:
            self._changes.close()
        self._news.close()

    def attacher(self, host: str = LOCAL_HOST, own: Mapping[str, str] | None = None) -> Attacher:
        return Attacher(self, self.tmux, self._settings, self._repository, own)


async def _both(first: Awaitable[_First], second: Awaitable[_Second]) -> tuple[_First, _Second]:
    """Wait for both at once; when one fails the other has ended too, which `gather` alone does not ensure."""
    answers = await asyncio.gather(first, second, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return cast(tuple[_First, _Second], tuple(answers))


def _path(file: AgentFile) -> str:
    return os.path.join(file.agent.state_dir if file.folder == "state" else file.agent.work_dir, file.path)


def _open_regular(path: str) -> int | None:
    try:
        # An agent may put a pipe in the place of a file: opening it must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _read_slice(request: ReadRequest) -> FileSlice | None:
    path = _path(request.file)
    try:
        status = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    offset = request.offset if request.offset <= status.st_size else 0
    if not request.limit or offset == status.st_size:
        return FileSlice(status.st_size, offset)
    descriptor = _open_regular(path)
    if descriptor is None:
        return None
    try:
        return FileSlice(status.st_size, offset, os.pread(descriptor, request.limit, offset))
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _find_files(root: str, pattern: str) -> Iterator[FoundFile]:
    paths = [""]
    for part in pattern.split("/"):
        paths = [os.path.join(path, name) for path in paths for name in _names(os.path.join(root, path), part)]
    for path in paths:
        try:
            status = os.lstat(os.path.join(root, path))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            yield FoundFile(path, status.st_size, status.st_mtime)


def _searched_first(pattern: str) -> str:
    """Return the part of a pattern up to its first folder of unknown names, which all count: `logs/*`."""
    parts = pattern.split("/")
    known = list(takewhile(lambda part: not _is_open(part), parts))
    return "/".join(known if len(known) == len(parts) else [*known, "*"])


def _is_open(part: str) -> bool:
    return bool(set(part) & set("*?["))


def _names(folder: str, part: str) -> list[str]:
    if not _is_open(part):
        return [part]
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, _ENTRIES_READ) if fnmatch.fnmatch(entry.name, part))
    except OSError:
        return []

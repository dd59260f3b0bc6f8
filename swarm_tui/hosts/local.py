"""This machine as a host."""

from __future__ import annotations

import asyncio
import errno
import fnmatch
import os
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from swarm_tui.adapters.file_notices import FileNotices, NoticedFile
from swarm_tui.adapters.mngr_settings import AgentTypes, host_dir_of, mngr_environment
from swarm_tui.adapters.processes.ends import ProcessEnds
from swarm_tui.adapters.processes.environment import project_environment
from swarm_tui.adapters.processes.run import OUTPUT_LIMIT, Finished, run_process
from swarm_tui.adapters.tmux import Pane, Tmux
from swarm_tui.errors import AdapterError, NoTmuxServer, raise_shortage
from swarm_tui.files import read_regular, replacing
from swarm_tui.hosts.processes import (
    PS_COMMAND,
    ProcessTable,
    decide_state,
    expected_process,
    is_at_prompt,
    parse_processes,
)
from swarm_tui.hosts.protocol import (
    AgentAddress,
    AgentStatus,
    AgentStatuses,
    FileSlice,
    FoundFile,
    HostReport,
    HostUnreachable,
    ReadRequest,
)
from swarm_tui.model.hosts import LOCAL_HOST, HostSettings
from swarm_tui.model.spec import MngrSettings
from swarm_tui.model.text import parse_json, parse_object

# mngr writes a note every 5 s while a pane exists. Older notes mean nothing.
_PANE_NOTE_LIFETIME: Final = 12.0
_PS_TIMEOUT: Final = 10.0


@dataclass(slots=True)
class AgentRecords:
    """mngr's records of agents. A record is read again only if its file has changed."""

    host_dir: Path
    unreadable: tuple[str, ...] = ()
    """The ids of agents whose records were never readable."""
    _records: dict[str, tuple[tuple[int, int], dict[str, Any]]] = field(default_factory=dict)

    def read(self) -> dict[Path, dict[str, Any]]:
        """Return the records of agents by state folder. While a record is being written, keep its last content."""
        records: dict[Path, dict[str, Any]] = {}
        unreadable = []
        agents = self.host_dir / "agents"
        entries = list(os.scandir(agents)) if agents.is_dir() else []
        for entry in entries:
            folder = Path(entry.path)
            try:
                self._records[entry.name] = _read_record(folder / "data.json", self._records.get(entry.name))
            except FileNotFoundError:
                # The agent is being created, or was just destroyed.
                self._records.pop(entry.name, None)
                continue
            except (OSError, ValueError):
                if entry.name not in self._records:
                    unreadable.append(entry.name)
                    continue
            records[folder] = self._records[entry.name][1]
        self._records = {folder.name: self._records[folder.name] for folder in records}
        self.unreadable = tuple(unreadable)
        return records


def has_live_pane(state_dir: Path, processes: ProcessTable) -> bool:
    """Return whether mngr has just noted a pane of this agent, whose process exists."""
    note = state_dir / "activity" / "process"
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


def _read_record(
    path: Path, known: tuple[tuple[int, int], dict[str, Any]] | None
) -> tuple[tuple[int, int], dict[str, Any]]:
    status = path.stat()
    signature = (status.st_mtime_ns, status.st_size)
    if known is not None and known[0] == signature:
        return known
    record = parse_object(read_regular(path))
    if not record.get("id") or not record.get("name"):
        raise ValueError("not a record of an agent")
    return signature, record


CHANGES_PAUSE: Final = 0.05
"""The minimum of seconds between two calls."""


class LocalChanges:
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
        return tuple(self._notices.follow(path, self._tell, pause=CHANGES_PAUSE) for path in paths)

    def close(self) -> None:
        self._notices.close()
        self._ends.close()


# As in the mirror of a host: files that were not requested for this time are not followed any more.
FORGOTTEN_AFTER: Final = 30.0
NEWS_PAUSE: Final = 0.01
"""The minimum of seconds between two notifications about a file."""


class LocalNews:
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
                else self._notices.follow(path, partial(self.tell, agent), pause=NEWS_PAUSE)
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
# An agent can fill its own folders with files.
_ENTRIES_READ: Final = 1_000

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
        self._records = AgentRecords(folder)
        self._agent_types = AgentTypes(folder, repository)
        self._news = LocalNews()
        self._changes: LocalChanges | None = None

    def report(self) -> HostReport | None:
        return None

    async def close(self) -> None:
        if self._changes is not None:
            self._changes.close()
        self._news.close()

    # States of agents.

    async def statuses(self, *, follow: bool = False) -> AgentStatuses:
        try:
            # Read records first, so that an agent that is created now is in the next answer.
            records = self._records.read()
            panes, processes = await _both(self._panes(), list_processes(self.tmux.environment))
        except AdapterError as error:
            raise HostUnreachable(error.message, error.hint) from error
        except OSError as error:
            raise HostUnreachable(str(error)) from error
        if processes is None:
            raise HostUnreachable("ps lists no processes", "install procps; the ps of busybox is not enough")
        parent_types = self._agent_types.parents()
        agents = {}
        for folder, record in records.items():
            pane = panes.get(str(record["id"])) or panes.get(self._session_of(record))
            if pane is None and has_live_pane(folder, processes):
                raise HostUnreachable(
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

    def on_status_change(self, tell: Callable[[], object]) -> None:
        """Call `tell` when the state of an agent may have changed since the last call of `statuses`."""
        self._changes = LocalChanges(Path(self.host_dir), tell)

    def reports_status_changes(self) -> bool:
        """Return whether all changes of states are reported. If not, poll."""
        return self._changes is not None and self._changes.is_complete

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
        return f"{self._prefix}{record['name']}"

    async def _panes(self) -> dict[str, Pane]:
        """Return the agents' panes by agent id and by session; none if no server is running."""
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

    # Files.

    async def read_files(self, requests: Sequence[ReadRequest], *, follow: bool = False) -> list[FileSlice | None]:
        if follow:
            self._news.follow((request.file.agent.agent_id, request.file.full_path) for request in requests)
        return [_read_slice(request) for request in requests]

    async def find_files(
        self, agents: Sequence[AgentAddress], patterns: Sequence[str], *, follow: bool = False
    ) -> list[list[FoundFile]]:
        if follow:
            searched = {_searched_first(pattern) for pattern in patterns}
            self._news.follow((agent.agent_id, f"{agent.state_dir}/{path}") for agent in agents for path in searched)
        return [[file for pattern in patterns for file in _find_files(agent.state_dir, pattern)] for agent in agents]

    def on_change(self, tell: Callable[[str], object]) -> None:
        self._news.tell = tell

    def reports_changes(self) -> bool:
        return self._news.is_complete

    async def fetch_file(self, path: str, target: Path, *, limit: int) -> bool:
        descriptor = _open_regular(path)
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


def _open_regular(path: str) -> int | None:
    try:
        # An agent may replace a file with a pipe, and opening it must not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        _raise_own_shortage(error)
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _read_slice(request: ReadRequest) -> FileSlice | None:
    path = request.file.full_path
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
    """Return a pattern up to its first folder with unknown names, as `logs/*`."""
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
    except OSError as error:
        _raise_own_shortage(error)
        return []


def _raise_own_shortage(error: OSError) -> None:
    """Raise ResourceShortage if no file can be opened now, so that an existing file is not taken for a missing one.

    Agents can cause other errors for their own files, such as EIO or EAGAIN.
    """
    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        raise_shortage(error)

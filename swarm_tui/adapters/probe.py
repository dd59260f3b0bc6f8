"""The states of all local agents from mngr's files, one tmux call and one ps call, as `mngr list` would tell them."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeVar, cast

from swarm_tui.adapters.mngr_settings import AgentTypes
from swarm_tui.adapters.process import run_process
from swarm_tui.adapters.tmux import Pane, Tmux
from swarm_tui.errors import AdapterError, NoTmuxServer

AgentState = Literal["RUNNING", "WAITING", "DONE", "STOPPED", "REPLACED"]

_First = TypeVar("_First")
_Second = TypeVar("_Second")

_SHELLS: Final = frozenset({"bash", "sh", "zsh", "fish", "dash", "ksh", "tcsh", "csh"})
# Types whose command is a long shell line, with the name of the process that it ends in.
_PROCESS_OF_TYPE: Final = {"claude": "claude", "code-guardian": "claude", "fixme-fairy": "claude"}
# mngr notes every 5 s that a pane lives; a note older than this says nothing.
_PANE_NOTE_LIFETIME: Final = 12.0
_PS_TIMEOUT: Final = 10.0


@dataclass(frozen=True, slots=True)
class LocalAgent:
    """What a probe found out about one agent."""

    name: str
    agent_id: str
    state: AgentState
    process_id: int | None
    """The agent's own process while it is RUNNING or WAITING."""
    session: str
    work_dir: Path
    branch: str | None
    state_dir: Path
    labels: Mapping[str, str]
    is_at_prompt: bool = False
    """The shell below its program is in front: what is typed now would be taken for a command."""

    @property
    def can_hear(self) -> bool:
        """Whether what is typed into its terminal reaches the agent, and not what was left of it."""
        return self.state in ("RUNNING", "WAITING") and not self.is_at_prompt


@dataclass(frozen=True, slots=True)
class Probed:
    """All agents by name; of those that are unreadable, named by their folders, nothing is known."""

    agents: Mapping[str, LocalAgent]
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProbeFailure:
    """No state can be told: what was known before is stale, and nothing of it is contradicted."""

    reason: str
    hint: str


class Probe(Protocol):
    """Reads the states of agents without a call of mngr."""

    async def probe(self) -> Probed | ProbeFailure: ...


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """The processes of this machine at one moment."""

    command_of: Mapping[int, str]
    children_of: Mapping[int, Sequence[int]]
    in_front: frozenset[int]
    """Those that their terminal's keys go to."""

    def descendants(self, root: int) -> Iterator[int]:
        """Return all processes below one, nearest first, each once: ps may read parents that form a ring."""
        seen, queue = {root}, list(self.children_of.get(root, ()))
        for process_id in queue:
            if process_id not in seen:
                seen.add(process_id)
                queue.extend(self.children_of.get(process_id, ()))
                yield process_id


def parse_processes(output: str) -> ProcessTable:
    """Read `ps -e -o pid=,ppid=,stat=,comm=`, without the zombies: tmux leaves some behind when an agent is stopped."""
    command_of: dict[int, str] = {}
    children_of: dict[int, list[int]] = {}
    in_front = set()
    for line in output.splitlines():
        words = line.split(maxsplit=3)
        # A sandboxed kernel lists a process that just ended as 0: everything would hang below it.
        if len(words) < 4 or not words[0].isdigit() or not words[1].isdigit() or words[0] == "0":
            continue
        if words[2].startswith("Z"):
            continue
        process_id, parent = int(words[0]), int(words[1])
        # mngr compares the first word of what ps calls a process.
        command_of[process_id] = words[3].split()[0]
        children_of.setdefault(parent, []).append(process_id)
        if "+" in words[2]:
            in_front.add(process_id)
    return ProcessTable(command_of, children_of, frozenset(in_front))


def expected_process(agent_type: str, command: str, parent_types: Mapping[str, str]) -> str:
    """Return the name that the agent's process must have: its type's, or the command's first word."""
    known = _PROCESS_OF_TYPE.get(parent_types.get(agent_type) or agent_type)
    if known is not None:
        return known
    words = command.lstrip("( ").split()
    return words[0].rpartition("/")[2] if words else ""


def decide_state(
    pane: Pane | None, processes: ProcessTable, expected: str, *, is_active: bool
) -> tuple[AgentState, int | None]:
    """Decide as mngr does what an agent is doing; also give the id of its process while it is at work or waits."""
    if pane is None:
        return "STOPPED", None
    if pane.is_dead:
        return "DONE", None
    if pane.process_id not in processes.command_of:
        # It ended between the two calls, and its session with it.
        return "STOPPED", None
    below = list(processes.descendants(pane.process_id))
    process_id = next((one for one in (pane.process_id, *below) if processes.command_of.get(one) == expected), None)
    is_there = process_id is not None and process_id != pane.process_id
    if is_there or pane.command == expected:
        return ("RUNNING" if is_active else "WAITING"), process_id
    if pane.command in _SHELLS:
        return "DONE", None
    is_another_below = any(processes.command_of[one] not in _SHELLS for one in below)
    if not is_another_below and processes.command_of[pane.process_id] in _SHELLS:
        return "DONE", None
    return "REPLACED", None


def is_at_prompt(pane: Pane | None, processes: ProcessTable) -> bool:
    """Return whether the pane's own shell is in front, as it is when the agent's program has ended.

    The state alone does not tell: mngr takes an agent that was started as `bash script` for alive as long as its
    pane's shell, a bash too, is there.
    """
    if pane is None or pane.process_id not in processes.in_front:
        return False
    return processes.command_of[pane.process_id].lstrip("-") in _SHELLS


@dataclass
class LocalProbe:
    """Probes the agents of one mngr home on this machine; keeps only what files said, by their time and size."""

    host_dir: Path
    prefix: str
    tmux: Tmux
    repository: Path | None = None
    """Whose project settings may name agent types of their own."""
    _records: dict[str, tuple[tuple[int, int], dict[str, Any]]] = field(default_factory=dict)
    _agent_types: AgentTypes = field(init=False)

    def __post_init__(self) -> None:
        self._agent_types = AgentTypes(self.host_dir, self.repository)

    async def probe(self) -> Probed | ProbeFailure:
        """Return the states of all agents, or why they cannot be told."""
        try:
            # In this order: an agent that comes after the first step is new in the next probe.
            records, unreadable = self._read_records()
            panes, processes = await _both(self._panes(), _processes(self.tmux.environment))
        except (AdapterError, OSError) as error:
            hint = error.hint if isinstance(error, AdapterError) else ""
            return ProbeFailure(error.message if isinstance(error, AdapterError) else str(error), hint)
        if processes is None:
            return ProbeFailure("ps gave no list of processes", "install procps: the ps of busybox cannot do it")
        agents = {}
        parent_types = self._agent_types.parents()
        for folder, record in records.items():
            pane = panes.get(str(record["id"])) or panes.get(f"{self.prefix}{record['name']}")
            if pane is None and _lives_elsewhere(folder, processes):
                return ProbeFailure(
                    f"the agent {record['name']} lives on another tmux server than the one that was asked",
                    f"asked with TMUX_TMPDIR={self.tmux.environment.get('TMUX_TMPDIR') or '(not set)'}",
                )
            expected = expected_process(str(record.get("type")), str(record.get("command") or ""), parent_types)
            agents[str(record["name"])] = self._agent(folder, record, pane, processes, expected)
        return Probed(agents, unreadable)

    def _agent(
        self, folder: Path, record: dict[str, Any], pane: Pane | None, processes: ProcessTable, expected: str
    ) -> LocalAgent:
        is_active = (folder / "active").exists() and not (folder / "permissions_waiting").exists()
        state, process_id = decide_state(pane, processes, expected, is_active=is_active)
        labels = record.get("labels")
        return LocalAgent(
            name=str(record["name"]),
            agent_id=str(record["id"]),
            state=state,
            process_id=process_id,
            session=pane.session if pane is not None else f"{self.prefix}{record['name']}",
            work_dir=Path(str(record.get("work_dir") or "")),
            branch=record.get("created_branch_name"),
            state_dir=folder,
            labels=labels if isinstance(labels, dict) else {},
            is_at_prompt=is_at_prompt(pane, processes),
        )

    def _read_records(self) -> tuple[dict[Path, dict[str, Any]], tuple[str, ...]]:
        """Read the agents' own records; one that is just being written keeps its last content."""
        records: dict[Path, dict[str, Any]] = {}
        unreadable = []
        agents = self.host_dir / "agents"
        entries = list(os.scandir(agents)) if agents.is_dir() else []
        for entry in entries:
            folder = Path(entry.path)
            try:
                self._records[entry.name] = _read_record(folder / "data.json", self._records.get(entry.name))
            except FileNotFoundError:
                # Not yet, or no more, an agent.
                self._records.pop(entry.name, None)
                continue
            except (OSError, ValueError, RecursionError):
                if entry.name not in self._records:
                    unreadable.append(entry.name)
                    continue
            records[folder] = self._records[entry.name][1]
        self._records = {folder.name: self._records[folder.name] for folder in records}
        return records, tuple(unreadable)

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


async def can_list_processes(environment: Mapping[str, str]) -> bool:
    """Return whether the ps that is found there can do what a probe needs; ProgramMissing without any."""
    return await _processes(environment) is not None


async def _both(first: Awaitable[_First], second: Awaitable[_Second]) -> tuple[_First, _Second]:
    """Wait for both at once; when one fails the other has ended too, which `gather` alone does not see to."""
    answers = await asyncio.gather(first, second, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return cast(tuple[_First, _Second], tuple(answers))


async def _processes(environment: Mapping[str, str]) -> ProcessTable | None:
    """Return all processes; None when the answer cannot be whole, since even we are not in it."""
    words = ["ps", "-e", "-o", "pid=,ppid=,stat=,comm="]
    finished = await run_process(words, environment=environment, timeout=_PS_TIMEOUT)
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
    record = json.loads(path.read_bytes())
    if not isinstance(record, dict) or not record.get("id") or not record.get("name"):
        raise ValueError("no record of an agent")
    return signature, record


def _lives_elsewhere(folder: Path, processes: ProcessTable) -> bool:
    """Return whether the pane of an agent without a session lives: then we have asked the wrong tmux server."""
    note = folder / "activity" / "process"
    try:
        if time.time() - note.stat().st_mtime > _PANE_NOTE_LIFETIME:
            return False
        return int(json.loads(note.read_bytes())["pane_pid"]) in processes.command_of
    except (OSError, ValueError, KeyError, TypeError):
        return False

"""Derive the states of agents from the list of processes and their panes. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from swarm_tui.adapters.tmux import Pane
from swarm_tui.agents.types import agent_type_of
from swarm_tui.hosts.protocol import AgentAddress, AgentState, AgentStatus

PS_COMMAND: Final = ("ps", "-e", "-o", "pid=,ppid=,stat=,comm=")
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "fish", "dash", "ksh", "tcsh", "csh"})


@dataclass(frozen=True, slots=True)
class ProcessTable:
    """The processes of a machine at one moment."""

    command_of: Mapping[int, str]
    children_of: Mapping[int, Sequence[int]]
    in_front: frozenset[int]
    """Processes in the foreground of their terminals."""

    def descendants(self, root: int) -> Iterator[int]:
        """Return all processes below one, nearest first, without repetitions: the list of ps can contain cycles."""
        seen, queue = {root}, list(self.children_of.get(root, ()))
        for process_id in queue:
            if process_id not in seen:
                seen.add(process_id)
                queue.extend(self.children_of.get(process_id, ()))
                yield process_id


def parse_processes(output: str) -> ProcessTable:
    """Parse the output of PS_COMMAND, without zombies, which tmux leaves when an agent is stopped."""
    command_of: dict[int, str] = {}
    children_of: dict[int, list[int]] = {}
    in_front = set()
    for line in output.splitlines():
        words = line.split(maxsplit=3)
        # A sandboxed kernel lists an exited process as 0, which would be the parent of all others.
        if len(words) < 4 or not words[0].isdigit() or not words[1].isdigit() or words[0] == "0":
            continue
        if words[2].startswith("Z"):
            continue
        process_id, parent = int(words[0]), int(words[1])
        # mngr compares the first word of the command.
        command_of[process_id] = words[3].split()[0]
        children_of.setdefault(parent, []).append(process_id)
        if "+" in words[2]:
            in_front.add(process_id)
    return ProcessTable(command_of, children_of, frozenset(in_front))


def expected_process(agent_type: str, command: str, parent_types: Mapping[str, str]) -> str:
    """Return the name of the agent's process: that of its type, or the first word of the command."""
    of_kind = agent_type_of(agent_type, parent_types.get(agent_type, "")).process
    if of_kind:
        return of_kind
    words = command.lstrip("( ").split()
    return words[0].rpartition("/")[2] if words else ""


def decide_state(
    pane: Pane | None, processes: ProcessTable, expected: str, *, is_active: bool
) -> tuple[AgentState, int | None]:
    """Return the state in mngr's words, and the id of the agent's process while it is RUNNING or WAITING."""
    if pane is None:
        return "STOPPED", None
    if pane.is_dead:
        return "DONE", None
    if pane.process_id not in processes.command_of:
        # The session was closed between the two calls.
        return "STOPPED", None
    below = list(processes.descendants(pane.process_id))
    process_id = next((one for one in (pane.process_id, *below) if processes.command_of.get(one) == expected), None)
    is_below_pane = process_id is not None and process_id != pane.process_id
    if is_below_pane or pane.command == expected:
        return ("RUNNING" if is_active else "WAITING"), process_id
    if pane.command in _SHELLS:
        return "DONE", None
    has_other_program = any(processes.command_of[one] not in _SHELLS for one in below)
    if not has_other_program and processes.command_of[pane.process_id] in _SHELLS:
        return "DONE", None
    return "REPLACED", None


def is_at_prompt(pane: Pane | None, processes: ProcessTable) -> bool:
    """Return whether the pane's own shell is in the foreground, as after the exit of the agent's program.

    The state does not show it: to mngr, an agent that was started as `bash script` is alive while the pane's shell,
    also bash, is running.
    """
    if pane is None or pane.process_id not in processes.in_front:
        return False
    return processes.command_of[pane.process_id].lstrip("-") in _SHELLS


@dataclass(frozen=True, slots=True)
class AgentTable:
    """The panes and processes of one host, and what is needed to find those of an agent."""

    host: str
    agents_dir: str
    """The folder of the agents' state folders."""
    prefix: str
    """The beginning of the names of mngr's sessions."""
    panes: Mapping[str, Pane]
    """Agents' panes by agent id and by session."""
    processes: ProcessTable
    parent_types: Mapping[str, str]

    def pane_of(self, record: Mapping[str, Any]) -> Pane | None:
        return self.panes.get(str(record["id"])) or self.panes.get(f"{self.prefix}{record['name']}")

    def status(self, folder: str, record: Mapping[str, Any], *, is_active: bool) -> AgentStatus:
        """Return the status of the agent with a record in a state folder."""
        pane = self.pane_of(record)
        agent_type, command = str(record.get("type") or ""), str(record.get("command") or "")
        expected = expected_process(agent_type, command, self.parent_types)
        state, process_id = decide_state(pane, self.processes, expected, is_active=is_active)
        branch, labels = record.get("created_branch_name"), record.get("labels")
        address = AgentAddress(
            name=str(record["name"]),
            agent_id=str(record["id"]),
            session=pane.session if pane is not None else f"{self.prefix}{record['name']}",
            state_dir=f"{self.agents_dir}/{folder}",
            work_dir=str(record.get("work_dir") or ""),
            host=self.host,
        )
        return AgentStatus(
            address,
            state,
            process_id,
            branch=branch if isinstance(branch, str) else None,
            labels=labels if isinstance(labels, dict) else {},
            agent_type=agent_type,
            created_at=str(record.get("create_time") or ""),
            is_at_prompt=is_at_prompt(pane, self.processes),
        )


def agent_panes(panes: Iterable[Pane]) -> dict[str, Pane]:
    """Return agents' panes by agent id and by session, the first of each."""
    found: dict[str, Pane] = {}
    for pane in panes:
        if pane.is_agent_pane:
            found.setdefault(pane.session, pane)
            if pane.agent_id:
                found.setdefault(pane.agent_id, pane)
    return found

"""Reads what mngr has written down of the agents on this machine, and lists this machine's processes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from swarm_tui.adapters.process import run_process
from swarm_tui.places.mngr_agents import PS_COMMAND, ProcessTable, parse_processes
from swarm_tui.regular_file import read_regular

# mngr notes every 5 s that a pane lives; an older note than this says nothing.
_PANE_NOTE_LIFETIME: Final = 12.0
_PS_TIMEOUT: Final = 10.0


@dataclass(slots=True)
class AgentRecords:
    """The records that mngr keeps of its agents, each read again only when its file has changed."""

    host_dir: Path
    unreadable: tuple[str, ...] = ()
    """Ids of agents whose record has never been readable."""
    _records: dict[str, tuple[tuple[int, int], dict[str, Any]]] = field(default_factory=dict)

    def read(self) -> dict[Path, dict[str, Any]]:
        """Return the record of every agent by its state folder; one that is being written keeps its last content."""
        records: dict[Path, dict[str, Any]] = {}
        unreadable = []
        agents = self.host_dir / "agents"
        entries = list(os.scandir(agents)) if agents.is_dir() else []
        for entry in entries:
            folder = Path(entry.path)
            try:
                self._records[entry.name] = _read_record(folder / "data.json", self._records.get(entry.name))
            except FileNotFoundError:
                # An agent that is being made, or was just destroyed.
                self._records.pop(entry.name, None)
                continue
            except (OSError, ValueError, RecursionError):
                if entry.name not in self._records:
                    unreadable.append(entry.name)
                    continue
            records[folder] = self._records[entry.name][1]
        self._records = {folder.name: self._records[folder.name] for folder in records}
        self.unreadable = tuple(unreadable)
        return records


def has_live_pane(state_dir: Path, processes: ProcessTable) -> bool:
    """Return whether mngr noted a moment ago a pane of this agent whose process is there."""
    note = state_dir / "activity" / "process"
    try:
        if time.time() - note.stat().st_mtime > _PANE_NOTE_LIFETIME:
            return False
        return int(json.loads(read_regular(note))["pane_pid"]) in processes.command_of
    except (OSError, ValueError, KeyError, TypeError):
        return False


async def list_processes(environment: Mapping[str, str]) -> ProcessTable | None:
    """Return all processes of this machine; None when the list is not whole: our own process is not in it."""
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
    record = json.loads(read_regular(path))
    if not isinstance(record, dict) or not record.get("id") or not record.get("name"):
        raise ValueError("no record of an agent")
    return signature, record

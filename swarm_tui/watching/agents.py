"""An agent of mngr as a watch knows it, from its own files on this machine or from `mngr list`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.model.hosts import LOCAL_HOST
from swarm_tui.model.text import plain
from swarm_tui.places.place import AgentAddress, AgentStatus, AgentStatuses

ENDED: Final[Mapping[str, str]] = {
    "DONE": "its program has ended",
    "STOPPED": "it is stopped: attaching starts it again",
}
"""The states of agents that are not alive, with what they mean."""
LABELS_SHOWN: Final = 40
_TEXT_LIMIT: Final = 200


@dataclass(frozen=True, slots=True)
class WatchedAgent:
    """What is known of one agent."""

    address: AgentAddress
    state: str
    """As mngr names it."""
    agent_type: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    branch: str = ""
    created_at: float = 0.0
    since: float = 0.0
    """Since when it is in its state, as far as that is known."""

    @property
    def key(self) -> str:
        """The name under which the journal has it: two hosts may each have an agent of one name."""
        return plain(self.address.mngr_name, _TEXT_LIMIT) or self.address.agent_id

    @property
    def is_alive(self) -> bool:
        return self.state not in ENDED

    @property
    def traits(self) -> tuple[str, ...]:
        """What it may share with others, in words: `type claude`, `project shop`, `label run=7`."""
        words = [f"type {plain(self.agent_type, 80)}"] if self.agent_type else []
        for key, value in self.labels:
            name = "project " if key == "project" else f"label {plain(key, 80)}="
            words.append(f"{name}{plain(value, _TEXT_LIMIT)}")
        return tuple(words)

    @property
    def names(self) -> tuple[object, ...]:
        """What the journal says of it only once."""
        return self.address, self.traits, self.branch


def agents_here(statuses: AgentStatuses) -> Iterator[WatchedAgent]:
    """Yield the agents of this machine."""
    for status in statuses.agents.values():
        created = _seconds(status.created_at)
        yield WatchedAgent(
            status.address,
            status.state,
            status.agent_type,
            _labels(status.labels),
            plain(status.branch or "", _TEXT_LIMIT),
            created,
            max(created, _last_change(status)),
        )


def agents_elsewhere(found: Iterable[AgentDetails], session_prefix: str) -> Iterator[WatchedAgent]:
    """Yield the agents that are not on this machine."""
    for details in found:
        if is_here(details):
            continue
        host = _host_of(details)
        address = AgentAddress(details.name, details.id, f"{session_prefix}{details.name}", "", details.work_dir, host)
        yield WatchedAgent(
            address,
            details.state.upper(),
            details.type,
            _labels(details.labels),
            plain(details.initial_branch or "", _TEXT_LIMIT),
            _seconds(details.create_time),
        )


def is_here(details: AgentDetails) -> bool:
    """Return whether an agent is on this machine, so that its own files tell of it."""
    return details.host is None or details.host.provider_name in ("", LOCAL_HOST)


def _host_of(details: AgentDetails) -> str:
    """Return the host of an agent as addresses name it: `local`, or HOST.PROVIDER."""
    host = details.host
    return f"{host.name}.{host.provider_name}" if host is not None else LOCAL_HOST


def _labels(labels: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    ordered = sorted(labels.items(), key=lambda label: (label[0] != "project", label[0]))
    return tuple((str(key), str(value)) for key, value in islice(ordered, LABELS_SHOWN))


def _last_change(status: AgentStatus) -> float:
    """Return when an agent's folder changed last: mngr makes and removes a file there when a turn begins and ends."""
    folder = status.address.state_dir
    with contextlib.suppress(OSError):
        return os.stat(f"{folder}/active" if status.state == "RUNNING" else folder).st_mtime
    return 0.0


def _seconds(written: str) -> float:
    """Return a time of mngr's in seconds since 1970; 0 for none."""
    try:
        return datetime.fromisoformat(written).timestamp()
    except (ValueError, OverflowError):
        return 0.0

"""Removes what a sweep has left on other hosts: our folder there, copies and records of creates that failed."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from swarm_tui.engine.copy_preparation import checked_temporary
from swarm_tui.engine.destroying import remove_by_hand
from swarm_tui.engine.host_preparation import far_folder
from swarm_tui.engine.names import agent_address
from swarm_tui.errors import SwarmError
from swarm_tui.model.state import TestRecord
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.many_hosts import ManyHosts
from swarm_tui.places.place import AgentAddress, Place, PlaceUnreachable
from swarm_tui.places.ssh import SshPlace

_AT_ONCE: Final = 500

_REMOVE_FOLDERS: Final = """
rm -rf -- "$@"
rmdir -- "$(dirname -- "$1")" 2>/dev/null
exit 0
"""


@dataclass(frozen=True, slots=True)
class HostLeftovers:
    """On which hosts something of a sweep is left, and which do not answer."""

    names: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()


async def find_on_hosts(spec: SweepSpec, place: Place) -> HostLeftovers:
    """Look on all hosts at once."""
    places = ssh_places(place)
    found = await asyncio.gather(*(_has_something(spec, one) for one in places), return_exceptions=True)
    names, unreached = [], []
    for one, answer in zip(places, found, strict=True):
        if isinstance(answer, PlaceUnreachable):
            unreached.append(one.access.name)
        elif isinstance(answer, BaseException):
            raise answer
        elif answer:
            names.append(one.access.name)
    return HostLeftovers(tuple(names), tuple(unreached))


async def clean_hosts(spec: SweepSpec, place: Place, left: HostLeftovers, records: Sequence[TestRecord]) -> list[str]:
    """Remove what is there; return what could not be removed."""
    cleaned = [one for one in ssh_places(place) if one.access.name in left.names]
    answers = await asyncio.gather(*(_clean(spec, one, records) for one in cleaned), return_exceptions=True)
    problems = [f"{name} does not answer: what is there stays until it does" for name in left.unreached]
    for one, answer in zip(cleaned, answers, strict=True):
        if isinstance(answer, SwarmError):
            problems.append(f"{one.access.name}: {answer}")
        elif isinstance(answer, BaseException):
            raise answer
    return problems


def ssh_places(place: Place) -> list[SshPlace]:
    places = place.places.values() if isinstance(place, ManyHosts) else [place]
    return [one for one in places if isinstance(one, SshPlace)]


async def _has_something(spec: SweepSpec, place: SshPlace) -> bool:
    return (await place.link.run(["test", "-e", far_folder(place.access, spec.sweep)])).code == 0


async def _clean(spec: SweepSpec, place: SshPlace, records: Sequence[TestRecord]) -> None:
    addresses = list(_possible_agents(spec, place, records))
    for start in range(0, len(addresses), _AT_ONCE):
        await _remove_orphans(place, addresses[start : start + _AT_ONCE])
    temporary = checked_temporary(spec)
    ours = [far_folder(place.access, spec.sweep), *([temporary] if temporary else [])]
    await place.link.run(["sh", "-c", _REMOVE_FOLDERS, "remove", *ours], timeout=600)


async def _remove_orphans(place: SshPlace, addresses: Sequence[AgentAddress]) -> None:
    """Remove what is there of agents that were destroyed already, or never came to be."""
    left = await place.link.run(["sh", "-c", 'ls -d -- "$@" 2>/dev/null; exit 0', "ls", *_folders(addresses)])
    there = set(left.text.splitlines())
    orphans = [one for one in addresses if one.work_dir in there or one.state_dir in there]
    if orphans:
        await remove_by_hand(place, orphans)


def _possible_agents(spec: SweepSpec, place: SshPlace, records: Iterable[TestRecord]) -> Iterator[AgentAddress]:
    """Return every agent that the sweep may have made on a host: their ids and folders are derived."""
    for record in records:
        for attempt in range(1, record.attempt + 1):
            yield agent_address(spec, place.access.host_dir, record.agent, attempt, place.access.name)


def _folders(addresses: Iterable[AgentAddress]) -> list[str]:
    return [posixpath.normpath(path) for address in addresses for path in (address.work_dir, address.state_dir)]

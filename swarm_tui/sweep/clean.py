"""Remove what a sweep left outside of its folder, here and on hosts."""

from __future__ import annotations

import asyncio
import os
import posixpath
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.git.names import branch_ref
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_settings import mngr_environment
from swarm_tui.adapters.processes.environment import passed_variables
from swarm_tui.adapters.tmux import Tmux
from swarm_tui.agents.contract import ARCHIVE_PATH, OUTPUT_FOLDER
from swarm_tui.agents.types import HomeLeftovers, agent_type_of_sweep
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.hosts.copies import uncommitted_paths
from swarm_tui.hosts.preparation import remote_folder
from swarm_tui.hosts.protocol import AgentAddress, AgentFile, AgentStatus, Host, HostUnreachable, ReadRequest
from swarm_tui.hosts.registry import Hosts, open_hosts
from swarm_tui.journal.folder import runs_folder
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.formatting import counted
from swarm_tui.model.results import LIVING_STATES, State
from swarm_tui.model.spec import LOCAL_HOST, SweepSpec
from swarm_tui.sweep.agent_context import LABEL_SWEEP, agent_address, agent_id_of, before_refs, held_refs, pulled_ref
from swarm_tui.sweep.copies import base_branch, checked_temporary, temporary_folder
from swarm_tui.sweep.host_creation import held_hosts, release_host
from swarm_tui.sweep.launch import wait_for_creates
from swarm_tui.sweep.pull import unfetched_commits
from swarm_tui.sweep.stop import destroy_agents, remove_by_hand
from swarm_tui.testing.python import folders_of_agent_pythons

_AT_ONCE: Final = 500

_REMOVE_FOLDERS: Final = """
rm -rf -- "$@"
rmdir -- "$(dirname -- "$1")" 2>/dev/null
exit 0
"""


@dataclass(frozen=True, slots=True)
class HostLeftovers:
    """Which hosts have leftovers of a sweep, and which do not answer."""

    names: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()


async def find_on_hosts(spec: SweepSpec, hosts: Hosts) -> HostLeftovers:
    """Poll all hosts at the same time."""

    async def look(host: Host) -> HostLeftovers:
        try:
            found = await host.run(["test", "-e", remote_folder(host, spec.sweep)])
        except HostUnreachable:
            return HostLeftovers(unreached=(host.name,))
        return HostLeftovers(names=() if found.code else (host.name,))

    found = await asyncio.gather(*map(look, hosts.remote))
    return HostLeftovers(
        tuple(name for each in found for name in each.names), tuple(name for each in found for name in each.unreached)
    )


async def clean_hosts(spec: SweepSpec, hosts: Hosts, left: HostLeftovers, records: Sequence[TestRecord]) -> list[str]:
    """Remove the leftovers on hosts; return what could not be removed."""

    async def clean(host: Host) -> list[str]:
        try:
            await _clean(spec, host, records)
        except SwarmError as error:
            return [f"{host.name}: {error}"]
        return []

    found = await asyncio.gather(*(clean(host) for host in hosts.remote if host.name in left.names))
    problems = [f"{name} does not answer: run `clean` again when it does" for name in left.unreached]
    return [*problems, *(problem for problems in found for problem in problems)]


async def _clean(spec: SweepSpec, host: Host, records: Sequence[TestRecord]) -> None:
    # The sweep may have created all of these agents. Ids and folders are derived.
    addresses = [
        agent_address(spec, host.host_dir, record.agent, launch_number, host.name)
        for record in records
        for launch_number in range(1, record.launch + 1)
    ]
    for start in range(0, len(addresses), _AT_ONCE):
        await _remove_orphans(host, addresses[start : start + _AT_ONCE])
    temporary = checked_temporary(spec)
    ours = [remote_folder(host, spec.sweep), *([temporary] if temporary else [])]
    await host.run(["sh", "-c", _REMOVE_FOLDERS, "remove", *ours], timeout=600)


async def _remove_orphans(host: Host, addresses: Sequence[AgentAddress]) -> None:
    """Remove the folders of agents that were destroyed before or were never completely created."""
    folders = [posixpath.normpath(path) for address in addresses for path in (address.work_dir, address.state_dir)]
    left = await host.run(["sh", "-c", 'ls -d -- "$@" 2>/dev/null; exit 0', "ls", *folders])
    there = set(left.text.splitlines())
    orphans = [one for one in addresses if one.work_dir in there or one.state_dir in there]
    if orphans:
        await remove_by_hand(host, orphans)


LAUNCHES_KNOWN: Final = 100
_LIVING: Final = frozenset({"RUNNING", "WAITING", "REPLACED"})


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a sweep has outside its folder, and what of it exists nowhere else."""

    agents: tuple[AgentStatus, ...] = ()
    refs: tuple[tuple[str, str], ...] = ()
    """The sweep's refs and the agents' branches in the user's repository, each with its commit."""
    private_home: Path | None = None
    temporary: Path | None = None
    """The folder of the agents' temporary folders."""
    losses: tuple[str, ...] = ()
    """Sentences about what exists nowhere else."""
    hosts: HostLeftovers = field(default_factory=HostLeftovers)
    made: tuple[str, ...] = ()
    """The hosts that were created for the sweep."""
    home: HomeLeftovers = field(default_factory=HomeLeftovers)
    """What agents left in the user's home folder."""

    @property
    def is_nothing(self) -> bool:
        has_local = self.agents or self.refs or self.private_home or self.temporary or self.home.removable
        return not has_local and not self.hosts.names and not self.hosts.unreached and not self.made


async def find_leftovers(opened: OpenedSweep) -> Leftovers:
    """Find everything that `remove_leftovers` would remove."""
    if opened.has_running_engine:
        name = opened.folder.name
        raise UsageError(f"{name} has a running engine", f"run `swarm-tui stop {name}` first")
    if original_of(opened) is not None:
        return Leftovers()
    integrator = opened.state.integrator
    await wait_for_creates([*opened.state.tests(), *([integrator] if integrator is not None else [])])
    hosts = open_hosts(opened.spec)
    try:
        return await _find_leftovers(opened, hosts)
    finally:
        await hosts.close()


async def _find_leftovers(opened: OpenedSweep, hosts: Hosts) -> Leftovers:
    on_hosts = await find_on_hosts(opened.spec, hosts)
    agents = await _find_agents(opened.spec, hosts)
    refs, losses = await asyncio.to_thread(_find_refs, opened)
    record_of = {record.agent: record for record in opened.state.tests()}
    root = Path(opened.spec.repository)
    repository = await asyncio.to_thread(Repository.open, root) if agents and root.is_dir() else None
    for agent in agents:
        losses += await losses_with(hosts[agent.address.host], agent, record_of.get(agent.name))
        if repository is not None:
            losses += await unfetched_commits(repository, hosts[agent.address.host], agent.address)
    home, temporary = private_home(opened.spec), temporary_folder(opened.spec)
    made: list[str] = []
    if opened.spec.provider != LOCAL_HOST:
        made = await held_hosts(_mngr_of(opened.spec), opened.spec)
        working = (record for record in opened.state.tests() if record.host in made and record.state in LIVING_STATES)
        losses += [f"{record.agent} is {record.mark} on {record.host}" for record in working]
    in_home = HomeLeftovers()
    if home is None:
        copies, environment = _local_copies(opened, hosts), _home_environment(opened.spec)
        in_home = await asyncio.to_thread(agent_type_of_sweep(opened.spec).home_leftovers, copies, environment)
    return Leftovers(agents, tuple(refs), home, temporary, tuple(losses), on_hosts, tuple(made), in_home)


def _local_copies(opened: OpenedSweep, hosts: Hosts) -> list[str]:
    """Return the paths of all copies that the sweep may have created on this machine. They are derived."""
    spec, integrator = opened.spec, opened.state.integrator
    if spec.is_watch:
        return []
    records = [*opened.state.tests(), *([integrator] if integrator is not None else [])]
    return [
        agent_address(spec, hosts.local.host_dir, record.agent, launch_number).work_dir
        for record in records
        # A forged journal must not name the copies of other programs.
        if record.agent.startswith(f"swarm-{spec.sweep}-") and "/" not in record.agent
        for launch_number in range(1, record.launch + 1)
    ]


def _home_environment(spec: SweepSpec) -> dict[str, str]:
    own = {"CLAUDE_CONFIG_DIR": os.environ.get("CLAUDE_CONFIG_DIR", "")}
    return mngr_environment(spec.mngr, {name: value for name, value in own.items() if value})


def _mngr_of(spec: SweepSpec) -> Mngr:
    passed = passed_variables(spec.passed_environment)
    return Mngr(spec.mngr.path, mngr_environment(spec.mngr, passed), Path(spec.repository))


def original_of(opened: OpenedSweep) -> Path | None:
    """Return the original folder of a copied sweep: agents and refs belong to the original."""
    spec = opened.spec
    own = runs_folder(Path(spec.repository)) / spec.sweep
    is_copy = (own / "sweep.json").is_file() and own.resolve() != opened.folder.root.resolve()
    return own if is_copy else None


async def remove_leftovers(opened: OpenedSweep, leftovers: Leftovers) -> list[str]:
    """Remove everything; return what could not be removed."""
    hosts = open_hosts(opened.spec)
    try:
        return await _remove_leftovers(opened, leftovers, hosts)
    finally:
        await hosts.close()


async def _remove_leftovers(opened: OpenedSweep, leftovers: Leftovers, hosts: Hosts) -> list[str]:
    problems: list[str] = []
    spec = opened.spec
    for folder in folders_of_agent_pythons(opened.folder):
        problems += await asyncio.to_thread(remove_folder, folder)
    environment = mngr_environment(spec.mngr)
    if leftovers.agents:
        addresses = [agent.address for agent in leftovers.agents]
        failed = await destroy_agents(_mngr_of(spec), hosts, addresses)
        problems += [f"{failure.agent}: {failure.error}" for failure in failed]
        if spec.transfer == "worktree":
            repository = await asyncio.to_thread(Repository.open, Path(spec.repository))
            await asyncio.to_thread(repository.run, "worktree", "prune")
    for host in leftovers.made:
        try:
            await release_host(_mngr_of(spec), host)
        except SwarmError as error:
            problems.append(str(error))
    problems += await clean_hosts(spec, hosts, leftovers.hosts, list(opened.state.tests()))
    if leftovers.refs:
        problems += await asyncio.to_thread(_delete_refs, Path(spec.repository), leftovers.refs)
    if leftovers.temporary is not None:
        problems += await asyncio.to_thread(remove_folder, leftovers.temporary)
    if leftovers.home.removable:
        clean_home = agent_type_of_sweep(spec).clean_home
        problems += await asyncio.to_thread(clean_home, _local_copies(opened, hosts), _home_environment(spec))
    if leftovers.private_home is not None:
        await Tmux(environment).kill_server()
        problems += await asyncio.to_thread(remove_folder, leftovers.private_home)
    return problems


def remove_folder(folder: Path) -> list[str]:
    """Remove a folder with its content; return what could not be removed."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        if folder.exists():
            # The first pass ignored errors and removed the rest. This one reports the error.
            shutil.rmtree(folder)
    except OSError as error:
        return [f"{error.filename or folder}: {error.strerror or error}"]
    return []


async def _find_agents(spec: SweepSpec, hosts: Hosts) -> tuple[AgentStatus, ...]:
    if not spec.access and not Path(hosts.local.host_dir).is_dir():
        return ()
    try:
        found = await hosts.statuses()
    except HostUnreachable as error:
        raise SwarmError(f"the state of the agents is unknown: {error.message}", error.hint) from error
    return tuple(agent for agent in found.agents.values() if _is_ours(spec, agent))


def _is_ours(spec: SweepSpec, agent: AgentStatus) -> bool:
    """Return whether this sweep created the agent. Others may have its label, but not an id derived from it."""
    if agent.labels.get(LABEL_SWEEP) != spec.sweep:
        return False
    return any(
        agent_id_of(spec, agent.name, launch_number) == agent.address.agent_id
        for launch_number in range(1, LAUNCHES_KNOWN)
    )


async def losses_with(host: Host, agent: AgentStatus, record: TestRecord | None) -> list[str]:
    losses = []
    if agent.state in _LIVING:
        losses.append(f"{agent.name} is still {agent.state.lower()}")
    if record is None:
        return losses
    is_pulled = record.state is State.DONE and record.pulled.end == "archive"
    (archive,) = await host.read_files([ReadRequest(AgentFile(agent.address, ARCHIVE_PATH))])
    if not is_pulled and archive is not None:
        losses.append(f"{agent.name} has submitted work that was never pulled (`swarm-tui resume` pulls it)")
    try:
        copy = agent.address.work_dir
        if not record.pulled.has_uncommitted and await uncommitted_paths(host, copy, without=OUTPUT_FOLDER):
            losses.append(f"{agent.name} has uncommitted work in {agent.address.work_dir}")
    except SwarmError as error:
        losses.append(f"{agent.name} has files in {agent.address.work_dir}: {error.message}")
    return losses


def _find_refs(opened: OpenedSweep) -> tuple[list[tuple[str, str]], list[str]]:
    """Return the refs to delete, and those of their commits that no branch of the user contains."""
    spec = opened.spec
    if not Path(spec.repository).is_dir():
        return [], []
    repository = Repository.open(Path(spec.repository))
    found = dict(repository.refs(f"refs/swarm/{spec.sweep}", held_refs(spec)))
    records = {pulled_ref(spec, record.branch): record for record in opened.state.tests() if record.branch}
    for record in records.values():
        tip = repository.ref(branch_ref(record.branch)) if spec.transfer == "worktree" else None
        if tip is not None:
            found[branch_ref(record.branch)] = tip
    if repository.ref(branch_ref(base_branch(spec))) == spec.base:
        found[branch_ref(base_branch(spec))] = spec.base
    losses = []
    for name, tip in found.items():
        if name.startswith(before_refs(spec)) and name not in records:
            # The fix before it was sent back: its agent's commits are in a bundle.
            continue
        lost = int(repository.run("rev-list", "--count", tip, "--not", spec.base, "--branches").text or 0)
        pulled = records.get(name)
        is_bundled = pulled is not None and (opened.folder.agent(pulled.agent) / "branch.bundle").exists()
        if lost and not is_bundled:
            commits = counted(lost, "commit that is", "commits that are")
            losses.append(f"{name} holds {commits} on no branch and in no bundle of the sweep's folder")
    return list(found.items()), losses


def _delete_refs(folder: Path, refs: tuple[tuple[str, str], ...]) -> list[str]:
    repository = Repository.open(folder)
    problems = []
    for name, tip in refs:
        try:
            repository.delete_ref(name, old=tip)
        except SwarmError as error:
            problems.append(str(error))
    return problems


def private_home(spec: SweepSpec) -> Path | None:
    """Return the folder that was created only for this sweep's mngr, if it exists and has the expected form.

    Any program may have written sweep.json, so nothing is removed only because of it.
    """
    settings = spec.mngr
    if not spec.is_private or not settings.home or not settings.tmux_tmpdir or not settings.host_dir:
        return None
    root = Path(settings.home).parent
    is_ours = (
        root.name.startswith("sw")
        and Path(settings.tmux_tmpdir) == root / "t"
        and Path(settings.home) == root / "home"
        and Path(settings.host_dir) == root / "home" / ".mngr"
    )
    if not is_ours or root.is_symlink() or not root.is_dir():
        return None
    entries = {entry.name for entry in root.iterdir()}
    has_own_rights = stat.S_IMODE(root.stat().st_mode) == 0o700
    return root if entries <= {"home", "t"} and has_own_rights else None

"""Opens the folder of a run of `mngr tmr` as a sweep, which is kept in our own folder, and follows a run under way."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from swarm_tui.adapters.environment import own_environment
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.adapters.mngr_settings import current_settings
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.errors import SwarmError
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.personal_files import state_folder
from swarm_tui.tmr.as_sweep import RunWriter
from swarm_tui.tmr.live_ids import with_live_ids
from swarm_tui.tmr.run_commits import open_commits
from swarm_tui.tmr.run_folder import TmrRun, read_run

_NOT_IN_NAME: Final = re.compile(r"[^0-9A-Za-z._-]+")


def sweep_of_run(root: Path, repository: Path | None = None) -> SweepFolder:
    """Write what is in the folder of a run down as a sweep, and return that: the same one each time."""
    folder = sweep_folder_of(root)
    write_run(root, folder, repository, living_agents(read_run(root)))
    return folder


def sweep_folder_of(root: Path) -> SweepFolder:
    """Return where a run is kept as a sweep; runs of the same name in different folders are kept apart."""
    root = root.resolve()
    name = _NOT_IN_NAME.sub("-", root.name).strip("-.")[:60] or "run"
    ending = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return SweepFolder(state_folder() / "opened" / f"{name}-{ending}")


def write_run(
    root: Path,
    folder: SweepFolder,
    repository: Path | None,
    live: Mapping[str, AgentDetails],
    *,
    is_followed: bool = False,
) -> bool:
    """Append to a sweep what is new in a run; return whether the run is over."""
    run = read_run(root.resolve())
    if live and any(agent.is_guessed for agent in run.agents):
        run = with_live_ids(run, live, Path(current_settings("mngr").host_dir or ""))
    folder.root.mkdir(parents=True, exist_ok=True)
    commits = open_commits(run, folder.name, repository, folder.root / "repository.git")
    return RunWriter(run, folder, commits, live).write(is_followed=is_followed)


def living_agents(run: TmrRun) -> dict[str, AgentDetails]:
    """Return the agents of a run that mngr on this machine knows, by their names; none without mngr."""
    names = {agent.name for agent in run.agents}
    if run.integrator is not None or not names:
        return {}
    try:
        found = asyncio.run(_list_agents())
    except SwarmError:
        return {}
    return {agent.name: agent for agent in found if agent.name in names}


async def _list_agents() -> tuple[AgentDetails, ...]:
    mngr = await find_mngr()
    return (await Mngr(mngr.path, own_environment()).list_agents(None)).agents

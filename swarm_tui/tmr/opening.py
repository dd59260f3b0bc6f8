"""Opens the folder of a run of `mngr tmr` as a sweep, which is kept in our own folder, and follows a run under way."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from swarm_tui import __version__
from swarm_tui.adapters.environment import own_environment
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.mngr_messages import AgentDetails
from swarm_tui.adapters.mngr_settings import current_settings
from swarm_tui.adapters.provision import find_mngr
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.journal.append import EngineLock, engine_process_id
from swarm_tui.journal.folder import SweepFolder, write_beside
from swarm_tui.journal.personal_files import state_folder
from swarm_tui.journal.pulled_files import read_start
from swarm_tui.tmr.as_sweep import RunWriter
from swarm_tui.tmr.live_ids import with_live_ids
from swarm_tui.tmr.run_commits import open_commits
from swarm_tui.tmr.run_folder import TmrRun, read_run, run_signature

WHOLE_FILE: Final = "written.txt"
"""Says of which run, seen by which program, the folder holds all there is to have."""
WRITING_LIMIT: Final = 120.0
_NOT_IN_NAME: Final = re.compile(r"[^0-9A-Za-z._-]+")


def sweep_of_run(root: Path, repository: Path | None = None) -> SweepFolder:
    """Write what is in the folder of a run down as a sweep, and return that: the same one each time.

    Where the run is followed, all but the last second of it is written down already.
    """
    folder = sweep_folder_of(root)
    if engine_process_id(folder.lock) is not None and folder.events.exists():
        return folder
    root = root.resolve()
    before = f"{__version__} {repository.resolve() if repository else ''} {run_signature(root)}"
    whole = folder.root / WHOLE_FILE
    known = read_start(whole, 1_000)
    if known is None or known.raw.decode(errors="replace") != before or not folder.events.exists():
        run = read_run(root)
        is_over, is_whole = write_run(run, folder, repository, living_agents(run))
        if is_over and is_whole and not run.problems:
            write_beside(whole, before.encode())
    return folder


def sweep_folder_of(root: Path) -> SweepFolder:
    """Return where a run is kept as a sweep; runs of the same name in different folders are kept apart."""
    root = root.resolve()
    name = _NOT_IN_NAME.sub("-", root.name).strip("-.")[:60] or "run"
    ending = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return SweepFolder(state_folder() / "opened" / f"{name}-{ending}")


def write_run(
    run: TmrRun,
    folder: SweepFolder,
    repository: Path | None,
    live: Mapping[str, AgentDetails],
    *,
    is_followed: bool = False,
) -> tuple[bool, bool]:
    """Append to a sweep what is new in a run; return whether the run is over, and whether all its commits are here."""
    if live and any(agent.is_guessed for agent in run.agents):
        run = with_live_ids(run, live, Path(current_settings("mngr").host_dir or ""))
    folder.root.mkdir(parents=True, exist_ok=True)
    with _only_writer(folder):
        commits = open_commits(run, folder.name, repository, folder.root / "repository.git")
        writer = RunWriter(run, folder, commits, live)
        is_over = writer.write(is_followed=is_followed)
        return is_over, writer.is_whole and not commits.problems


@contextlib.contextmanager
def _only_writer(folder: SweepFolder) -> Iterator[None]:
    """Wait until no other process writes the same run down."""
    lock = EngineLock(folder.root / "writer.lock")
    deadline = time.monotonic() + WRITING_LIMIT
    while True:
        try:
            lock.acquire()
        except UsageError:
            if time.monotonic() > deadline:
                raise SwarmError(f"another process is writing {folder.name} down", "try it again later") from None
            time.sleep(0.1)
        else:
            break
    try:
        yield
    finally:
        lock.release()


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

"""Pulls everything of an agent's work into the sweep folder, whatever state it is in, and never trusts a byte of it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import NoSpaceForGit
from swarm_tui.agents.contract import ARCHIVE_PATH, BUNDLE_FILE, OUTPUT_FOLDER, PACKED_OUTPUT_FOLDER
from swarm_tui.agents.kinds import kind_of_sweep
from swarm_tui.engine.archive import BadArchive, unpack_archive
from swarm_tui.engine.commits import FetchedCommits, fetch_agent_commits
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.names import harvest_ref
from swarm_tui.engine.transcripts import find_transcripts
from swarm_tui.errors import AdapterError, JournalError, SwarmError
from swarm_tui.journal.folder import write_beside
from swarm_tui.model.outcome import OUTCOME_FILE, OUTCOME_SIZE_LIMIT, BrokenReport, Outcome, parse_outcome
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.places.place import AgentAddress, AgentFile, Place, ReadRequest
from swarm_tui.transcripts.locate import HARVESTED_NAME, SCREEN_NAME

PACKED_LIMIT: Final = 64_000_000
PATCH_LIMIT: Final = 32_000_000
TRANSCRIPT_LIMIT: Final = 500_000_000
SCREEN_HISTORY: Final = 2_000
# Holds the id of the agent whose output is unpacked: what an earlier attempt handed in says nothing of a later one.
_SOURCE_FILE: Final = ".pulled-from"


@dataclass(frozen=True, slots=True)
class Pulled:
    """What could be had of an agent's work."""

    outcome: Outcome | None = None
    problem: str = ""
    brought: FetchedCommits = field(default_factory=FetchedCommits)
    has_uncommitted: bool = False
    notes: tuple[str, ...] = ()


async def pull_work(context: EngineContext, record: TestRecord, agent: AgentAddress) -> Pulled:
    """Pull outcome, output, commits, transcript, screen and uncommitted work of one agent.

    JournalError says that there is no room for it here, and nothing about the agent: it can be pulled again.
    """
    try:
        return await _pull(context, record, agent)
    except OSError as error:
        where = error.filename or context.folder.agent(record.agent)
        raise JournalError(f"{where} cannot be written", error.strerror or str(error)) from error


def was_pulled(folder: Path, agent_id: str) -> bool:
    """Return whether a folder holds what this very agent has handed in."""
    try:
        return bool(agent_id) and (folder / _SOURCE_FILE).read_text(errors="replace").strip() == agent_id
    except OSError:
        return False


async def _pull(context: EngineContext, record: TestRecord, agent: AgentAddress) -> Pulled:
    folder = context.agent_folder(record.agent)
    notes: list[str] = []
    _, archive_problem = await asyncio.gather(
        _keep_screen(context.place, agent, folder), _pull_archive(context.place, agent, folder, notes)
    )
    await pull_transcript(context.place, agent, folder, kind_of_sweep(context.spec).transcript_emitters)
    outcome, problem = None, archive_problem
    if archive_problem == "":
        outcome, problem = await asyncio.to_thread(_read_outcome, folder)
    bundle = folder / BUNDLE_FILE
    brought = await fetch_agent_commits(
        context.repository,
        context.place,
        agent,
        base=context.spec.base,
        branch=record.branch,
        ref=harvest_ref(context.spec, record.branch),
        bundle=bundle if archive_problem == "" and bundle.is_file() else None,
    )
    has_uncommitted = await _pull_uncommitted(context.place, agent, folder, notes)
    return Pulled(outcome, problem or "", brought, has_uncommitted, tuple(notes))


async def _pull_archive(place: Place, agent: AgentAddress, folder: Path, notes: list[str]) -> str | None:
    """Copy and unpack the archive; return what is wrong with it ("" when nothing is), or None when there is none.

    What was unpacked before is replaced only by a whole new output. It counts when the same agent handed it in and is
    gone since, as after an engine that was killed while it harvested.
    """
    archive = AgentFile(agent, ARCHIVE_PATH)
    (found,) = await place.read_files([ReadRequest(archive)])
    if found is None:
        return "" if was_pulled(folder, agent.agent_id) else None
    if found.size > PACKED_LIMIT:
        return f"its archive has {found.size // 1_000_000} MB; at most {PACKED_LIMIT // 1_000_000} MB are taken"
    packed, unpacked = folder / ".pulling.tar.gz", folder / ".pulling"
    _remove(unpacked)
    unpacked.mkdir()
    try:
        if not await place.fetch_file(archive, packed, limit=PACKED_LIMIT):
            return None
        content = await asyncio.to_thread(unpack_archive, packed, unpacked)
    except BadArchive as error:
        return plain(str(error), 300)
    else:
        if content.refused:
            names = ", ".join(plain(name, 60) for name in content.refused[:3])
            notes.append(f"{len(content.refused)} members of its archive were not unpacked: {names}")
        (folder / _SOURCE_FILE).unlink(missing_ok=True)
        for name in (PACKED_OUTPUT_FOLDER, BUNDLE_FILE):
            _remove(folder / name)
            if (unpacked / name).exists():
                (unpacked / name).rename(folder / name)
        write_beside(folder / _SOURCE_FILE, agent.agent_id.encode())
        return ""
    finally:
        packed.unlink(missing_ok=True)
        _remove(unpacked)


def _read_outcome(folder: Path) -> tuple[Outcome | None, str]:
    path = folder / PACKED_OUTPUT_FOLDER / OUTCOME_FILE
    try:
        with path.open("rb") as file:
            raw = file.read(OUTCOME_SIZE_LIMIT + 1)
    except OSError:
        return None, "its archive holds no outcome"
    try:
        return parse_outcome(raw), ""
    except BrokenReport as error:
        return None, plain(str(error), 300)


async def _pull_uncommitted(place: Place, agent: AgentAddress, folder: Path, notes: list[str]) -> bool:
    """Keep uncommitted work as a patch; return whether there is some, whole."""
    try:
        patch = await place.uncommitted_patch(agent, without=OUTPUT_FOLDER, limit=PATCH_LIMIT)
        if patch:
            write_beside(folder / "uncommitted.patch", patch)
    except (JournalError, NoSpaceForGit):
        raise
    except SwarmError as error:
        notes.append(f"its uncommitted work could not be kept: {plain(str(error), 200)}")
        return False
    if patch:
        notes.append("it left uncommitted work, kept as uncommitted.patch")
    return bool(patch)


async def pull_transcript(place: Place, agent: AgentAddress, folder: Path, emitters: Sequence[str]) -> None:
    """Copy an agent's transcript into a folder of the sweep, where it has one."""
    (path,) = await find_transcripts(place, [(agent, emitters)])
    if path is not None:
        await place.fetch_file(AgentFile(agent, path), folder / HARVESTED_NAME, limit=TRANSCRIPT_LIMIT)


async def _keep_screen(place: Place, agent: AgentAddress, folder: Path) -> None:
    """Keep the last screen: when the agent is stopped, it is gone."""
    try:
        screens = await place.capture_screens([agent.session], history=SCREEN_HISTORY)
    except AdapterError:
        return
    screen = screens.get(agent.session)
    if screen is not None:
        write_beside(folder / SCREEN_NAME, screen.encode(errors="replace"))


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

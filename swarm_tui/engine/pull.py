"""Pulls everything of an agent's work into the sweep folder, whatever state it is in, and never trusts a byte of it."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import NoSpaceForGit, Repository
from swarm_tui.agents.contract import ARCHIVE_PATH, BUNDLE_FILE, OUTPUT_FOLDER, PACKED_OUTPUT_FOLDER, USED_PATH
from swarm_tui.engine.archive import BadArchive, unpack_archive
from swarm_tui.engine.commits import FetchedCommits, fetch_agent_commits
from swarm_tui.errors import AdapterError, JournalError, SwarmError
from swarm_tui.journal.folder import write_beside
from swarm_tui.model.outcome import OUTCOME_SIZE_LIMIT, Outcome
from swarm_tui.model.text import plain
from swarm_tui.model.used_code import USED_FILE, USED_LIMIT
from swarm_tui.places.place import AgentAddress, AgentFile, Place, PlaceUnreachable, ReadRequest
from swarm_tui.regular_file import open_regular, read_regular
from swarm_tui.transcripts.entries import record_time
from swarm_tui.transcripts.locate import (
    HARVESTED_NAME,
    SCREEN_NAME,
    TranscriptSources,
    choose_transcript,
    subagent_logs,
)

PACKED_LIMIT: Final = 64_000_000
PATCH_LIMIT: Final = 32_000_000
TRANSCRIPT_LIMIT: Final = 500_000_000
SUBAGENTS_LIMIT: Final = 200
# Logs that are larger together are not merged: the transcript is then the agent's alone.
MERGED_LIMIT: Final = 100_000_000
SCREEN_HISTORY: Final = 2_000
# Holds the id of the agent whose output is unpacked: what an earlier attempt handed in says nothing of a later one.
_SOURCE_FILE: Final = ".pulled-from"
UNPACKED_FOLDER: Final = ".pulling"
HANDED_IN: Final = (PACKED_OUTPUT_FOLDER, BUNDLE_FILE)


@dataclass(frozen=True, slots=True)
class Pulled:
    """What could be had of an agent's work."""

    has_output: bool = False
    """Whether the agent has handed in something that could be unpacked."""
    problem: str = ""
    """What is wrong with what it handed in."""
    outcome: Outcome | None = None
    """The outcome of a test's agent, once it is read."""
    fetched: FetchedCommits = field(default_factory=FetchedCommits)
    has_uncommitted: bool = False
    notes: tuple[str, ...] = ()


async def pull_work(
    place: Place,
    agent: AgentAddress,
    folder: Path,
    *,
    repository: Repository,
    base: str,
    branch: str,
    ref: str,
    sources: TranscriptSources,
) -> Pulled:
    """Pull output, commits, transcript, screen and uncommitted work of one agent into a folder of the sweep.

    JournalError says that there is no room for it here, PlaceUnreachable that its host is lost, and neither says
    anything about the agent: it can be pulled again.
    """
    notes: list[str] = []
    try:
        _, problem = await asyncio.gather(
            _keep_screen(place, agent, folder), _pull_archive(place, agent, folder, notes)
        )
        await _pull_transcript(place, agent, folder, sources)
        await _pull_used_code(place, agent, folder)
        bundle = folder / BUNDLE_FILE
        fetched = await fetch_agent_commits(
            repository,
            place,
            agent,
            base=base,
            branch=branch,
            ref=ref,
            bundle=bundle if problem == "" and bundle.is_file() else None,
        )
        has_uncommitted = await _pull_uncommitted(place, agent, folder, notes)
    except OSError as error:
        raise JournalError(f"{error.filename or folder} cannot be written", error.strerror or str(error)) from error
    return Pulled(problem == "", problem or "", None, fetched, has_uncommitted, tuple(notes))


def was_pulled(folder: Path, agent_id: str) -> bool:
    """Return whether a folder holds what this very agent has handed in."""
    for place in (folder / UNPACKED_FOLDER, folder):
        with contextlib.suppress(OSError):
            source = read_regular(place / _SOURCE_FILE).decode(errors="replace").partition("\n")[0]
            return bool(agent_id) and source.strip() == agent_id
    return False


def read_output(folder: Path, name: str) -> bytes | None:
    """Return the beginning of a file that an agent handed in, at most one byte more than a file may hold."""
    try:
        with open_regular(folder / PACKED_OUTPUT_FOLDER / name) as file:
            return file.read(OUTCOME_SIZE_LIMIT + 1)
    except OSError:
        return None


async def _pull_used_code(place: Place, agent: AgentAddress, folder: Path) -> None:
    """Keep what the test used in its first run, for sweeps that come later."""
    await place.fetch_file(AgentFile(agent, USED_PATH), folder / USED_FILE, limit=USED_LIMIT)


async def _pull_archive(place: Place, agent: AgentAddress, folder: Path, notes: list[str]) -> str | None:
    """Copy and unpack the archive; return what is wrong with it ("" when nothing is), or None when there is none.

    What was unpacked before is replaced only by a whole new output. It counts when the same agent handed it in and is
    gone since, as after an engine that was killed while it harvested.
    """
    archive = AgentFile(agent, ARCHIVE_PATH)
    await asyncio.to_thread(_take_over, folder)
    (found,) = await place.read_files([ReadRequest(archive)])
    if found is None:
        return "" if was_pulled(folder, agent.agent_id) else None
    if found.size > PACKED_LIMIT:
        return f"its archive has {found.size // 1_000_000} MB; at most {PACKED_LIMIT // 1_000_000} MB are taken"
    packed, unpacked = folder / ".pulling.tar.gz", folder / UNPACKED_FOLDER
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
            listed = ", ".join(plain(name, 60) for name in content.refused[:3])
            notes.append(f"{len(content.refused)} members of its archive were not unpacked: {listed}")
        names = [name for name in HANDED_IN if (unpacked / name).exists()]
        write_beside(unpacked / _SOURCE_FILE, "\n".join([agent.agent_id, *names]).encode())
        await asyncio.to_thread(_take_over, folder)
        return ""
    finally:
        packed.unlink(missing_ok=True)
        if not (unpacked / _SOURCE_FILE).exists():
            _remove(unpacked)


def _take_over(folder: Path) -> None:
    """Put what was unpacked whole in the place of what was there before; done again, it goes on where it was killed."""
    unpacked = folder / UNPACKED_FOLDER
    try:
        agent_id, *names = read_regular(unpacked / _SOURCE_FILE).decode(errors="replace").split("\n")
    except OSError:
        return
    (folder / _SOURCE_FILE).unlink(missing_ok=True)
    for name in HANDED_IN:
        if name not in names:
            _remove(folder / name)
        elif (unpacked / name).exists():
            _remove(folder / name)
            (unpacked / name).rename(folder / name)
    write_beside(folder / _SOURCE_FILE, agent_id.encode())
    _remove(unpacked)


async def _pull_uncommitted(place: Place, agent: AgentAddress, folder: Path, notes: list[str]) -> bool:
    """Keep uncommitted work as a patch; return whether there is some, whole."""
    try:
        patch = await place.uncommitted_patch(agent, without=OUTPUT_FOLDER, limit=PATCH_LIMIT)
        if patch:
            write_beside(folder / "uncommitted.patch", patch)
    except (JournalError, NoSpaceForGit, PlaceUnreachable):
        raise
    except SwarmError as error:
        notes.append(f"its uncommitted work could not be kept: {plain(str(error), 200)}")
        return False
    if patch:
        notes.append("it left uncommitted work, kept as uncommitted.patch")
    return bool(patch)


async def _pull_transcript(place: Place, agent: AgentAddress, folder: Path, sources: TranscriptSources) -> None:
    """Copy an agent's transcript into a folder of the sweep, where it has one, with those of its subagents."""
    (files,) = await place.find_files([agent], sources.patterns)
    path = choose_transcript((file.path for file in files), sources, agent.agent_id)
    if path is None:
        return
    await place.fetch_file(AgentFile(agent, path), folder / HARVESTED_NAME, limit=TRANSCRIPT_LIMIT)
    logs = subagent_logs((file.path for file in files), sources, path)[:SUBAGENTS_LIMIT]
    if not logs or sum(file.size for file in files) > MERGED_LIMIT:
        return
    drafts = [folder / f".subagent-{number}.jsonl" for number in range(len(logs))]
    try:
        for log, draft in zip(logs, drafts, strict=True):
            await place.fetch_file(AgentFile(agent, log), draft, limit=MERGED_LIMIT)
        await asyncio.to_thread(_merge_logs, folder / HARVESTED_NAME, [draft for draft in drafts if draft.exists()])
    finally:
        for draft in drafts:
            draft.unlink(missing_ok=True)


def _merge_logs(transcript: Path, others: Sequence[Path]) -> None:
    """Put the records of other logs between those of a transcript by their times; each log keeps its order."""
    logs = []
    for path in (transcript, *others):
        at, timed = 0.0, []
        for line in read_regular(path, TRANSCRIPT_LIMIT).splitlines(keepends=True):
            at = max(at, record_time(line) or 0.0)
            timed.append((at, line if line.endswith(b"\n") else line + b"\n"))
        logs.append(timed)
    write_beside(transcript, b"".join(line for _, line in heapq.merge(*logs, key=itemgetter(0))))


async def _keep_screen(place: Place, agent: AgentAddress, folder: Path) -> None:
    """Keep the last screen: when the agent is stopped, it is gone."""
    try:
        screens = await place.capture_screens([agent], history=SCREEN_HISTORY)
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

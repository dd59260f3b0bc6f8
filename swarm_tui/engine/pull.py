"""Pulls everything of an agent's work into the sweep folder, whatever state it is in, and never trusts a byte of it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from swarm_tui.adapters.git import NoSpaceForGit
from swarm_tui.agents.contract import ARCHIVE_PATH, BUNDLE_FILE, PACKED_OUTPUT_FOLDER
from swarm_tui.agents.kinds import kind_of
from swarm_tui.engine.archive import BadArchive, unpack_archive
from swarm_tui.engine.commits import Brought, bring_commits, keep_uncommitted
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.names import harvest_ref
from swarm_tui.engine.reach import AgentFiles, LocalFiles, Place
from swarm_tui.errors import AdapterError, JournalError, SwarmError
from swarm_tui.journal.folder import write_beside
from swarm_tui.model.outcome import OUTCOME_FILE, OUTCOME_SIZE_LIMIT, BrokenReport, Outcome, parse_outcome
from swarm_tui.model.state import TestRecord
from swarm_tui.model.text import plain
from swarm_tui.transcripts.locate import HARVESTED_NAME, SCREEN_NAME, choose_transcript

PACKED_LIMIT: Final = 64_000_000
TRANSCRIPT_LIMIT: Final = 500_000_000
SCREEN_HISTORY: Final = 2_000
_CHUNK: Final = 1 << 20
_NAMES_LIMIT: Final = 50


@dataclass(frozen=True, slots=True)
class Pulled:
    """What could be had of an agent's work."""

    outcome: Outcome | None = None
    problem: str = ""
    brought: Brought = field(default_factory=Brought)
    has_uncommitted: bool = False
    notes: tuple[str, ...] = ()


async def pull_work(context: EngineContext, record: TestRecord, files: LocalFiles, session: str) -> Pulled:
    """Pull outcome, output, commits, transcript, screen and uncommitted work of one agent.

    An error says that there is no room for it here, and nothing about the agent: it can be pulled again.
    """
    try:
        return await _pull(context, record, files, session)
    except OSError as error:
        where = error.filename or context.folder.agent(record.agent)
        raise JournalError(f"{where} cannot be written", error.strerror or str(error)) from error


async def _pull(context: EngineContext, record: TestRecord, files: LocalFiles, session: str) -> Pulled:
    folder = context.agent_folder(record.agent)
    notes: list[str] = []
    _, archive_problem = await asyncio.gather(
        _keep_screen(context, session, folder), _pull_archive(files, folder, notes)
    )
    await pull_transcript(files, folder, kind_of(context.spec.agent_type).transcript_emitters)
    outcome, problem = None, archive_problem
    if archive_problem == "":
        outcome, problem = await asyncio.to_thread(_read_outcome, folder)
    brought, has_uncommitted = await asyncio.to_thread(_pull_commits, context, record, files, folder, notes)
    return Pulled(outcome, problem or "", brought, has_uncommitted, tuple(notes))


async def _pull_archive(files: AgentFiles, folder: Path, notes: list[str]) -> str | None:
    """Copy and unpack the archive; return what is wrong with it ("" when nothing is), or None when there is none."""
    size = await files.size("state", ARCHIVE_PATH)
    for old in (PACKED_OUTPUT_FOLDER, BUNDLE_FILE):
        _remove(folder / old)
    if size is None:
        return None
    if size > PACKED_LIMIT:
        return f"its archive has {size // 1_000_000} MB; at most {PACKED_LIMIT // 1_000_000} MB are taken"
    packed, unpacked = folder / ".pulling.tar.gz", folder / ".pulling"
    _remove(unpacked)
    unpacked.mkdir()
    try:
        await _copy(files, "state", ARCHIVE_PATH, packed, PACKED_LIMIT)
        found = await asyncio.to_thread(unpack_archive, packed, unpacked)
    except BadArchive as error:
        return plain(str(error), 300)
    else:
        if found.refused:
            names = ", ".join(plain(name, 60) for name in found.refused[:3])
            notes.append(f"{len(found.refused)} members of its archive were not unpacked: {names}")
        for name in (PACKED_OUTPUT_FOLDER, BUNDLE_FILE):
            if (unpacked / name).exists():
                (unpacked / name).rename(folder / name)
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


def _pull_commits(
    context: EngineContext, record: TestRecord, files: LocalFiles, folder: Path, notes: list[str]
) -> tuple[Brought, bool]:
    bundle = folder / BUNDLE_FILE
    brought = bring_commits(
        context.repository,
        base=context.spec.base,
        branch=record.branch,
        ref=harvest_ref(context.spec, record.branch),
        bundle=bundle if bundle.is_file() else None,
        copy=files.work_dir,
    )
    try:
        has_uncommitted = keep_uncommitted(files.work_dir, folder / "uncommitted.patch")
    except (JournalError, NoSpaceForGit):
        raise
    except SwarmError as error:
        notes.append(f"its uncommitted work could not be kept: {plain(str(error), 200)}")
        return brought, False
    if has_uncommitted:
        notes.append("it left uncommitted work, kept as uncommitted.patch")
    return brought, has_uncommitted


async def find_transcript(files: AgentFiles, emitters: Sequence[str]) -> str | None:
    """Return where in its state folder an agent writes its transcript, or None while it has none."""
    possible = ["events/common_transcript/events.jsonl"]
    for folder, below in (("events", "/common_transcript"), ("logs", "")):
        names = (await files.list("state", folder))[:_NAMES_LIMIT]
        possible += [f"{folder}/{name}{below}/events.jsonl" for name in names]
    existing = [path for path in possible if await files.size("state", path) is not None]
    return choose_transcript(existing, emitters)


async def pull_transcript(files: AgentFiles, folder: Path, emitters: Sequence[str]) -> None:
    """Copy an agent's transcript into a folder of the sweep, where it has one."""
    path = await find_transcript(files, emitters)
    if path is not None:
        await _copy(files, "state", path, folder / HARVESTED_NAME, TRANSCRIPT_LIMIT)


async def _keep_screen(context: EngineContext, session: str, folder: Path) -> None:
    """Keep the last screen: when the agent is stopped, it is gone."""
    try:
        screens = await context.tmux.capture([session], history=SCREEN_HISTORY)
    except AdapterError:
        return
    screen = screens.get(session)
    if screen is not None:
        write_beside(folder / SCREEN_NAME, screen.encode(errors="replace"))


async def _copy(files: AgentFiles, place: Place, path: str, target: Path, limit: int) -> None:
    draft = target.with_name(f".{target.name}.draft")
    with draft.open("wb") as file:
        offset = 0
        while offset < limit:
            chunk = await files.read(place, path, offset=offset, limit=min(_CHUNK, limit - offset))
            if not chunk:
                break
            # A long transcript is not to keep the engine from everything else.
            await asyncio.to_thread(file.write, chunk)
            offset += len(chunk)
    draft.replace(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)

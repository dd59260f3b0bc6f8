"""Runs one integrator as a mngr agent of the sweep, in a clone of its own, and gets what it hands in."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from swarm_tui.adapters.environment import scrubbed_environment
from swarm_tui.adapters.git import clone_into
from swarm_tui.adapters.mngr_messages import CreateRequest
from swarm_tui.adapters.process import run_process
from swarm_tui.agents.contract import ARCHIVE_PATH, BUNDLE_FILE, PACKED_OUTPUT_FOLDER
from swarm_tui.agents.integrator.inputs import INPUTS_FILE, IntegratorInputs
from swarm_tui.agents.kinds import AgentKind, kind_of, kind_of_sweep
from swarm_tui.agents.prompting import render_integrator_prompt
from swarm_tui.agents.shipped import INTEGRATOR_NAME, write_integrator_program
from swarm_tui.engine.archive import BadArchive, unpack_archive
from swarm_tui.engine.context import EngineContext
from swarm_tui.engine.file_tail import FileTail
from swarm_tui.engine.launch import destroy_agent, protect
from swarm_tui.engine.names import LABEL_ROLE, LABEL_SWEEP, integrator_of
from swarm_tui.engine.pull import pull_transcript
from swarm_tui.engine.transcripts import find_transcripts
from swarm_tui.errors import AgentExists, SwarmError
from swarm_tui.model.events import AgentsStopped, IntegratorSaid
from swarm_tui.model.outcome import INTEGRATOR_OUTCOME_FILE, OUTCOME_SIZE_LIMIT
from swarm_tui.model.text import plain
from swarm_tui.places.place import AgentAddress, AgentFile, PlaceUnreachable

ROLE_INTEGRATOR: Final = "integrator"
LOOK_INTERVAL: Final = 0.2
PROBE_INTERVAL: Final = 2.0
# One that waits for less may be between two things.
WAITING_TOLD_AFTER: Final = 5.0
# Besides measuring, of which the inputs say how long it may take: reading, merging, a copy, the last run.
BUILTIN_EXTRA: Final = 900.0
ATTEMPTS_KNOWN: Final = 1_000
_PROMPT_FILE: Final = "prompt.md"


class IntegratorFailed(SwarmError):
    """An integrator gave nothing that can be used; the message says why."""


@dataclass(frozen=True, slots=True)
class HandedIn:
    """What an integrator has handed in; both are hostile until checked."""

    outcome: bytes
    bundle: Path | None


async def run_integrator(context: EngineContext, inputs: IntegratorInputs, by: str) -> HandedIn:
    """Run an integrator to its end and return what it handed in."""
    spec = context.spec
    agent = integrator_of(spec)
    place = await _free_place(context, agent)
    kind = kind_of("command") if by == "builtin" else kind_of_sweep(spec)
    request = _request(context, inputs, by, agent, place, kind)
    try:
        await context.mngr.create(request)
    except SwarmError as error:
        if not isinstance(error, AgentExists):
            await destroy_agent(context, place)
        if by != "builtin":
            raise IntegratorFailed(f"it could not be launched: {plain(str(error), 300)}") from error
        context.note(f"the integrator works without mngr, which refused to create it: {error}", level="warning")
        return await _run_without_mngr(context, inputs)
    await protect(context, agent)
    limit = inputs.measure_seconds + BUILTIN_EXTRA if by == "builtin" else spec.timeout
    try:
        await _wait_for_archive(context, agent, place, limit, kind)
        return await asyncio.to_thread(_unpack, Path(place.state_dir) / ARCHIVE_PATH, context.folder.integrator)
    finally:
        await _keep_transcript(context, place, kind)
        if not spec.keep_agents:
            await _stop(context, agent)


async def _free_place(context: EngineContext, agent: str) -> AgentAddress:
    """Return a place for the integrator that no earlier one has had; an earlier one goes, for it begins anew."""
    for attempt in range(1, ATTEMPTS_KNOWN):
        place = context.address_of(agent, attempt)
        if not Path(place.state_dir).exists() and not Path(place.work_dir).exists():
            return place
        await destroy_agent(context, place)
    raise IntegratorFailed(f"{ATTEMPTS_KNOWN} integrators have worked on this sweep already")


def _request(
    context: EngineContext, inputs: IntegratorInputs, by: str, agent: str, place: AgentAddress, kind: AgentKind
) -> CreateRequest:
    spec, folder = context.spec, context.folder.integrator.absolute()
    prompt = folder / _PROMPT_FILE
    if by != "builtin":
        template = Path(spec.integrator_prompt) if spec.integrator_prompt else None
        prompt.write_text(render_integrator_prompt(template, inputs, context.folder.root.absolute()), encoding="utf-8")
    program = write_integrator_program(context.folder.root.absolute())
    return CreateRequest(
        name=agent,
        agent_type=kind.mngr_type,
        command=(str(program), str(folder / INPUTS_FILE)) if by == "builtin" else spec.agent_arguments,
        source=Path(spec.repository),
        # Always a clone of its own: what it makes reaches the user's repository only after it was checked.
        transfer="git-mirror",
        base=spec.base,
        branch=inputs.branch,
        labels=spec.labels | {LABEL_SWEEP: spec.sweep, LABEL_ROLE: ROLE_INTEGRATOR},
        message=None if by == "builtin" else kind.message(prompt),
        passed_environment=spec.agent_environment,
        provider=spec.provider,
        is_approved=True,
        extra_arguments=("--id", place.agent_id, "--target-path", place.work_dir),
    )


async def _wait_for_archive(
    context: EngineContext, agent: str, place: AgentAddress, limit: float, kind: AgentKind
) -> None:
    spec = context.spec
    archive, deadline = Path(place.state_dir) / ARCHIVE_PATH, time.monotonic() + limit
    probe_due, times_gone = time.monotonic() + PROBE_INTERVAL, 0
    active_at, is_told = time.monotonic(), False
    voice = _Voice(context, place, kind)
    # Files tell of their appearance to nobody who may be on another machine one day: they are looked for.
    while not archive.is_file():
        now = time.monotonic()
        if now >= deadline:
            raise IntegratorFailed(f"it had not handed in its work after {limit:.0f} s")
        if now >= probe_due:
            probe_due = now + PROBE_INTERVAL
            await voice.listen()
            with contextlib.suppress(PlaceUnreachable):
                found = await context.place.agent_statuses()
                seen = found.agents.get(agent)
                is_gone = seen is None or seen.state in ("DONE", "STOPPED")
                times_gone = times_gone + 1 if is_gone else 0
                if seen is None or seen.state != "WAITING":
                    active_at, is_told = now, False
                elif not is_told and now - active_at >= WAITING_TOLD_AFTER:
                    is_told = True
                    asked = f": {voice.summary.last_line}" if voice.summary.last_line else ""
                    context.note(
                        f"the integrator waits for an answer (`swarm-tui attach integrator` leads to it){asked}",
                        level="warning",
                    )
            if times_gone > 1 and not archive.is_file():
                await voice.listen()
                said = f"it said {voice.summary.last_line!r}" if voice.summary.last_line else ""
                raise IntegratorFailed("its process ended before it handed in its work", said)
        if now - active_at >= spec.wait_timeout:
            raise IntegratorFailed("it waited for an answer, and nobody gave one")
        await asyncio.sleep(LOOK_INTERVAL)
    await voice.listen()


class _Voice:
    """Records in the journal what the integrator reports."""

    def __init__(self, context: EngineContext, place: AgentAddress, kind: AgentKind) -> None:
        self.summary = kind.new_summary()
        self._context = context
        self._emitters = kind.transcript_emitters
        self._address = place
        self._transcript: FileTail | None = None

    async def listen(self) -> None:
        """Read on in its transcript; record its last words when they are new."""
        if self._transcript is None:
            (path,) = await find_transcripts(self._context.place, [(self._address, self._emitters)])
            if path is None:
                return
            self._transcript = FileTail(AgentFile(self._address, path))
        known = self.summary.last_line
        (piece,) = await self._context.place.read_files([self._transcript.request])
        self.summary.read(self._transcript.read_lines(piece))
        if self.summary.last_line != known:
            self._context.record(IntegratorSaid(line=self.summary.last_line))


def _unpack(archive: Path, folder: Path) -> HandedIn:
    """Unpack what was handed in beside the inputs and read the outcome."""
    unpacked = folder / ".unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir(parents=True)
    try:
        unpack_archive(archive, unpacked)
        for name in (PACKED_OUTPUT_FOLDER, BUNDLE_FILE):
            _replace(unpacked / name, folder / name)
        with (folder / PACKED_OUTPUT_FOLDER / INTEGRATOR_OUTCOME_FILE).open("rb") as file:
            outcome = file.read(OUTCOME_SIZE_LIMIT + 1)
    except BadArchive as error:
        raise IntegratorFailed(plain(str(error), 300)) from error
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise IntegratorFailed("it handed in no outcome") from error
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    bundle = folder / BUNDLE_FILE
    return HandedIn(outcome, bundle if bundle.is_file() else None)


def _replace(source: Path, target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
    if source.exists():
        source.rename(target)


async def _keep_transcript(context: EngineContext, place: AgentAddress, kind: AgentKind) -> None:
    with contextlib.suppress(OSError):
        await pull_transcript(context.place, place, context.folder.integrator, kind.transcript_emitters)


async def _stop(context: EngineContext, agent: str) -> None:
    try:
        await context.mngr.stop([agent])
    except SwarmError as error:
        context.note(f"{agent} could not be stopped: {error}", level="warning")
    else:
        context.record(AgentsStopped(agents=(agent,)))


async def _run_without_mngr(context: EngineContext, inputs: IntegratorInputs) -> HandedIn:
    """Run the built-in integrator as a plain process in a clone of its own."""
    program = write_integrator_program(context.folder.root.absolute())
    with tempfile.TemporaryDirectory(prefix="swarm-integrate-") as root:
        work, state = Path(root) / "work", Path(root) / "state"
        state.mkdir()
        await asyncio.to_thread(clone_into, context.repository, work, commit=inputs.base, branch=inputs.branch)
        environment = scrubbed_environment(
            {"MNGR_AGENT_STATE_DIR": str(state), "MNGR_AGENT_WORK_DIR": str(work), "MNGR_HOST_DIR": root}
        )
        finished = await run_process(
            [str(program), str(context.folder.integrator.absolute() / INPUTS_FILE)],
            cwd=work,
            environment=environment,
            timeout=inputs.measure_seconds + BUILTIN_EXTRA,
        )
        if not (state / ARCHIVE_PATH).exists():
            last = (finished.text + finished.error_text).strip().splitlines() or ["it said nothing"]
            raise IntegratorFailed(f"{INTEGRATOR_NAME} ended with code {finished.code}: {plain(last[-1], 300)}")
        return await asyncio.to_thread(_unpack, state / ARCHIVE_PATH, context.folder.integrator)

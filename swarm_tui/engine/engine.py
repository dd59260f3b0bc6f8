"""Runs the engine of a sweep: locks the sweep, repairs its journal, resumes and runs it to its end."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from swarm_tui import __version__
from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.agents.kinds import kind_of_sweep
from swarm_tui.engine.after_sweep import announce_measuring, measure_teeth
from swarm_tui.engine.context import EngineContext, agents_environment
from swarm_tui.engine.copy_preparation import remove_temporary_folder
from swarm_tui.engine.journal_keeper import JournalKeeper, TakenUp, take_up_journal
from swarm_tui.engine.notifier import Notifier, notifier_of
from swarm_tui.engine.request_handler import RequestHandler
from swarm_tui.engine.resume import Resumer, check_continued
from swarm_tui.engine.sweep_runner import SweepRunner, first_error
from swarm_tui.errors import SwarmError
from swarm_tui.journal.append import EngineLock, JournalWriter
from swarm_tui.journal.fold import SweepState
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.model.events import EngineEnded, EngineStarted
from swarm_tui.model.hosts import made_hosts
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.places.choose import place_for

_NICENESS: Final = 10
"""Of what runs when the sweep is over: it leaves the processors to people."""

OpenContext = Callable[[SweepFolder, SweepSpec, JournalWriter, SweepState], EngineContext]


def run_engine(root: Path, *, is_relaunching: bool = False, open_context: OpenContext | None = None) -> int:
    """Work on the sweep in a folder until it is done; return the exit code."""
    folder = SweepFolder(root)
    lock = EngineLock(folder.lock)
    lock.acquire()
    try:
        code, notifier, is_measuring = asyncio.run(_work(folder, is_relaunching, open_context or make_context))
    finally:
        lock.release()
    asyncio.run(_end(folder, notifier, is_measuring=is_measuring))
    return code


async def _end(folder: SweepFolder, notifier: Notifier, *, is_measuring: bool) -> None:
    """Do what nobody waits for: the sweep is over for everybody else."""
    if is_measuring:
        os.nice(_NICENESS)
    # A last message may have to wait until it may be sent.
    work = [notifier.send_last(), *([measure_teeth(folder)] if is_measuring else [])]
    tasks = [asyncio.ensure_future(each) for each in work]
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: [task.cancel() for task in tasks])
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


async def _work(folder: SweepFolder, is_relaunching: bool, open_context: OpenContext) -> tuple[int, Notifier, bool]:
    spec = folder.read_spec()
    await check_continued(folder, spec)
    taken_up = await asyncio.to_thread(take_up_journal, folder, spec)
    writer, state = taken_up.writer, taken_up.state
    with writer:
        context = open_context(folder, spec, writer, state)
        was_started, is_resumed = state.started_at is not None, taken_up.is_resumed
        context.record(
            EngineStarted(
                pid=os.getpid(),
                machine=platform.node(),
                version=__version__,
                is_resumed=is_resumed,
                slots=state.slots or spec.slots,
                budget=state.budget.total if was_started else spec.budget or 0.0,
                budget_each=state.budget.each if was_started else spec.budget_each or 0.0,
            )
        )
        if taken_up.repair.summary:
            context.note(taken_up.repair.summary, level="warning")
        notifier, keeper = notifier_of(context), JournalKeeper(folder, writer, state)
        beside = [asyncio.ensure_future(work) for work in (notifier.run(), keeper.run())]
        try:
            why, reason = await _run(context, taken_up, is_relaunching)
        finally:
            await context.place.close()
        if why == "finished" and not spec.keep_agents:
            await asyncio.to_thread(remove_temporary_folder, spec)
        is_measuring = why == "finished" and await announce_measuring(context)
        for task in beside:
            task.cancel()
        context.record(EngineEnded(why=why, reason=reason))
        writer.sync()
        keeper.count_foreign_lines()
        await keeper.keep()
    return (1 if why == "failed" else 0), notifier, is_measuring


def make_context(folder: SweepFolder, spec: SweepSpec, writer: JournalWriter, state: SweepState) -> EngineContext:
    """Open the adapters that a sweep is worked on through."""
    repository = Repository.open(Path(spec.repository))
    return EngineContext(
        folder=folder,
        spec=spec,
        writer=writer,
        state=state,
        mngr=Mngr(spec.mngr.path, agents_environment(spec, repository), Path(spec.repository)),
        place=place_for(spec, made_hosts(state.hosts)),
        repository=repository,
    )


async def _run(
    context: EngineContext, taken_up: TakenUp, is_relaunching: bool
) -> tuple[Literal["finished", "stopped", "failed"], str]:
    runner = SweepRunner(context)
    working = asyncio.ensure_future(_resume_and_run(runner, taken_up, is_relaunching))
    # On SIGTERM the engine ends at once; its agents go on working, and `resume` adopts them.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        return "stopped", "the engine was asked to end; its agents work on"
    except (SwarmError, OSError) as error:
        # Most often a full disk. If the journal cannot be written either, the error goes to the engine's log.
        return "failed", str(error)
    if runner.is_stopping:
        return "stopped", runner.stop_reason
    return "finished", ""


async def _resume_and_run(runner: SweepRunner, taken_up: TakenUp, is_relaunching: bool) -> None:
    kind = kind_of_sweep(runner.context.spec)
    if taken_up.is_resumed:
        await Resumer(runner.context, runner, is_relaunching).resume(taken_up.earlier)
    elif kind.unknown_facts:
        runner.context.note(f"of {kind.agent_type} agents, {kind.unknown_facts} are not known")
    if runner.new_hosts is not None:
        await runner.new_hosts.take_up()
    try:
        await runner.run(RequestHandler(runner.context, runner))
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors

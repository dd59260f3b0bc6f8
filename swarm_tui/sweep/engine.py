"""The engine process (python -m swarm_tui.sweep.engine): lock, recover, resume, run, measure strength afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import platform
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from msgspec import structs

from swarm_tui import __version__
from swarm_tui.adapters.git import Repository
from swarm_tui.adapters.mngr import Mngr
from swarm_tui.adapters.processes import keep_ignored_signals_to_ourselves
from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.hosts.events import made_hosts
from swarm_tui.hosts.registry import open_hosts
from swarm_tui.integrator.events import IntegrationFailed
from swarm_tui.journal.append import EngineLock, JournalWriter, engine_process_id
from swarm_tui.journal.events import CheckoutChanged, EngineEnded, EngineStarted
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.recover import JournalOwner, RecoveredJournal, take_up_journal
from swarm_tui.journal.state import SweepState
from swarm_tui.model.formatting import counted
from swarm_tui.model.spec import SweepSpec, integrator_of
from swarm_tui.review.open import review_sweep
from swarm_tui.strength.review import strength_of_review
from swarm_tui.sweep.context import SweepContext, agents_environment
from swarm_tui.sweep.copies import hold_base, remove_temporary_folder
from swarm_tui.sweep.notifications import Notifier, notifier_of
from swarm_tui.sweep.requests import RequestHandler
from swarm_tui.sweep.resume import Resumer, check_continued
from swarm_tui.sweep.run import RunningSweep, first_error
from swarm_tui.sweep.user_checkout import checkout_changes, remember_checkout

LONGEST: Final = 1800.0
"""The time limit in seconds. `swarm-tui fixes --strength` continues from there."""
_LOOK: Final = 1.0


async def announce_measuring(context: SweepContext) -> bool:
    """Return whether there is something to measure, and note in the log that it begins."""
    integration = context.state.integration
    if not context.spec.measures_strength or integration.state != "done" or not integration.tip:
        return False
    try:
        count = await asyncio.to_thread(_count_unmeasured, context.folder)
    except (SwarmError, OSError) as error:
        context.note(f"the tests that were changed cannot be measured: {error}", level="warning")
        return False
    if count:
        changed = counted(count, "changed test")
        context.note(f"{changed}: measured from now on, in the background; `swarm-tui fixes --strength` waits for it")
    return count > 0


def _count_unmeasured(folder: SweepFolder) -> int:
    with review_sweep(folder) as review:
        return strength_of_review(review, folder)[0].unmeasured


async def measure_strength(folder: SweepFolder) -> None:
    """Measure the changed tests of a sweep until it is done, takes too long, or another engine starts."""
    end = time.monotonic() + LONGEST
    try:
        with await asyncio.to_thread(review_sweep, folder) as review:
            strength, _ = await asyncio.to_thread(strength_of_review, review, folder)
            measuring = asyncio.ensure_future(strength.measure(lambda _: None))
            try:
                while not measuring.done() and time.monotonic() < end and engine_process_id(folder.lock) is None:
                    await asyncio.wait({measuring}, timeout=_LOOK)
                if measuring.done():
                    measuring.result()
            finally:
                measuring.cancel()
                await asyncio.gather(measuring, return_exceptions=True)
    except (SwarmError, OSError) as error:
        # The journal is closed: this goes to the engine's log.
        print(f"the changed tests are not measured: {error}", file=sys.stderr)


_NICENESS: Final = 10
"""The niceness of work after the sweep, which leaves the processors to the user."""

OpenContext = Callable[[SweepFolder, SweepSpec, JournalWriter, SweepState], SweepContext]


def run_engine(root: Path, *, is_relaunching: bool = False, open_context: OpenContext | None = None) -> int:
    """Run the engine of the sweep in a folder until it is done; return the exit code."""
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
    """Do the work that nothing waits for."""
    if is_measuring:
        os.nice(_NICENESS)
    # The last message may have to wait for its turn.
    work = [notifier.send_last(), *([measure_strength(folder)] if is_measuring else [])]
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
        notifier, keeper = notifier_of(context), JournalOwner(folder, writer, state)
        beside = [asyncio.ensure_future(work) for work in (notifier.run(), keeper.run())]
        try:
            why, reason = await _run(context, taken_up, is_relaunching)
        finally:
            await context.hosts.close()
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


def make_context(folder: SweepFolder, spec: SweepSpec, writer: JournalWriter, state: SweepState) -> SweepContext:
    """Open the adapters of a sweep."""
    repository = Repository.open(Path(spec.repository))
    return SweepContext(
        folder=folder,
        spec=spec,
        writer=writer,
        state=state,
        mngr=Mngr(spec.mngr.path, agents_environment(spec, repository), Path(spec.repository)),
        hosts=open_hosts(spec, made_hosts(state.hosts)),
        repository=repository,
    )


async def _run(
    context: SweepContext, taken_up: RecoveredJournal, is_relaunching: bool
) -> tuple[Literal["finished", "stopped", "failed"], str]:
    sweep = RunningSweep(context)
    working = asyncio.ensure_future(_resume_and_run(sweep, taken_up, is_relaunching))
    # On SIGTERM the engine exits at once. Its agents keep running, and `resume` adopts them.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        return "stopped", "the engine was stopped; its agents keep running"
    except (SwarmError, OSError) as error:
        # The usual cause is a full disk. If the journal is not writable either, the error is in the engine's log.
        return "failed", str(error)
    await _report_checkout(context)
    if sweep.is_stopping:
        return "stopped", sweep.stop_reason
    return "finished", ""


async def _remember_checkout(context: SweepContext) -> None:
    try:
        await asyncio.to_thread(remember_checkout, context.folder, context.repository)
    except SwarmError as error:
        context.note(f"changes in your repository will not be noticed: {error}", level="warning")


async def _report_checkout(context: SweepContext) -> None:
    """Record the differences in the user's repository since the agents began."""
    try:
        changes = await asyncio.to_thread(checkout_changes, context)
        if changes:
            known = context.state.checkout_changes
            context.record(CheckoutChanged(changes=(*known, *(each for each in changes if each not in known))))
    except (SwarmError, OSError) as error:
        context.note(f"the checkout cannot be compared with what it was: {error}", level="warning")


async def _resume_and_run(sweep: RunningSweep, taken_up: RecoveredJournal, is_relaunching: bool) -> None:
    await asyncio.to_thread(hold_base, sweep.context.repository, sweep.context.spec)
    await _remember_checkout(sweep.context)
    kind = agent_type_of_sweep(sweep.context.spec)
    if taken_up.is_resumed:
        await Resumer(sweep.context, sweep, is_relaunching).resume(taken_up.earlier)
    elif kind.unknown_facts:
        sweep.context.note(f"unknown for {kind.name} agents: {kind.unknown_facts}")
    if sweep.new_hosts is not None:
        await sweep.new_hosts.take_up()
    try:
        await sweep.run(RequestHandler(sweep.context, sweep))
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors


def main() -> int:
    keep_ignored_signals_to_ourselves()
    try:
        return run_engine(Path(sys.argv[1]), is_relaunching="--relaunch" in sys.argv[2:])
    except SwarmError as error:
        print(f"swarm-tui engine: {error}", file=sys.stderr, flush=True)
        return error.exit_code
    except OSError as error:
        print(f"swarm-tui engine: {error}", file=sys.stderr, flush=True)
        return 1


Who = Literal["builtin", "agent"]


def integrate_again(folder: SweepFolder, by: Who | None = None) -> SweepState:
    """Integrate the agents' work so far and return the new state; `by` None is the sweep's own choice."""
    spec = folder.read_spec()
    if spec.is_newer_format:
        raise UsageError(f"{folder.name} was created by a newer swarm-tui", "update swarm-tui to resume it")
    who: Who = by or ("agent" if spec.integrator == "agent" else "builtin")
    if who == "agent" and not agent_type_of_sweep(spec).can_integrate:
        raise UsageError(f"the {spec.agent_type} agent cannot integrate", "`--integrator builtin` can")
    lock = EngineLock(folder.lock)
    lock.acquire()
    try:
        taken_up = take_up_journal(folder, spec)
        state = taken_up.state
        ended_why, ended_reason, slots = state.ended_why, state.ended_reason, state.slots
        with taken_up.writer as writer:
            context = make_context(folder, dataclasses.replace(spec, integrator=who), writer, state)
            started = EngineStarted(pid=os.getpid(), machine=platform.node(), version=__version__, slots=slots)
            context.record(structs.replace(started, is_resumed=True))
            try:
                asyncio.run(integrate_sweep(context))
            except KeyboardInterrupt:
                context.record(IntegrationFailed(reason="stopped; `swarm-tui integrate` repeats it"))
                # No engine follows the integrator's agent.
                with contextlib.suppress(SwarmError):
                    asyncio.run(context.mngr.stop([integrator_of(context.spec)]))
                raise
            finally:
                # The end of the sweep is recorded as before.
                is_finished = ended_why == "finished"
                context.record(EngineEnded(why="finished" if is_finished else "stopped", reason=ended_reason))
                writer.sync()
    finally:
        lock.release()
    return state


async def integrate_sweep(context: SweepContext) -> None:
    try:
        await RunningSweep(context, is_integrating_only=True).run()
    except BaseExceptionGroup as errors:
        raise first_error(errors) from errors


if __name__ == "__main__":
    sys.exit(main())

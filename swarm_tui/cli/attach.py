"""`swarm-tui attach`: attaches this terminal to one agent, without the room."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.model.text import plain, plain_lines
from swarm_tui.regular_file import read_regular

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.journal.open import OpenedSweep
    from swarm_tui.model.state import TestRecord
    from swarm_tui.places.attach import Approach, Attacher

DESCRIPTION = """Attaches this terminal to an agent through `mngr connect`. Detaching leaves the agent at its work.
While you are attached, mngr's ctrl+q (destroy) and ctrl+t (stop) do nothing."""
EXAMPLES = """\
  swarm-tui attach test_copy                    the agent of that test, in the newest sweep
  swarm-tui attach tests/test_a.py::test_copy   by its whole node id
  swarm-tui attach swarm-20261118-061200-copy   by the agent's name
  swarm-tui attach integrator                   the agent that puts all work together
  swarm-tui attach test_copy --start            start it again if it is stopped, without asking"""

LAST_LINES: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="TEST|AGENT", help="a test, an agent, a part that only one of them has, or: integrator"
    )
    parser.add_argument("--sweep", metavar="SWEEP", help="a sweep's id or folder; the newest one when not given")
    parser.add_argument(
        "--start", action="store_true", help="start a stopped agent: its command runs from the beginning"
    )


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.sweeps import opened_sweep
    from swarm_tui.model.hosts import LOCAL_HOST, made_hosts
    from swarm_tui.places.choose import place_for

    sweep = opened_sweep(arguments.sweep, Path.cwd())
    record = find_integrator(sweep, arguments.target) or sweep.find_test(arguments.target)
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise UsageError("attaching needs a terminal", "standard input and output are not both one")
    attacher = place_for(sweep.spec, made_hosts(sweep.state.hosts)).attacher(record.host or LOCAL_HOST)
    return asyncio.run(_attach(attacher, sweep.folder, record, is_started=arguments.start))


def find_integrator(sweep: OpenedSweep, target: str) -> TestRecord | None:
    """Return a record for the integrator if the target is its name; None if it is not, or if a test has that name."""
    from swarm_tui.engine.names import integrator_of
    from swarm_tui.model.state import TestRecord
    from swarm_tui.model.sweep import INTEGRATOR_SLUG

    agent = integrator_of(sweep.spec)
    is_test = any(record.test.endswith(f"::{target}") for record in sweep.state.tests())
    if is_test or target not in (INTEGRATOR_SLUG, agent):
        return None
    started_at = sweep.state.integration.started_at
    if started_at is None:
        raise UsageError(f"{sweep.folder.name} has no integrator yet", "it begins when every test is done")
    return TestRecord(test="the integrator", agent=agent, launched_at=started_at)


async def _attach(attacher: Attacher, folder: SweepFolder, record: TestRecord, *, is_started: bool) -> int:
    if record.launched_at is None and not record.agent_id:
        raise UsageError(f"{plain(record.test, 80)} has no agent yet", f"it is {record.state.value}")
    approach = await attacher.examine(record.agent)
    if not approach.is_there and not is_started:
        _show_last_screen(folder, record)
        if not _confirm_start(approach, record):
            return 1
        is_started = True
    prepared = await attacher.prepare(approach, is_started=is_started)
    print(f"attaching to {approach.agent}: {approach.way_back} brings you back", file=sys.stderr)
    if approach.is_ended:
        print("its program has ended; this is what it left", file=sys.stderr)
    if prepared.warning:
        print(f"note: {prepared.warning}", file=sys.stderr)
    try:
        code = attacher.run(prepared)
    finally:
        await attacher.clean_up(prepared)
    await _print_state(attacher, record.agent)
    return 0 if code == 0 else 1


def _show_last_screen(folder: SweepFolder, record: TestRecord) -> None:
    try:
        screen = read_regular(folder.agent(record.agent) / "screen.txt")[-100_000:].decode("utf-8", "replace")
    except (OSError, ValueError):
        return
    lines = [line for line in plain_lines(screen).rstrip().split("\n")][-LAST_LINES:]
    print("its last screen:", *(f"  {line}" for line in lines), sep="\n", file=sys.stderr)


def _confirm_start(approach: Approach, record: TestRecord) -> bool:
    print(
        f"{approach.agent} is stopped. Attaching starts its command again, from the beginning"
        + ("; the harvested result stays as it is." if record.is_finished else "."),
        file=sys.stderr,
    )
    print("start it? [y/n] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _print_state(attacher: Attacher, agent: str) -> None:
    """Print what the agent does now: it may have ended while the terminal was attached."""
    try:
        approach = await attacher.examine(agent)
    except SwarmError as error:
        print(f"{agent}: {error}", file=sys.stderr)
        return
    state = (
        "works on"
        if approach.is_there and not approach.is_ended
        else "has ended"
        if approach.is_there
        else "is stopped"
    )
    print(f"{agent} {state}", file=sys.stderr)

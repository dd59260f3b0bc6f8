"""`swarm-tui attach`: attach this terminal to an agent, without the room."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.cli.progress import opened_sweep
from swarm_tui.errors import SwarmError, UsageError
from swarm_tui.files import read_regular
from swarm_tui.hosts.events import made_hosts
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.journal.record import TestRecord
from swarm_tui.model.spec import INTEGRATOR_SLUG, LOCAL_HOST, integrator_of
from swarm_tui.model.text import plain, plain_lines

if TYPE_CHECKING:
    from swarm_tui.hosts.attach import Attacher, AttachPlan

DESCRIPTION = """Attach this terminal to an agent with `mngr connect`. The agent keeps running after you detach.
While you are attached, mngr's keys ctrl+q (destroy) and ctrl+t (stop) are disabled."""
EXAMPLES = """\
  swarm-tui attach test_copy                    the agent of this test, in the newest sweep
  swarm-tui attach tests/test_a.py::test_copy   by the full node id
  swarm-tui attach swarm-20261118-061200-copy   by the agent's name
  swarm-tui attach integrator                   the integrator
  swarm-tui attach test_copy --start            start a stopped agent again without asking"""

LAST_LINES: Final = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="TEST|AGENT", help="a test, an agent, an unambiguous part of either, or `integrator`"
    )
    parser.add_argument("--sweep", metavar="SWEEP", help="the id or folder of a sweep (default: the newest)")
    parser.add_argument(
        "--start", action="store_true", help="start a stopped agent; its command runs from the beginning"
    )


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.hosts.attach import Attacher
    from swarm_tui.hosts.registry import open_hosts

    sweep = opened_sweep(arguments.sweep, Path.cwd())
    record = find_integrator(sweep, arguments.target) or sweep.find_test(arguments.target)
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise UsageError("`attach` requires a terminal", "run it without redirecting standard input and output")
    host = open_hosts(sweep.spec, made_hosts(sweep.state.hosts))[record.host or LOCAL_HOST]
    attacher = Attacher(host, sweep.spec.mngr, Path(sweep.spec.repository))
    return asyncio.run(_attach(attacher, sweep.folder, record, is_started=arguments.start))


def find_integrator(sweep: OpenedSweep, target: str) -> TestRecord | None:
    """Return a record of the integrator if `target` is its name and no test has that name, or None."""
    agent = integrator_of(sweep.spec)
    is_test = any(record.test.endswith(f"::{target}") for record in sweep.state.tests())
    if is_test or target not in (INTEGRATOR_SLUG, agent):
        return None
    started_at = sweep.state.integration.started_at
    if started_at is None:
        raise UsageError(
            f"the integrator of {sweep.folder.name} is not running yet", "try again when all tests are done"
        )
    return TestRecord(test="the integrator", agent=agent, launched_at=started_at)


async def _attach(attacher: Attacher, folder: SweepFolder, record: TestRecord, *, is_started: bool) -> int:
    if record.launched_at is None and not record.agent_id:
        raise UsageError(f"no agent for {plain(record.test, 80)} yet: the test is {record.state.value}")
    approach = await attacher.examine(record.agent)
    if not approach.is_there and not is_started:
        _show_last_screen(folder, record)
        if not _confirm_start(approach, record):
            return 1
        is_started = True
    prepared = await attacher.prepare(approach, is_started=is_started)
    print(f"attaching to {approach.agent}; to detach: {approach.way_back}", file=sys.stderr)
    if approach.is_ended:
        print("the agent's program has exited; this is its last screen", file=sys.stderr)
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
    print("last screen:", *(f"  {line}" for line in lines), sep="\n", file=sys.stderr)


def _confirm_start(approach: AttachPlan, record: TestRecord) -> bool:
    print(
        f"{approach.agent} is stopped. Attaching runs its command again from the beginning."
        + (" The pulled result does not change." if record.is_finished else ""),
        file=sys.stderr,
    )
    print("start it? [y/n] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _print_state(attacher: Attacher, agent: str) -> None:
    """Print the state of the agent: it may have exited while the terminal was attached."""
    try:
        approach = await attacher.examine(agent)
    except SwarmError as error:
        print(f"{agent}: {error}", file=sys.stderr)
        return
    state = (
        "is running"
        if approach.is_there and not approach.is_ended
        else "has exited"
        if approach.is_there
        else "is stopped"
    )
    print(f"{agent} {state}", file=sys.stderr)

"""`swarm-tui run`: start a sweep and show its progress."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from swarm_tui.agents.types import agent_type_of_sweep
from swarm_tui.cli.progress import print_progress
from swarm_tui.cli.sweep_options import (
    add_display_options,
    add_options,
    checked_ci_output,
    read_options,
    say_cost,
    show_sweep,
)
from swarm_tui.cli.wait_bar import WaitBar
from swarm_tui.errors import NothingConcerned, UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.options import SELECTION, THEN
from swarm_tui.model.text import plain
from swarm_tui.sweep.slots import idle_slots
from swarm_tui.sweep.start import start_engine

DESCRIPTION = """Start a sweep: collect the tests of this project, run them in a fresh copy (preflight), and launch one
agent for each test with mngr. Agents work in copies of the repository at the current commit. Your checkout does not
change. The engine is a separate process, so the sweep continues when you close the terminal."""
EXAMPLES = """\
  swarm-tui run                                  run Claude on all tests and open the room
  swarm-tui run --slots 12 --only red            only failing tests, 12 agents at the same time
  swarm-tui run --setup "uv sync" --baseline 3   run each test three times first, to find flaky ones
  swarm-tui run --headless -- tests/e2e -k share select tests with pytest's arguments
  swarm-tui run --changed-since main --title "my branch"
  swarm-tui run --agent offline --records play   play recorded work, without a model and without cost
  swarm-tui run --affected-by main --explain     print the tests that a change affects, and why
Exit codes with --headless: 0 all work is pulled and integrated, or nothing to do; 1 tests are blocked, unresolved, only
claimed, left out (files that cannot be collected) or in an error, the sweep did not finish, or the integrated branch
has problems (tests that passed before fail on it, conflict markers); 2 usage error; 130 interrupted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pytest_arguments", nargs="*", metavar="PYTEST_ARG", help="arguments for pytest, after --")
    groups = add_options(parser, "run")
    groups[SELECTION].add_argument(
        "--explain", action="store_true", help="with --affected-by: print the reasons and exit"
    )
    add_display_options(groups[THEN])


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.sweep.order import begin_sweep, prepare_sweep

    output = checked_ci_output(arguments)
    if arguments.explain:
        return _explain(arguments)
    patience = WaitBar(Path.cwd())
    try:
        spec, tests = patience.wait(
            prepare_sweep(
                read_options(arguments),
                Path.cwd(),
                patience.say,
                patience.say_passing,
                patience.say_count,
                mngr=arguments.mngr,
            )
        )
    except NothingConcerned as error:
        print_progress(str(error))
        return error.exit_code
    spec = say_cost(spec, [test.test for test in tests], print_progress)
    folder = begin_sweep(spec, tests)
    count = counted(len(tests), "test")
    print_progress(f"sweep {folder.name}: {count} on {spec.base_name or spec.base[:10]}, {spec.slots} slots")
    if more := idle_slots(spec.slots, len(tests)):
        print_progress(f"{spec.slots} slots for {more}")
    agent_type = agent_type_of_sweep(spec)
    permission = agent_type.permission(spec.permissions, spec.agent_arguments)
    if permission.sentence:
        print_progress(f"the agents {permission.sentence}")
    if servers := ", ".join(plain(name, 40) for name in spec.unapproved_servers[:10]):
        print_progress(
            f"not available to agents, because .claude/settings.json does not approve them: MCP servers {servers}"
        )
    if imports := ", ".join(plain(name, 80) for name in spec.outside_imports[:10]):
        print_progress(f"not available to agents, because they are outside the project: imports of CLAUDE.md {imports}")
    if spec.confinement is not None:
        exceptions = "by agents" if spec.is_local else "by agents and on hosts"
        print_progress(f"test runs, except {exceptions}, have {spec.confinement.words}; agents are not confined")
    if agent_type.unknown_facts:
        print_progress(f"unknown for {agent_type.name} agents: {agent_type.unknown_facts}")
    start_engine(folder, spec.engine_environment)
    return show_sweep(folder, arguments, output=output)


def _explain(arguments: argparse.Namespace) -> int:
    """Print the tests that a change affects, and why."""
    from swarm_tui.sweep.collect import explain_affected

    if not arguments.affected_by:
        raise UsageError("--explain requires --affected-by", "add --affected-by REV")
    words = tuple(arguments.pytest_arguments)
    reasons = asyncio.run(explain_affected(Path.cwd(), arguments.python, words, arguments.affected_by))
    for test, reason in reasons.items():
        print(f"{'run ' if reason else 'pass'}  {plain(test, 300)}{f': {plain(reason, 300)}' if reason else ''}")
    print(f"{sum(map(bool, reasons.values()))} of {counted(len(reasons), 'test')}")
    return 0

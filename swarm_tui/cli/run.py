"""`swarm-tui run`: collects the tests, starts an agent for each, and shows the progress."""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.sweep_options import add_display_options, add_options, order_of, show_sweep
from swarm_tui.errors import NothingConcerned, UsageError
from swarm_tui.model.formatting import counted
from swarm_tui.model.options import THEN
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.engine.order import Order

DESCRIPTION = """Starts a sweep: collects the tests of this project, tries them in a fresh copy, and puts one agent on
each, through mngr. They work in copies of the repository, from the commit that is checked out now; your checkout is
left alone. The engine is a process of its own: closing the terminal ends nothing."""
EXAMPLES = """\
  swarm-tui run                                  all tests, Claude as the agents, the room to watch them
  swarm-tui run --slots 12 --only red            only the tests that fail now, twelve at a time
  swarm-tui run --setup "uv sync" --baseline 3   each test three times before, to know the flaky ones
  swarm-tui run --headless -- tests/e2e -k share pytest's own arguments choose the tests
  swarm-tui run --changed-since main --title "my branch"
  swarm-tui run --agent offline --records play   play recorded work; no model, no costs
  swarm-tui run --affected-by main --explain     which tests a change concerns, and why
Exit codes with --headless: 0 all harvested and integrated, or no test is concerned; 1 tests failed, are blocked or
stay unresolved, or the sweep did not come to its end; 2 misuse; 130 interrupted."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "pytest_arguments", nargs="*", metavar="PYTEST_ARG", help="after --: given to pytest as they are"
    )
    which = parser.add_argument_group("which tests")
    which.add_argument(
        "--only",
        choices=["red", "flaky", "green"],
        help="run the tests in fresh copies before (--baseline), and take those that fail, are flaky, or pass",
    )
    which.add_argument("--changed-since", metavar="REV", help="tests whose file, or a conftest.py above it, changed")
    which.add_argument(
        "--affected-by",
        metavar="REV",
        help="tests that use what has changed since, as earlier sweeps saw; and those of which that is not known",
    )
    which.add_argument("--explain", action="store_true", help="with --affected-by: print the reasons, launch nothing")
    which.add_argument(
        "--only-failed-of", metavar="SWEEP", help="tests that failed, blocked or stayed unresolved there"
    )
    groups = add_options(parser, "run")
    add_display_options(groups[THEN])


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.agents.kinds import kind_of_sweep
    from swarm_tui.cli.cost_forecast import say_cost
    from swarm_tui.cli.patience import Patience
    from swarm_tui.cli.progress import print_progress
    from swarm_tui.engine.order import begin_sweep, prepare_sweep
    from swarm_tui.engine.schedule import slots_without_tests
    from swarm_tui.engine.start import start_engine
    from swarm_tui.model.text import plain

    if arguments.explain:
        return _explain(arguments)
    patience = Patience(Path.cwd())
    try:
        spec, tests = patience.wait(
            prepare_sweep(_order(arguments), patience.say, patience.say_passing, patience.say_count)
        )
    except NothingConcerned as error:
        print_progress(str(error))
        return error.exit_code
    spec = say_cost(spec, [test.test for test in tests], print_progress)
    folder = begin_sweep(spec, tests)
    count = counted(len(tests), "test")
    print_progress(f"sweep {folder.name}: {count} on {spec.base_name or spec.base[:10]}, {spec.slots} slots")
    if more := slots_without_tests(spec.slots, len(tests)):
        print_progress(f"{spec.slots} slots for {more}")
    kind = kind_of_sweep(spec)
    permission = kind.permission(spec.permissions, spec.agent_arguments)
    if permission.sentence:
        print_progress(f"the agents {permission.sentence}")
    if servers := ", ".join(plain(name, 40) for name in spec.unapproved_servers[:10]):
        print_progress(f"they do without MCP servers that .claude/settings.json does not approve: {servers}")
    if imports := ", ".join(plain(name, 80) for name in spec.outside_imports[:10]):
        print_progress(f"they do without what CLAUDE.md imports from outside of the project: {imports}")
    if spec.confinement is not None:
        print_progress(f"our own test runs have {spec.confinement.words}; the agents are not confined")
    if kind.unknown_facts:
        print_progress(f"of {kind.agent_type} agents, {kind.unknown_facts} are not known")
    start_engine(folder, spec.engine_environment)
    return show_sweep(folder, arguments)


def _explain(arguments: argparse.Namespace) -> int:
    """Print which tests a change concerns, and why."""
    from swarm_tui.engine.collect import explain_affected

    if not arguments.affected_by:
        raise UsageError("--explain says nothing of its own", "give --affected-by REV too")
    words = tuple(arguments.pytest_arguments)
    reasons = asyncio.run(explain_affected(Path.cwd(), arguments.python, words, arguments.affected_by))
    for test, reason in reasons.items():
        print(f"{'run ' if reason else 'pass'}  {plain(test, 300)}{f': {plain(reason, 300)}' if reason else ''}")
    print(f"{sum(map(bool, reasons.values()))} of {counted(len(reasons), 'test')}")
    return 0


def _order(arguments: argparse.Namespace) -> Order:
    from swarm_tui.engine.collect import Selection

    selection = Selection(
        only=arguments.only,
        changed_since=arguments.changed_since,
        affected_by=arguments.affected_by,
        only_failed_of=arguments.only_failed_of,
    )
    return order_of(arguments, selection=selection)

"""The arguments of `swarm-tui tutorial fill` and `sync`, and the sweep that they begin."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.sweep_options import add_display_options, add_options, order_of, show_sweep
from swarm_tui.model.formatting import counted
from swarm_tui.model.options import AGENTS, THEN
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder


def add_sweep_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what fill and sync have in common."""
    groups = add_options(parser, "tutorial")
    agents = groups[AGENTS]
    agents.add_argument("--batch", type=int, default=4, metavar="N", help="so many blocks for one agent (default 4)")
    agents.add_argument(
        "--material", action="append", default=[], type=Path, metavar="PATH", help="what they are to read (repeatable)"
    )
    agents.add_argument("--prompt", dest="mapper_prompt", metavar="FILE", help="instead of our prompt (jinja2)")
    add_display_options(groups[THEN])


def sweep_tutorial(arguments: argparse.Namespace) -> int:
    """Begin a sweep over a tutorial's blocks and show it; 0 when nothing is left to do."""
    from swarm_tui.cli.cost_forecast import say_cost
    from swarm_tui.cli.progress import print_progress
    from swarm_tui.engine.order import begin_sweep
    from swarm_tui.engine.start import start_engine
    from swarm_tui.engine.tutorial_order import TutorialOptions, prepare_tutorial

    options = TutorialOptions(
        action=arguments.action,
        tutorial=arguments.file,
        tests=arguments.tests if arguments.action == "sync" else None,
        batch=arguments.batch,
        material=tuple(arguments.material),
    )
    from swarm_tui.cli.patience import Patience

    patience = Patience(Path.cwd())
    prepared = patience.wait(prepare_tutorial(order_of(arguments), options, patience.say))
    name = plain(str(arguments.file), 200)
    if prepared is None:
        is_fill = arguments.action == "fill"
        done = "every comment has its commands" if is_fill else "every block has a test, and no test is left over"
        print_progress(f"{name}: {done}; nothing is to be done")
        return 0
    spec, tests, loop = prepared
    spec = say_cost(spec, [test.test for test in tests], print_progress)
    folder = begin_sweep(spec, tests)
    blocks = counted(len(loop.items), "block")
    removed = f", {len(loop.removed)} tests of removed blocks" if loop.removed else ""
    print_progress(
        f"sweep {folder.name}: {blocks} for {counted(len(tests), 'agent')}{removed}, {counted(spec.slots, 'slot')}"
    )
    start_engine(folder, spec.engine_environment)
    code = show_sweep(folder, arguments)
    _print_closing_lines(folder)
    return code


def _print_closing_lines(folder: SweepFolder) -> None:
    """Print what was hard to use, and the command that reviews the blocks."""
    from swarm_tui.cli.progress import print_progress
    from swarm_tui.cli.status import hard_to_use_lines
    from swarm_tui.journal.open import open_sweep

    opened = open_sweep(folder)
    for line in hard_to_use_lines(opened):
        print_progress(line)
    if opened.state.integration.branch:
        print_progress(f"keep or revert each block: `swarm-tui fixes {folder.name}`")

"""The arguments of `swarm-tui tutorial fill` and `sync`, and the sweep that they begin."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.run import duration
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.engine.order import Order
    from swarm_tui.journal.folder import SweepFolder


def add_sweep_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what fill and sync have in common."""
    agents = parser.add_argument_group("the agents")
    agents.add_argument("--batch", type=int, default=4, metavar="N", help="so many blocks for one agent (default 4)")
    agents.add_argument("--agent", default="claude", metavar="TYPE", help="claude, offline, or any agent type of mngr")
    agents.add_argument(
        "--agent-argument", action="append", default=[], metavar="WORD", help="a word for the agent's command line"
    )
    agents.add_argument("--slots", type=int, default=4, metavar="N", help="so many agents work at once (default 4)")
    agents.add_argument("--timeout", type=duration, default=3600.0, metavar="TIME", help="for one agent (default 1h)")
    agents.add_argument(
        "--wait-timeout", type=duration, default=1800.0, metavar="TIME", help="to wait for your answer (default 30m)"
    )
    agents.add_argument(
        "--material", action="append", default=[], type=Path, metavar="PATH", help="what they are to read (repeatable)"
    )
    agents.add_argument("--prompt", type=Path, metavar="FILE", help="instead of our prompt (jinja2)")
    agents.add_argument("--pass-env", action="append", default=[], metavar="NAME", help="a variable the agents get")
    agents.add_argument("--setup", metavar="CMD", help="run in every copy before it is used (uv sync, make ...)")
    agents.add_argument("--python", metavar="PATH", help="the project's interpreter (default: its venv, else python3)")
    agents.add_argument("--keep-agents", action="store_true", help="do not stop agents whose work is harvested")
    agents.add_argument("--record", action="store_true", help="record the terminal of every agent")
    agents.add_argument("--mngr", metavar="PATH", help="the mngr to use (default: SWARM_MNGR, PATH, our own)")
    agents.add_argument("--records", type=Path, metavar="FOLDER", help="the recorded work that the offline agent plays")
    agents.add_argument("--speed", type=float, default=1.0, metavar="X", help="so many times as fast, offline")
    shown = parser.add_argument_group("then")
    shown.add_argument("--title", default="", help="a few words to know the sweep by")
    shown.add_argument("--headless", action="store_true", help="progress on stderr instead of the room")
    shown.add_argument("--json", action="store_true", help="with --headless: the end state as JSON on stdout")


def sweep_tutorial(arguments: argparse.Namespace) -> int:
    """Begin a sweep over a tutorial's blocks and show it; 0 when nothing is left to do."""
    from swarm_tui.cli.progress import follow_sweep, say
    from swarm_tui.engine.begin import start_engine
    from swarm_tui.engine.order import begin_sweep
    from swarm_tui.engine.tutorial_order import TutorialWish, prepare_tutorial

    wish = TutorialWish(
        action=arguments.action,
        tutorial=arguments.file,
        tests=arguments.tests if arguments.action == "sync" else None,
        batch=arguments.batch,
        material=tuple(arguments.material),
    )
    prepared = asyncio.run(prepare_tutorial(_order(arguments), wish, say))
    name = plain(str(arguments.file), 200)
    if prepared is None:
        is_fill = arguments.action == "fill"
        done = "every comment has its commands" if is_fill else "every block has a test, and no test is left over"
        say(f"{name}: {done}; nothing is to be done")
        return 0
    spec, tests, loop = prepared
    folder = begin_sweep(spec, tests)
    blocks = "1 block" if len(loop.items) == 1 else f"{len(loop.items)} blocks"
    removed = f", {len(loop.removed)} tests of removed blocks" if loop.removed else ""
    say(f"sweep {folder.name}: {blocks} for {len(tests)} agents{removed}, {spec.slots} slots")
    start_engine(folder, spec.passed_environment)
    if arguments.headless or not (sys.stdin.isatty() and sys.stdout.isatty()):
        code = follow_sweep(folder, is_json=arguments.json)
        _tell_end(folder)
        return code
    from swarm_tui.room.app import open_room

    return open_room(folder.root)


def _tell_end(folder: SweepFolder) -> None:
    """Say what the program's interface made hard, and how its blocks are walked."""
    from swarm_tui.cli.progress import say
    from swarm_tui.cli.status import hard_to_use_lines
    from swarm_tui.journal.open import open_sweep

    opened = open_sweep(folder)
    for line in hard_to_use_lines(opened):
        say(line)
    if opened.state.integration.branch:
        say(f"keep or revert each block: `swarm-tui fixes {folder.name}`")


def _order(arguments: argparse.Namespace) -> Order:
    from swarm_tui.engine.order import Order

    return Order(
        folder=Path.cwd(),
        agent_type=arguments.agent,
        agent_arguments=tuple(arguments.agent_argument),
        slots=arguments.slots,
        timeout=arguments.timeout,
        wait_timeout=arguments.wait_timeout,
        speed=arguments.speed,
        keep_agents=arguments.keep_agents,
        is_recorded=arguments.record,
        python=arguments.python,
        records=arguments.records,
        mapper_prompt=arguments.prompt,
        setup=arguments.setup,
        title=arguments.title,
        mngr=arguments.mngr,
        passed_environment=tuple(arguments.pass_env),
    )

"""The options of every command that begins a sweep, what is ordered by them, and how the sweep is shown then."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from swarm_tui.agents.kinds import DEFAULT_AGENT_TYPE

if TYPE_CHECKING:
    from swarm_tui.engine.order import Order
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.journal.open import OpenedSweep

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def add_agent_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare who works, and how; return the group, for what one command has besides."""
    agents = parser.add_argument_group("the agents")
    agents.add_argument(
        "--agent", default=DEFAULT_AGENT_TYPE, metavar="TYPE", help="claude, offline, or any agent type of mngr"
    )
    agents.add_argument(
        "--agent-argument", action="append", default=[], metavar="WORD", help="a word for the agent's command line"
    )
    agents.add_argument("--slots", type=int, default=4, metavar="N", help="so many agents work at once (default 4)")
    agents.add_argument("--timeout", type=duration, default=3600.0, metavar="TIME", help="for one agent (default 1h)")
    agents.add_argument(
        "--wait-timeout", type=duration, default=1800.0, metavar="TIME", help="to wait for your answer (default 30m)"
    )
    agents.add_argument("--keep-agents", action="store_true", help="do not stop agents whose work is harvested")
    agents.add_argument("--record", action="store_true", help="record the terminal of every agent")
    agents.add_argument("--pass-env", action="append", default=[], metavar="NAME", help="a variable the agents get")
    agents.add_argument(
        "--setup", metavar="CMD", help="run in every copy before it is used to test (uv sync, make ...)"
    )
    agents.add_argument("--python", metavar="PATH", help="the project's interpreter (default: its venv, else python3)")
    agents.add_argument("--mngr", metavar="PATH", help="the mngr to use (default: SWARM_MNGR, PATH, our own)")
    return agents


def add_offline_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare what the offline agent plays."""
    offline = parser.add_argument_group("the offline agent")
    offline.add_argument("--records", type=Path, metavar="FOLDER", help="the recorded work that it plays")
    offline.add_argument("--speed", type=float, default=1.0, metavar="X", help="so many times as fast")
    return offline


def add_display_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Declare how a sweep is shown."""
    parser.add_argument("--headless", action="store_true", help="progress on stderr instead of the room")
    parser.add_argument("--json", action="store_true", help="with --headless: the end state as JSON on stdout")


def duration(text: str) -> float:
    """Read 90, 90s, 30m or 2h as seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: 90s, 30m and 2h are")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def order_of(arguments: argparse.Namespace, **besides: Any) -> Order:
    """Return what is ordered by the options, and by what one command has besides."""
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
        setup=arguments.setup,
        title=arguments.title,
        mngr=arguments.mngr,
        passed_environment=tuple(arguments.pass_env),
        **besides,
    )


def show_sweep(folder: SweepFolder, arguments: argparse.Namespace, known: OpenedSweep | None = None) -> int:
    """Show a sweep that works now: in the room, or without a terminal as progress until its end."""
    from swarm_tui.cli.open import has_terminal, show_room

    if has_terminal() and not arguments.headless:
        return show_room(folder)
    from swarm_tui.cli.progress import follow_sweep

    return follow_sweep(folder, is_json=arguments.json, known=known)

"""`swarm-tui run`: collects the tests, starts an agent for each, and shows how it goes."""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.errors import UsageError

if TYPE_CHECKING:
    from swarm_tui.engine.order import Order

DESCRIPTION = """Starts a sweep: collects the tests of this project and puts one agent on each, through mngr. They work
in copies of the repository, from the commit that is checked out now; your checkout is left alone. The engine is a
process of its own: closing the terminal ends nothing."""
EXAMPLES = """\
  swarm-tui run                                  all tests, Claude as the agents, the room to watch them
  swarm-tui run --slots 12 --only red            only the tests that fail now, twelve at a time
  swarm-tui run --headless -- tests/e2e -k share pytest's own arguments choose the tests
  swarm-tui run --changed-since main --title "my branch"
  swarm-tui run --agent offline --records play   play recorded work; no model, no costs
Exit codes with --headless: 0 all harvested, nothing failed or blocked; 1 something was; 2 misuse; 130 interrupted."""

_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")
_SECONDS: Final = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `swarm-tui run`."""
    parser.add_argument(
        "pytest_arguments", nargs="*", metavar="PYTEST_ARG", help="after --: given to pytest as they are"
    )
    which = parser.add_argument_group("which tests")
    which.add_argument("--only", choices=["red"], help="run the tests once before, and take those that fail")
    which.add_argument("--changed-since", metavar="REV", help="tests whose file, or a conftest.py above it, changed")
    which.add_argument(
        "--only-failed-of", metavar="SWEEP", help="tests that failed, blocked or stayed unresolved there"
    )
    which.add_argument("--python", metavar="PATH", help="the project's interpreter (default: its venv, else python3)")
    agents = parser.add_argument_group("the agents")
    agents.add_argument("--agent", default="claude", metavar="TYPE", help="claude, offline, or any agent type of mngr")
    agents.add_argument(
        "--agent-argument", action="append", default=[], metavar="WORD", help="a word for the agent's command line"
    )
    agents.add_argument("--slots", type=int, default=4, metavar="N", help="so many agents work at once (default 4)")
    agents.add_argument("--timeout", type=duration, default=3600.0, metavar="TIME", help="for one agent (default 1h)")
    agents.add_argument(
        "--wait-timeout", type=duration, default=1800.0, metavar="TIME", help="to wait for your answer (default 30m)"
    )
    agents.add_argument("--transfer", choices=["mirror", "worktree"], default="mirror", help="how copies are made")
    agents.add_argument("--provider", default="local", metavar="NAME", help="where the agents run (only local so far)")
    agents.add_argument("--keep-agents", action="store_true", help="do not stop agents whose work is harvested")
    agents.add_argument("--record", action="store_true", help="record the terminal of every agent")
    agents.add_argument("--pass-env", action="append", default=[], metavar="NAME", help="a variable the agents get")
    agents.add_argument("--label", action="append", default=[], metavar="KEY=VALUE", help="a label for all agents")
    agents.add_argument("--mapper-prompt", type=Path, metavar="FILE", help="instead of our prompt (jinja2)")
    agents.add_argument("--integrator-prompt", type=Path, metavar="FILE", help="the same for the integrator")
    agents.add_argument("--mngr", metavar="PATH", help="the mngr to use (default: SWARM_MNGR, PATH, our own)")
    then = parser.add_argument_group("then")
    then.add_argument(
        "--integrator",
        choices=["builtin", "agent", "none"],
        help="who makes one branch of all (default: one of the agents; if that fails, ours)",
    )
    then.add_argument("--tutorial", type=Path, metavar="FILE", help="the tutorial whose blocks the tests cite")
    then.add_argument("--setup", metavar="CMD", help="run in every copy before it is used to test (uv sync, make ...)")
    then.add_argument("--title", default="", help="a few words to know the sweep by")
    then.add_argument("--headless", action="store_true", help="progress on stderr instead of the room")
    then.add_argument("--json", action="store_true", help="with --headless: the end state as JSON on stdout")
    offline = parser.add_argument_group("the offline agent")
    offline.add_argument("--records", type=Path, metavar="FOLDER", help="the recorded work that it plays")
    offline.add_argument("--speed", type=float, default=1.0, metavar="X", help="so many times as fast")
    offline.add_argument("--answers-itself", action="store_true", help="questions get the answers that are recorded")


def run(arguments: argparse.Namespace) -> int:
    """Begin a sweep and show it."""
    from swarm_tui.cli.progress import follow_sweep, say
    from swarm_tui.engine.begin import start_engine
    from swarm_tui.engine.order import begin_sweep, prepare_sweep

    spec, tests = asyncio.run(prepare_sweep(_order(arguments), say))
    folder = begin_sweep(spec, tests)
    count = "1 test" if len(tests) == 1 else f"{len(tests)} tests"
    say(f"sweep {folder.name}: {count} on {spec.base_name or spec.base[:10]}, {spec.slots} slots")
    start_engine(folder, spec.passed_environment)
    if arguments.headless or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return follow_sweep(folder, is_json=arguments.json)
    from swarm_tui.cli.open import show_room

    return show_room(folder)


def duration(text: str) -> float:
    """Read 90, 90s, 30m or 2h as seconds."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: 90s, 30m and 2h are")
    return float(match.group(1)) * _SECONDS[match.group(2)]


def _order(arguments: argparse.Namespace) -> Order:
    from swarm_tui.engine.collect import Selection
    from swarm_tui.engine.order import Order

    return Order(
        folder=Path.cwd(),
        agent_type=arguments.agent,
        agent_arguments=tuple(arguments.agent_argument),
        provider=arguments.provider,
        transfer=arguments.transfer,
        integrator=arguments.integrator,
        slots=arguments.slots,
        timeout=arguments.timeout,
        wait_timeout=arguments.wait_timeout,
        speed=arguments.speed,
        answers_itself=arguments.answers_itself,
        keep_agents=arguments.keep_agents,
        is_recorded=arguments.record,
        python=arguments.python,
        pytest_arguments=tuple(arguments.pytest_arguments),
        selection=Selection(
            is_only_red=arguments.only == "red",
            changed_since=arguments.changed_since,
            only_failed_of=arguments.only_failed_of,
        ),
        records=arguments.records,
        mapper_prompt=arguments.mapper_prompt,
        integrator_prompt=arguments.integrator_prompt,
        setup=arguments.setup,
        tutorial=arguments.tutorial,
        title=arguments.title,
        mngr=arguments.mngr,
        passed_environment=tuple(arguments.pass_env),
        labels=dict(_label(text) for text in arguments.label),
    )


def _label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise UsageError(f"--label {text} is no label", "give KEY=VALUE")
    return key, value

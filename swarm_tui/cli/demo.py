"""`swarm-tui demo`: run a sweep on a sample project, in two minutes, without a model."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path

from swarm_tui.cli.main import EXIT_INTERRUPTED
from swarm_tui.cli.open import has_terminal
from swarm_tui.cli.progress import print_progress
from swarm_tui.cli.sweep_options import add_mngr_option, add_option, show_sweep
from swarm_tui.cli.wait_bar import WaitBar
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.model.text import plain

DESCRIPTION = """\
Run a sweep on larder, a small sample project with real bugs, a tutorial and tests. The agents play recorded
work, without a model and without cost. mngr, tmux, git and pytest are real. The demo has a separate home and tmux
server and does not use your mngr, tmux and git settings. To let Claude work on
larder, use `swarm-tui run --only red` in it."""
EXAMPLES = """\
  swarm-tui demo                       open the room; press `?` for the keys, `w` for what needs you
  swarm-tui demo ~/larder              keep the sample project in this folder
  swarm-tui demo --headless --json     do not open the room; print the final state as JSON
Exit codes: 0 the sweep finished (some tests are blocked or fail by design), 1 it did not, 2 usage error."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="create the project here (default: a temporary folder)"
    )
    add_option(parser, "slots", default=6)
    add_option(parser, "speed")
    parser.add_argument("--headless", action="store_true", help="print progress on stderr instead of opening the room")
    parser.add_argument(
        "--json", action="store_true", help="do not open the room; print the final state as JSON on stdout"
    )
    add_mngr_option(parser)


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.demo import DemoOptions, begin_demo

    arguments.headless |= arguments.json
    has_room = has_terminal() and not arguments.headless
    options = DemoOptions(
        folder=arguments.folder,
        slots=arguments.slots,
        speed=arguments.speed,
        answers_itself=not has_room,
        mngr=arguments.mngr,
    )
    patience = WaitBar()
    folder = patience.wait(begin_demo(options, patience.say))
    code = show_sweep(folder, arguments)
    if code == EXIT_INTERRUPTED and not has_room:
        return code
    print_progress(_closing_message(folder))
    return 0 if has_room or open_sweep(folder).state.ended_why == "finished" else 1


def _closing_message(folder: SweepFolder) -> str:
    opened = open_sweep(folder)
    spec, integration = opened.spec, opened.state.integration
    in_folder, program = f"cd {shlex.quote(spec.repository)}", _program()
    lines = ["", f"The sample project is in {spec.repository}"]
    if opened.has_running_engine and not opened.state.is_over:
        lines.append("The sweep keeps running without the room.")
    elif integration.branch:
        lines.append(f"The integrated branch is {integration.branch} ({plain(integration.detail)})")
        lines += ["", f"  {in_folder} && git log --oneline {spec.base_name}..{integration.branch}"]
    elif integration.detail:
        lines.append(plain(integration.detail))
    commands = {
        "fixes": "review the fixes",
        "": "open the room again",
        "clean": "remove its agents, mngr home and tmux server",
    }
    lines += [f"  {in_folder} && {f'{program} {name}':<{len(program) + 7}}   {does}" for name, does in commands.items()]
    return "\n".join(lines)


def _program() -> str:
    """Return the command that runs swarm-tui in any folder: its name if it is on PATH, else its path."""
    if shutil.which("swarm-tui") is not None:
        return "swarm-tui"
    script = Path(sys.argv[0]).absolute()
    if script.name == "__main__.py":
        return f"{shlex.quote(sys.executable)} -m swarm_tui"
    return shlex.quote(str(script))

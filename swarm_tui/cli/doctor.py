"""`swarm-tui doctor`: check this machine for missing or outdated programs."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from swarm_tui.cli.wait_bar import WaitBar

if TYPE_CHECKING:
    from swarm_tui.doctor.host_checks import Check
    from swarm_tui.model.shapes import CheckJson, ChecksJson

MIN_COLUMNS: Final = 60

DESCRIPTION = """\
Check the requirements of swarm-tui: Python, git, tmux, ps, mngr and its plugins, the terminal.
Each line shows the version found and, if that is missing or too old, how to install it.

With --fix, swarm-tui installs mngr into a private environment, with a Python 3.12 or newer of this machine.
Your other environments do not change.

exit codes: 0 nothing is missing, 1 something is missing"""

EXAMPLES = """\
  swarm-tui doctor                                 check this machine
  swarm-tui doctor --fix                           install mngr if it is missing
  swarm-tui doctor --agent claude                  also check the requirements of Claude agents
  swarm-tui doctor --fix --provider modal          also check the requirements of agents on Modal
  swarm-tui doctor --host box1 --host box2         also check these hosts
  swarm-tui doctor --json | jq '.checks[] | select(.ok | not)'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="install mngr into a private environment if it is missing")
    parser.add_argument("--json", action="store_true", help="print the checks as JSON")
    parser.add_argument(
        "--mngr", metavar="PATH", help="use this mngr (default: SWARM_MNGR, then PATH, then the private one)"
    )
    parser.add_argument("--agent", metavar="TYPE", help="also check this agent type, such as claude")
    parser.add_argument(
        "--provider", metavar="NAME", default="local", help="also check this mngr provider (default: local)"
    )
    parser.add_argument(
        "--host", action="append", default=[], metavar="HOST", help="also check this host (`swarm-tui hosts list`)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Check this machine; with --fix, first install what is missing."""
    from swarm_tui.doctor.checks import Requirements, current_machine, install_missing, run_checks

    hosts = tuple(arguments.host)
    requirements = Requirements(arguments.mngr, arguments.agent, arguments.provider, hosts)
    machine, patience = current_machine(), WaitBar()

    async def examine() -> list[Check]:
        if arguments.fix:
            await install_missing(requirements, machine, patience.say)
            patience.say("checking this machine")
        return await run_checks(requirements, machine)

    checks = patience.wait(examine())
    return print_checks(checks, is_json=arguments.json)


def print_checks(checks: Sequence[Check], *, is_json: bool) -> int:
    """Print the checks and return the exit code."""
    is_well = all(check.ok for check in checks)
    if is_json:
        shown: ChecksJson = {"ok": is_well, "checks": [_as_json(check) for check in checks]}
        print(json.dumps(shown, indent=2))
    else:
        print(checks_as_text(checks))
        print("nothing is missing" if is_well else "something is missing: see the lines with ✗")
    return 0 if is_well else 1


def checks_as_text(checks: Sequence[Check]) -> str:
    """Return the checks as text that fits the terminal."""
    width = max((len(check.name) for check in checks), default=0)
    return "\n".join(_as_text(check, width) for check in checks)


def _as_json(check: Check) -> CheckJson:
    return {"name": check.name, "ok": check.ok, "found": check.found, "needed": check.needed, "fix": check.fix}


def _as_text(check: Check, width: int) -> str:
    """Return a check as text that fits the terminal."""
    mark = "✗" if not check.ok else "!" if check.fix else "✓"
    margin = " " * (width + 4)
    columns = max(MIN_COLUMNS, shutil.get_terminal_size().columns)
    paragraphs = [f"{mark} {check.name:{width}}  {check.found}"]
    if not check.ok or check.fix:
        paragraphs.append(f"{margin}needed: {check.needed}")
    if check.fix:
        paragraphs.append(f"{margin}-> {check.fix}")
    return "\n".join(
        textwrap.fill(one, columns, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
        for one in paragraphs
    )

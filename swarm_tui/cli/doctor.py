"""`swarm-tui doctor`: what this machine has, what is needed, and how to get the difference."""

from __future__ import annotations

import argparse
import json
import shutil
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from swarm_tui.doctor.check import Check
    from swarm_tui.model.shapes import ShownCheck, ShownChecks

MIN_COLUMNS: Final = 60

DESCRIPTION = """\
Look at everything swarm-tui needs: Python, git, tmux, ps, mngr and its plugins, the terminal.
Each line says what was found and, when that is not enough, how to get it.

With --fix mngr is put into an environment of its own, made with any Python 3.12 or newer of this machine.
Your own environments are never touched.

exit codes: 0 all is well, 1 something is missing"""

EXAMPLES = """\
  swarm-tui doctor                                 look
  swarm-tui doctor --fix                           look, and put mngr in place when it is missing
  swarm-tui doctor --agent claude                  also what Claude agents need
  swarm-tui doctor --fix --provider modal          also what agents on Modal need
  swarm-tui doctor --host box1 --host box2         also what agents on these machines need
  swarm-tui doctor --json | jq '.checks[] | select(.ok | not)'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="put mngr into an environment of its own when it is missing")
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON object")
    parser.add_argument("--mngr", metavar="PATH", help="the mngr to use (default: SWARM_MNGR, PATH, our own)")
    parser.add_argument("--agent", metavar="TYPE", help="the type of agent that is to run, such as claude")
    parser.add_argument("--provider", metavar="NAME", default="local", help="where agents are to run (default: local)")
    parser.add_argument(
        "--host", action="append", default=[], metavar="HOST", help="a machine that mngr knows (`swarm-tui hosts list`)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Examine this machine; with --fix, install what is missing first."""
    from swarm_tui.cli.patience import Patience
    from swarm_tui.doctor.checks import Requirements, current_machine, install_missing, run_checks

    hosts = tuple(arguments.host)
    requirements = Requirements(arguments.mngr, arguments.agent, arguments.provider, hosts)
    machine, patience = current_machine(), Patience()

    async def examine() -> list[Check]:
        if arguments.fix:
            await install_missing(requirements, machine, patience.say)
            patience.say("looking at this machine")
        return await run_checks(requirements, machine)

    checks = patience.wait(examine())
    return print_checks(checks, is_json=arguments.json)


def print_checks(checks: Sequence[Check], *, is_json: bool) -> int:
    """Print findings and return the exit code."""
    is_well = all(check.ok for check in checks)
    if is_json:
        shown: ShownChecks = {"ok": is_well, "checks": [_as_json(check) for check in checks]}
        print(json.dumps(shown, indent=2))
    else:
        print(checks_as_text(checks))
        print("all is well" if is_well else "something is missing: see the lines marked with ✗")
    return 0 if is_well else 1


def checks_as_text(checks: Sequence[Check]) -> str:
    """Return findings as lines that fit the terminal."""
    width = max((len(check.name) for check in checks), default=0)
    return "\n".join(_as_text(check, width) for check in checks)


def _as_json(check: Check) -> ShownCheck:
    return {"name": check.name, "ok": check.ok, "found": check.found, "needed": check.needed, "fix": check.fix}


def _as_text(check: Check, width: int) -> str:
    """Return a finding as lines that fit the terminal: what was found and, unless that suffices, what is needed."""
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

"""`swarm-tui integrate`: create the integrated branch of a sweep again."""

from __future__ import annotations

import argparse
from pathlib import Path

from swarm_tui.cli.engine_requests import wait_for_release
from swarm_tui.cli.progress import integration_lines, print_progress
from swarm_tui.cli.sweeps import chosen_sweep
from swarm_tui.errors import SwarmError
from swarm_tui.files import read_regular
from swarm_tui.journal.append import engine_process_id
from swarm_tui.journal.folder import SweepFolder
from swarm_tui.journal.open import open_sweep
from swarm_tui.journal.requests import RequestKind, append_request
from swarm_tui.journal.state import SweepState
from swarm_tui.model.pulled import INTEGRATOR_OUTCOME_FILE
from swarm_tui.model.text import plain

DESCRIPTION = """\
Make the integrated branch of a sweep, swarm/SWEEP/integrated, from the work of its agents: the test and doc fixes as
one commit, then each fix of the program as a separate commit, the most useful first. swarm-tui runs all tests of the
sweep on the branch and measures each fix. If the branch of a coding agent is worse than that of the built-in
integrator, it is not used and stays as swarm/SWEEP/integrator. While an engine is running, it integrates at the end of
the sweep. Your checkout does not change."""
EXAMPLES = """\
  swarm-tui integrate                       integrate the newest sweep
  swarm-tui integrate 20261118 --json       print the integrator's report
  swarm-tui integrate --integrator agent    use a coding agent, with the built-in integrator as fallback
Exit codes: 0 the branch is there; 1 it is not, or tests that passed before fail on it, or it contains conflict
markers (the reason is printed); 2 usage error."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a folder")
    parser.add_argument(
        "--integrator", choices=["builtin", "agent"], help="the integrator (default: that of the sweep)"
    )
    parser.add_argument("--json", action="store_true", help="print the integrator's report")


def run(arguments: argparse.Namespace) -> int:
    folder = chosen_sweep(arguments.sweep, Path.cwd())
    if _is_worked_on(folder):
        return _ask_engine(folder)
    from swarm_tui.sweep.engine import integrate_again

    print_progress(f"integrating sweep {folder.name}")
    state = integrate_again(folder, arguments.integrator)
    return _print_result(folder, state, is_json=arguments.json)


def _is_worked_on(folder: SweepFolder) -> bool:
    """Return whether an engine is running that can integrate; wait for one that is about to exit."""
    if engine_process_id(folder.lock) is None:
        return False
    opened = open_sweep(folder)
    wait_for_release(opened)
    return opened.has_running_engine


def _ask_engine(folder: SweepFolder) -> int:
    append_request(folder, RequestKind.INTEGRATE)
    print_progress(f"the engine of {folder.name} will integrate when its last test is pulled")
    return 0


def _print_result(folder: SweepFolder, state: SweepState, *, is_json: bool) -> int:
    integration = state.integration
    if integration.state != "done":
        raise SwarmError(plain(integration.detail, 500) or "nothing was integrated")
    if is_json:
        print(read_regular(folder.integrator / INTEGRATOR_OUTCOME_FILE).decode(), end="")
    detail = plain(integration.detail, 300)
    print_progress(f"{integration.branch}: {detail}" if integration.branch else f"no integrated branch: {detail}")
    for line in integration_lines(integration, folder.name):
        print_progress(line)
    return 0 if integration.branch and not integration.problems else 1

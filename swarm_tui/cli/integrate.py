"""`swarm-tui integrate`: makes the integrated branch of a sweep again, from what its agents have made so far."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.cli.progress import print_progress
from swarm_tui.errors import SwarmError
from swarm_tui.model.text import plain
from swarm_tui.regular_file import read_regular

if TYPE_CHECKING:
    from swarm_tui.journal.fold import SweepState
    from swarm_tui.journal.folder import SweepFolder

DESCRIPTION = """\
Makes the integrated branch of a sweep, swarm/SWEEP/integrated, from all that its agents have made so far: the test and
doc fixes as one commit, then each fix of the program as its own, the most useful one first. While an engine works on
the sweep, it is asked to do so at its end. Your checkout is left alone."""
EXAMPLES = """\
  swarm-tui integrate                       the newest sweep here
  swarm-tui integrate 20261118 --json       what came of it, as the integrator reports it
  swarm-tui integrate --integrator agent    let a coding agent do it; the built-in one stands by
Exit codes: 0 the branch is there, 1 it is not (the reason is said), 2 misuse."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a folder")
    parser.add_argument("--integrator", choices=["builtin", "agent"], help="who does it (default: as the sweep says)")
    parser.add_argument("--json", action="store_true", help="print the integrator's outcome")


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.sweeps import chosen_sweep

    folder = chosen_sweep(arguments.sweep, Path.cwd())
    if not folder.read_spec().why_not_continued and _is_worked_on(folder):
        return _ask_engine(folder)
    from swarm_tui.engine.integrate_again import integrate_again

    print_progress(f"integrating sweep {folder.name}")
    state = integrate_again(folder, arguments.integrator)
    return _print_result(folder, state, is_json=arguments.json)


def _is_worked_on(folder: SweepFolder) -> bool:
    """Return whether an engine works on a sweep that could do it; one that has done its last act lets go first."""
    from swarm_tui.cli.engine_requests import wait_for_release
    from swarm_tui.journal.append import engine_process_id
    from swarm_tui.journal.open import open_sweep

    if engine_process_id(folder.lock) is None:
        return False
    opened = open_sweep(folder)
    wait_for_release(opened)
    return opened.has_running_engine


def _ask_engine(folder: SweepFolder) -> int:
    from swarm_tui.journal.requests import append_request
    from swarm_tui.model.requests import RequestKind

    append_request(folder, RequestKind.INTEGRATE)
    print_progress(f"the engine of {folder.name} is asked to integrate when its last test is harvested")
    return 0


def _print_result(folder: SweepFolder, state: SweepState, *, is_json: bool) -> int:
    from swarm_tui.model.outcome import INTEGRATOR_OUTCOME_FILE

    integration = state.integration
    if integration.state != "done":
        raise SwarmError(plain(integration.detail, 500) or "nothing was integrated")
    if is_json:
        print(read_regular(folder.integrator / INTEGRATOR_OUTCOME_FILE).decode(), end="")
    detail = plain(integration.detail, 300)
    print_progress(f"{integration.branch}: {detail}" if integration.branch else f"no integrated branch: {detail}")
    return 0 if integration.branch else 1

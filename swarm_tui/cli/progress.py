"""Follows a sweep without the room: a bar and its counts on a terminal, plain lines elsewhere, all on stderr."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from swarm_tui.errors import SwarmError
from swarm_tui.model.states import UNSOLVED_RESULTS
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.journal.open import OpenedSweep

EXIT_WELL, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130
_CLEAR_LINE: Final = "\r\x1b[K"
_INTERVAL: Final = 0.1
RELEASE_TIME: Final = 2.0
"""After its last event an engine needs a moment to release its lock, and the next one to take it."""
# With less free space than this an engine cannot even log its last error.
_DISK_FULL: Final = 1 << 16


def print_progress(text: str) -> None:
    """Print a message on stderr, apart from the output of the command."""
    print(f"{_CLEAR_LINE if sys.stderr.isatty() else ''}{text}", file=sys.stderr, flush=True)


def print_passing(text: str) -> None:
    """Show on a terminal what is being done now; the next message takes its place."""
    if sys.stderr.isatty():
        shown = plain(text, shutil.get_terminal_size().columns - 1)
        print(f"{_CLEAR_LINE}{shown}", end="", file=sys.stderr, flush=True)


def clear_passing() -> None:
    """Take away what `print_passing` shows."""
    if sys.stderr.isatty():
        print(_CLEAR_LINE, end="", file=sys.stderr, flush=True)


def exit_code_of(counts: Counter[str], is_whole: bool) -> int:
    """Return 0 when all is harvested and integrated, and no test is left to a person, else 1."""
    return EXIT_WELL if is_whole and not any(counts[result] for result in UNSOLVED_RESULTS) else EXIT_FAILED


def follow_sweep(folder: SweepFolder, *, is_json: bool = False, known: OpenedSweep | None = None) -> int:
    """Show a sweep until its engine is done; ctrl+c once explains, twice stops the sweep, three times leaves.

    Log lines that are in `known`, the sweep before it was resumed, are not printed again.
    """
    from swarm_tui.cli.display import display_for
    from swarm_tui.cli.sweeps import opened_with_progress

    opened = known or opened_with_progress(folder)
    last_shown = opened.state.log[-1] if known and opened.state.log else None
    interrupts = 0
    with display_for(last_shown) as display:
        while True:
            try:
                show_until_end(opened, display.show)
                break
            except KeyboardInterrupt:
                interrupts += 1
                if interrupts == 3:
                    return EXIT_INTERRUPTED
                _handle_interrupt(opened, interrupts)
    for line in _closing_lines(opened):
        print_progress(line)
    if is_json:
        from swarm_tui.cli.status import describe_sweep

        print(json.dumps(describe_sweep(opened), indent=1))
    is_whole = opened.state.ended_why == "finished" and opened.state.integration.state != "failed"
    return EXIT_INTERRUPTED if interrupts > 1 else exit_code_of(opened.state.counts, is_whole)


def _closing_lines(opened: OpenedSweep) -> list[str]:
    """Return the lines about open tests, and about what was left out of the integrated branch."""
    from swarm_tui.cli.sweep_summary import integration_lines, left_out_lines, open_lines
    from swarm_tui.triage.sweep_review import read_integrator_outcome

    outcome, _ = read_integrator_outcome(opened.folder)
    if opened.state.integration.state == "failed":
        # The outcome in the folder is that of an earlier integration.
        outcome = None
    lines = [*open_lines(opened.state.tests()), *left_out_lines(outcome.failed if outcome else ())]
    lines += integration_lines(opened.state.integration, opened.folder.name)
    return ["", *lines] if lines else []


def _handle_interrupt(opened: OpenedSweep, times: int) -> None:
    from swarm_tui.journal.requests import append_request
    from swarm_tui.model.requests import RequestKind

    if times == 1:
        print_progress(
            f"\nThe sweep goes on without this terminal: `swarm-tui open {opened.folder.name}` shows it. "
            "ctrl+c again stops it."
        )
    else:
        append_request(opened.folder, RequestKind.STOP_SWEEP)
        print_progress("\nStopping: what is done is harvested, the rest can be resumed. ctrl+c again leaves at once.")


def show_until_end(opened: OpenedSweep, show: Callable[[OpenedSweep], None]) -> None:
    """Show new events until the engine has ended and another may begin; raise SwarmError when it has died."""
    silent_since = time.monotonic()
    seen = -1
    while True:
        opened.read_new_events()
        if opened.state.last_seq != seen:
            seen, silent_since = opened.state.last_seq, time.monotonic()
        show(opened)
        is_let_go = not opened.has_running_engine
        if opened.state.is_over and (is_let_go or time.monotonic() - silent_since > RELEASE_TIME):
            return
        if is_let_go and time.monotonic() - silent_since > RELEASE_TIME:
            raise SwarmError(_why_engine_died(opened), f"`swarm-tui resume {opened.folder.name}` takes it up again")
        time.sleep(_INTERVAL)


def _why_engine_died(opened: OpenedSweep) -> str:
    from swarm_tui.engine.start import last_log_line

    root = opened.folder.root
    return why_engine_died(plain(last_log_line(opened.folder), 500), root, shutil.disk_usage(root).free)


def why_engine_died(last_line: str, root: Path, free: int) -> str:
    """Return why an engine has ended, from the last line of its log and the free space on its disk."""
    if last_line:
        return f"the engine has ended: {last_line}"
    return f"the engine has died: the disk of {root} is full" if free < _DISK_FULL else "the engine has died"

"""Follow a sweep without the room: print a bar and counts on a terminal, otherwise plain lines, on stderr."""

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
from swarm_tui.model.results import OPEN_RESULTS, PULLED_RESULTS
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.folder import SweepFolder
    from swarm_tui.journal.open import OpenedSweep
    from swarm_tui.journal.state import SweepState

EXIT_WELL, EXIT_FAILED, EXIT_INTERRUPTED = 0, 1, 130
_CLEAR_LINE: Final = "\r\x1b[K"
_INTERVAL: Final = 0.1
RELEASE_TIME: Final = 2.0
"""The time an engine may take to release its lock after its last event, and the next engine to take it."""
# With less free space than this, an engine cannot even log its last error.
_DISK_FULL: Final = 1 << 16


def print_progress(text: str) -> None:
    """Print a message on stderr."""
    print(f"{_CLEAR_LINE if sys.stderr.isatty() else ''}{text}", file=sys.stderr, flush=True)


def print_passing(text: str) -> None:
    """Print a status line on a terminal; the next message replaces it."""
    if sys.stderr.isatty():
        shown = plain(text, shutil.get_terminal_size().columns - 1)
        print(f"{_CLEAR_LINE}{shown}", end="", file=sys.stderr, flush=True)


def clear_passing() -> None:
    """Clear the status line of `print_passing`."""
    if sys.stderr.isatty():
        print(_CLEAR_LINE, end="", file=sys.stderr, flush=True)


def exit_code_of(counts: Counter[str], is_whole: bool) -> int:
    """Return 0 for a complete sweep without open results, else 1."""
    return EXIT_WELL if is_whole and not any(counts[result] for result in OPEN_RESULTS) else EXIT_FAILED


def closing_exit_code(state: SweepState) -> int:
    """Return the exit code of a sweep whose engine has exited."""
    integration = state.integration
    is_whole = state.ended_why == "finished" and integration.state != "failed" and not integration.problems
    is_whole = is_whole and not _has_open_blocks(state)
    return exit_code_of(state.counts, is_whole)


def follow_sweep(folder: SweepFolder, *, is_json: bool = False, known: OpenedSweep | None = None) -> int:
    """Show a sweep until its engine is done. The first ctrl+c explains, the second stops the sweep, the third quits.

    `known` is the sweep before it was resumed; its log lines are not printed again.
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
    return EXIT_INTERRUPTED if interrupts > 1 else exit_code_of(opened.state.counts, is_whole(opened))


def is_whole(opened: OpenedSweep) -> bool:
    """Return whether a sweep is finished and integrated without problems, with all tests."""
    state = opened.state
    is_integrated = state.integration.state != "failed" and not state.integration.problems
    is_done = is_integrated and not opened.spec.left_out and not _has_open_blocks(state)
    return state.ended_why == "finished" and is_done


def _has_open_blocks(state: SweepState) -> bool:
    """Return whether an agent of a tutorial sweep left blocks of its batch open."""
    return any(record.result in PULLED_RESULTS and record.harvest.passing_after is False for record in state.tests())


def _closing_lines(opened: OpenedSweep) -> list[str]:
    """Return lines about open tests, tests without an agent, and work left out of the integrated branch."""
    from swarm_tui.cli.sweep_summary import effect_lines, integration_lines, left_out_lines, open_lines
    from swarm_tui.review.open import read_integrator_outcome

    outcome, _ = read_integrator_outcome(opened.folder)
    if opened.state.integration.state == "failed":
        # The report in the folder is from an earlier integration.
        outcome = None
    lines = list(opened.doubts)
    lines += [f"no agent: {plain(sentence, 600)}" for sentence in opened.spec.left_out]
    lines += [*open_lines(opened.state.tests()), *effect_lines(outcome)]
    lines += left_out_lines(outcome.failed if outcome else ())
    lines += integration_lines(opened.state.integration, opened.folder.name)
    return ["", *lines] if lines else []


def _handle_interrupt(opened: OpenedSweep, times: int) -> None:
    from swarm_tui.journal.requests import RequestKind, append_request

    if times == 1:
        print_progress(
            f"\nThe sweep keeps running without this terminal; to see it: `swarm-tui open {opened.folder.name}`. "
            "Press ctrl+c again to stop the sweep."
        )
    else:
        append_request(opened.folder, RequestKind.STOP_SWEEP)
        print_progress("\nStopping: submitted work is pulled, the rest can be resumed. Press ctrl+c again to exit now.")


def show_until_end(opened: OpenedSweep, show: Callable[[OpenedSweep], None]) -> None:
    """Show new events until the engine has exited and released its lock; raise SwarmError if it died."""
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
            raise SwarmError(_why_engine_died(opened), f"resume the sweep: `swarm-tui resume {opened.folder.name}`")
        time.sleep(_INTERVAL)


def _why_engine_died(opened: OpenedSweep) -> str:
    from swarm_tui.sweep.start import last_log_line

    root = opened.folder.root
    return engine_error(plain(last_log_line(opened.folder), 500), root, shutil.disk_usage(root).free)


def engine_error(last_line: str, root: Path, free: int) -> str:
    """Return why an engine exited, from the last line of its log and the free disk space."""
    if last_line:
        return f"the engine exited: {last_line}"
    return f"the engine died: the disk of {root} is full" if free < _DISK_FULL else "the engine died"

"""`swarm-tui wait`: wait for a condition of a sweep, for scripts."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Final

from swarm_tui.cli.progress import RELEASE_TIME, opened_sweep, print_progress
from swarm_tui.cli.sweep_options import argument_parser
from swarm_tui.journal.conditions import is_so
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.model.conditions import CONDITIONS, Expression, parse_expression
from swarm_tui.model.options import parse_duration

_WORDS: Final = "\n".join(f"  {word:12} {meaning}" for word, meaning in CONDITIONS.items())
DESCRIPTION = f"""Wait until a condition of a sweep is true, and print the words that are true then. Combine words with
`and`, `or`, `not` and brackets:
{_WORDS}"""
EXAMPLES = """\
  swarm-tui wait --until done                                  the newest sweep is finished
  swarm-tui wait --until 'done or asks' --timeout 2h           or an agent asks you
  swarm-tui wait --until 'fixes and not asks' 20261118         another sweep
  swarm-tui wait --until 'over-budget' && swarm-tui stop
Exit codes: 0 the condition is true; 1 it is false and no engine is running; 2 usage error; 124 timeout."""

EXIT_SO, EXIT_NOT_SO, EXIT_TIME_OVER = 0, 1, 124
_INTERVAL: Final = 0.2
_STATES_INTERVAL: Final = 1.0
"""Some conditions become true with time, without an event."""
_START_TIME: Final = 20.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sweep", nargs="?", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--until", metavar="WORDS", required=True, help="the condition")
    timeout = argument_parser("--timeout", parse_duration)
    parser.add_argument("--timeout", metavar="TIME", type=timeout, help="stop waiting after this time: 90s, 30m, 2h")


def run(arguments: argparse.Namespace) -> int:
    expression = parse_expression(arguments.until)
    opened = opened_sweep(arguments.sweep, Path.cwd())
    code = wait_for(opened, expression, arguments.timeout)
    if code == EXIT_SO:
        words = filter(is_so(opened.state, time.time()), expression.words)
        print(" ".join(words) or f"not {expression.words[0]}")
    return code


def wait_for(opened: OpenedSweep, expression: Expression, timeout: float | None) -> int:
    """Wait until the expression is true or no engine is left to make it true; return the exit code."""
    begun = working_at = time.monotonic()
    checked: tuple[int, float] = (-1, 0.0)
    while True:
        opened.read_new_events()
        now, state = time.monotonic(), opened.state
        if state.last_seq != checked[0] or now - checked[1] >= _STATES_INTERVAL:
            if expression.holds(is_so(state, time.time())):
                return EXIT_SO
            # The longer a check takes, the less often it runs.
            checked = state.last_seq, time.monotonic() + (time.monotonic() - now)
        if opened.has_running_engine:
            working_at = now
        elif now - working_at > (RELEASE_TIME if state.started_at is not None else _START_TIME):
            print_progress(f"the condition is false, and no engine is running for {opened.folder.name}")
            return EXIT_NOT_SO
        if timeout is not None and now - begun >= timeout:
            print_progress(f"the condition is false after {timeout:g} s")
            return EXIT_TIME_OVER
        time.sleep(_INTERVAL if timeout is None else max(0.0, min(_INTERVAL, begun + timeout - now)))

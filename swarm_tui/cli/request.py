"""`swarm-tui request`: send a request to the running engine (stop, retry, hold, release, slots, budget, message)."""

from __future__ import annotations

import argparse
from pathlib import Path

from swarm_tui.cli.engine_requests import send_request
from swarm_tui.cli.progress import opened_sweep, print_progress
from swarm_tui.errors import UsageError
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.journal.requests import RequestKind
from swarm_tui.model.options import is_possible_budget, parse_dollars
from swarm_tui.model.text import plain

DESCRIPTION = """Send a request to the engine of a sweep and wait for the result. Name a test by its node id, by the
name of its agent, or by any unambiguous part of either."""
EXAMPLES = """\
  swarm-tui request slots 8                          run eight agents at the same time
  swarm-tui request budget 40                        limit the cost of the sweep to 40 dollars; `none`: no limit
  swarm-tui request budget-each 2                    limit the cost of each agent to 2 dollars
  swarm-tui request hold                             launch no more agents for now
  swarm-tui request release                          launch agents again
  swarm-tui request release --pattern                release the tests held by --hold-similar
  swarm-tui request release --pattern 'db locked'    release those held for a cause that contains this text
  swarm-tui request retry tests/test_a.py::test_b    launch a new agent for this test
  swarm-tui request retry test-login --text 'Keep the old format.'   add a note to the new prompt
  swarm-tui request stop test-login test-logout
  swarm-tui request message test-login --text 'Use the second fixture.'
Exit codes: 0 done, 1 the engine refused or failed, 2 usage error."""

_ACTIONS = ("slots", "budget", "budget-each", "hold", "release", "retry", "stop", "message", "integrate")
_BUDGETS = frozenset({"budget", "budget-each"})
_NEED_TESTS = frozenset({"retry", "stop", "message"})
_OF_HELD = frozenset({"release", "stop"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=_ACTIONS, help="the request")
    parser.add_argument(
        "what", nargs="*", default=[], metavar="TEST", help="the tests, the number of slots, or the dollars"
    )
    parser.add_argument("--sweep", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--text", help="the message, or the note for the agents of `retry`")
    parser.add_argument(
        "--pattern",
        nargs="?",
        const="",
        metavar="TEXT",
        help="release or stop the tests held by --hold-similar (with TEXT: those held for a cause that contains TEXT)",
    )


def run(arguments: argparse.Namespace) -> int:
    action = arguments.action
    if action == "message" and not arguments.text:
        raise UsageError("missing message text", "give it with --text")
    if arguments.pattern is not None and (action not in _OF_HELD or arguments.what):
        raise UsageError(
            "--pattern requires `release` or `stop`, and no tests", "for example `swarm-tui request release --pattern`"
        )
    if action in _NEED_TESTS and not arguments.what and arguments.pattern is None:
        raise UsageError(
            f"`{action}` requires at least one test", f"for example `swarm-tui request {action} test_login`"
        )
    opened = opened_sweep(arguments.sweep, Path.cwd())
    slots = _slots_of(arguments.what) if action == "slots" else None
    dollars = _dollars_of(action, arguments.what) if action in _BUDGETS else None
    names = [] if slots is not None or dollars is not None else arguments.what
    tests = [opened.find_test(name).test for name in names]
    if arguments.pattern is not None:
        tests = _held_tests(opened, arguments.pattern)
    kind = RequestKind(action.replace("-", "_"))
    detail = send_request(opened, kind, tests=tests, slots=slots, dollars=dollars, text=arguments.text)
    print_progress(detail or "done")
    return 0


def _held_tests(opened: OpenedSweep, text: str) -> list[str]:
    """Return the tests held by --hold-similar for a cause that contains this text."""
    held = [record.test for record in opened.state.tests() if record.held_for and text in record.held_for]
    if not held:
        raise UsageError(
            f"no test is held for {plain(text, 80)!r}" if text else "no test is held",
            "run `swarm-tui status` to list held tests and their causes",
        )
    return held


def _dollars_of(action: str, words: list[str]) -> float:
    if len(words) == 1 and words[0].lower() == "none":
        return 0.0
    hint = f"use dollars from 0.01 to 1,000,000, or `none`: `swarm-tui request {action} 40`"
    try:
        dollars = parse_dollars(words[0]) if len(words) == 1 else None
    except ValueError as error:
        raise UsageError(f"invalid value for {action}: {plain(words[0], 80)!r}", hint) from error
    if dollars is None or not is_possible_budget(dollars):
        raise UsageError(f"invalid value for {action}: {plain(' '.join(words), 80)!r}", hint)
    return dollars


def _slots_of(words: list[str]) -> int:
    if len(words) != 1 or not words[0].isdigit() or int(words[0]) < 1:
        raise UsageError(
            f"invalid number of slots: {plain(' '.join(words), 80)!r}", "use 1 or more: `swarm-tui request slots 8`"
        )
    return int(words[0])

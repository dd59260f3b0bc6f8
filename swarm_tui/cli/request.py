"""`swarm-tui request`: sends the running engine a request: stop, retry, hold, release, slots, budget, a message."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from swarm_tui.errors import UsageError
from swarm_tui.model.text import plain

if TYPE_CHECKING:
    from swarm_tui.journal.open import OpenedSweep

DESCRIPTION = """Asks something of the engine of a sweep and waits for its answer. Tests are named by their node ids,
their agents' names, or by a part of either that fits only one."""
EXAMPLES = """\
  swarm-tui request slots 8                          eight agents at once from now on
  swarm-tui request budget 40                        dollars for the whole sweep; `none` takes the limit away
  swarm-tui request budget-each 2                    dollars for each test's agent
  swarm-tui request hold                             launch nothing more for now
  swarm-tui request release
  swarm-tui request release --alike                  what the breaker holds; `--alike TEXT`: of one cause
  swarm-tui request retry tests/test_a.py::test_b    a new agent for this test
  swarm-tui request stop test-login test-logout
  swarm-tui request message test-login --text 'Use the second fixture.'
Exit codes: 0 done, 1 the engine could not do it, 2 misuse."""

_ACTIONS = ("slots", "budget", "budget-each", "hold", "release", "retry", "stop", "message", "integrate")
_BUDGETS = frozenset({"budget", "budget-each"})
_NEED_TESTS = frozenset({"retry", "stop", "message"})
_OF_HELD = frozenset({"release", "stop"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=_ACTIONS, help="what is asked for")
    parser.add_argument("what", nargs="*", default=[], metavar="TEST", help="the tests, the slots, or the dollars")
    parser.add_argument("--sweep", metavar="SWEEP", help="an id, the beginning of one, or a sweep folder")
    parser.add_argument("--text", help="the message")
    parser.add_argument(
        "--alike", nargs="?", const="", metavar="TEXT", help="release or stop the tests that the breaker holds"
    )


def run(arguments: argparse.Namespace) -> int:
    from swarm_tui.cli.engine_requests import send_request
    from swarm_tui.cli.progress import print_progress
    from swarm_tui.cli.sweeps import opened_sweep
    from swarm_tui.model.requests import RequestKind

    action = arguments.action
    if action == "message" and not arguments.text:
        raise UsageError("a message needs words", "give them with --text")
    if arguments.alike is not None and (action not in _OF_HELD or arguments.what):
        raise UsageError("--alike stands for tests to release or to stop", "`swarm-tui request release --alike`")
    if action in _NEED_TESTS and not arguments.what and arguments.alike is None:
        raise UsageError(f"which tests are to {action}?", "name them")
    opened = opened_sweep(arguments.sweep, Path.cwd())
    slots = _slots_of(arguments.what) if action == "slots" else None
    dollars = _dollars_of(action, arguments.what) if action in _BUDGETS else None
    names = [] if slots is not None or dollars is not None else arguments.what
    tests = [opened.find_test(name).test for name in names]
    if arguments.alike is not None:
        tests = _held_alike(opened, arguments.alike)
    kind = RequestKind(action.replace("-", "_"))
    detail = send_request(opened, kind, tests=tests, slots=slots, dollars=dollars, text=arguments.text)
    print_progress(detail or "done")
    return 0


def _held_alike(opened: OpenedSweep, text: str) -> list[str]:
    """Return the tests that the breaker holds for causes with this text in them."""
    held = [record.test for record in opened.state.tests() if record.held_for and text in record.held_for]
    if not held:
        raise UsageError(
            f"the breaker holds no test for {plain(text, 80)!r}" if text else "the breaker holds no test",
            "`swarm-tui status` says what is held, and for what",
        )
    return held


def _dollars_of(action: str, words: list[str]) -> float:
    from swarm_tui.model.budget import is_possible_budget, parse_dollars

    if len(words) == 1 and words[0].lower() == "none":
        return 0.0
    hint = f"`swarm-tui request {action} 40`, or `none`"
    try:
        dollars = parse_dollars(words[0]) if len(words) == 1 else None
    except ValueError as error:
        raise UsageError(str(error), hint) from error
    if dollars is None or not is_possible_budget(dollars):
        raise UsageError("how many dollars, from 0.01 to 1,000,000?", hint)
    return dollars


def _slots_of(words: list[str]) -> int:
    if len(words) != 1 or not words[0].isdigit() or int(words[0]) < 1:
        raise UsageError("how many slots?", "`swarm-tui request slots 8`")
    return int(words[0])

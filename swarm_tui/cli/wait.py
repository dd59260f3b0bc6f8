"""`swarm-tui wait`: wait for a condition of a sweep, for scripts."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from swarm_tui.cli.progress import RELEASE_TIME, opened_sweep, print_progress
from swarm_tui.cli.sweep_options import argument_parser
from swarm_tui.errors import UsageError
from swarm_tui.journal.open import OpenedSweep
from swarm_tui.journal.state import SweepState
from swarm_tui.model.options import parse_duration
from swarm_tui.model.results import Result, State

_TOKEN: Final = re.compile(r"[()]|[^\s()]+")
_DEPTH_LIMIT: Final = 50


class Condition(NamedTuple):
    """A condition of `--until`."""

    meaning: str
    holds: Callable[[SweepState], bool]


def _has_question(state: SweepState) -> bool:
    integrator = state.integrator
    return bool(state.counts[State.WAITING.value]) or (integrator is not None and integrator.state is State.WAITING)


def _is_over_budget(state: SweepState) -> bool:
    return state.budget.is_used_up or any(record.over_budget_at is not None for record in state.tests())


CONDITIONS: Final = {
    "done": Condition("the sweep is finished", lambda state: state.ended_why == "finished"),
    "ended": Condition(
        "the engine is not running: the sweep is finished, stopped or failed", lambda state: state.is_over
    ),
    "question": Condition("an agent is waiting for an answer", _has_question),
    "error": Condition(
        "an agent crashed, timed out or submitted nothing", lambda state: bool(state.counts[Result.ERROR])
    ),
    "blocked": Condition("a test is blocked", lambda state: bool(state.counts[Result.BLOCKED])),
    "unresolved": Condition("an agent could not fix its test", lambda state: bool(state.counts[Result.UNRESOLVED])),
    "stuck": Condition(
        "an agent is running but makes no progress", lambda state: any(bool(record.stuck) for record in state.tests())
    ),
    "alert": Condition(
        "the number of tests with the same cause has reached `--alert`", lambda state: bool(state.alerts)
    ),
    "over-budget": Condition("the budget of the sweep or of an agent is spent", _is_over_budget),
    "login-lost": Condition("the agents are logged out, so nothing is launched", lambda state: bool(state.access.lost)),
    "host-lost": Condition(
        "a host does not answer", lambda state: any(host.lost_since is not None for host in state.hosts.values())
    ),
    "held": Condition("the queue is held until you release it", lambda state: state.launches_nothing),
    "fixes": Condition(
        "an integrated branch with fixes is ready to review",
        lambda state: state.integration.state == "done" and state.integration.fixes > 0,
    ),
}


def is_so(state: SweepState) -> Callable[[str], bool]:
    """Return a function that checks whether the condition of a name holds."""
    return lambda word: CONDITIONS[word].holds(state)


Holds = Callable[[Callable[[str], bool]], bool]
"""Checks an expression, with a function that checks the condition of a name."""


class Expression(NamedTuple):
    """A parsed expression."""

    holds: Holds
    words: tuple[str, ...]
    """The conditions in the expression, without duplicates."""


def parse_expression(text: str) -> Expression:
    """Parse conditions joined with `and`, `or`, `not` and parentheses. Raise UsageError for invalid text."""
    tokens = _TOKEN.findall(text)
    if not tokens:
        raise UsageError("--until requires a condition", f"use one or more of {', '.join(CONDITIONS)}")
    named: dict[str, None] = {}
    holds, rest = _any_of(tokens, named, 0)
    if rest:
        raise UsageError(f"unexpected {rest[0]!r} in --until {text!r}", "join conditions with `and` or `or`")
    return Expression(holds, tuple(named))


def _any_of(tokens: Sequence[str], named: dict[str, None], depth: int) -> tuple[Holds, Sequence[str]]:
    parts, rest = _joined(tokens, named, depth, "or", _all_of)
    return (lambda is_so: any(part(is_so) for part in parts)), rest


def _all_of(tokens: Sequence[str], named: dict[str, None], depth: int) -> tuple[Holds, Sequence[str]]:
    parts, rest = _joined(tokens, named, depth, "and", _one_of)
    return (lambda is_so: all(part(is_so) for part in parts)), rest


def _joined(
    tokens: Sequence[str],
    named: dict[str, None],
    depth: int,
    separator: str,
    read: Callable[[Sequence[str], dict[str, None], int], tuple[Holds, Sequence[str]]],
) -> tuple[list[Holds], Sequence[str]]:
    first, rest = read(tokens, named, depth)
    parts = [first]
    while rest and rest[0].lower() == separator:
        part, rest = read(rest[1:], named, depth)
        parts.append(part)
    return parts, rest


def _one_of(tokens: Sequence[str], named: dict[str, None], depth: int) -> tuple[Holds, Sequence[str]]:
    if not tokens:
        raise UsageError("missing condition at the end of --until", f"use one of {', '.join(CONDITIONS)}")
    if depth > _DEPTH_LIMIT:
        raise UsageError("--until is nested too deeply", "use fewer parentheses and `not`")
    word, rest = tokens[0].lower(), tokens[1:]
    if word == "not":
        negated, rest = _one_of(rest, named, depth + 1)
        return (lambda is_so: not negated(is_so)), rest
    if word == "(":
        inner, rest = _any_of(rest, named, depth + 1)
        if not rest or rest[0] != ")":
            raise UsageError("unclosed parenthesis in --until", "add the missing )")
        return inner, rest[1:]
    condition = word.replace("_", "-")
    if condition not in CONDITIONS:
        raise UsageError(f"unknown condition: {tokens[0]!r}", f"use one of {', '.join(CONDITIONS)}")
    named[condition] = None
    return (lambda is_so: is_so(condition)), rest


_WORDS: Final = "\n".join(f"  {word:12} {meaning}" for word, (meaning, _) in CONDITIONS.items())
DESCRIPTION = f"""Wait until a condition of a sweep is true, and print the words that are true then. Combine words with
`and`, `or`, `not` and brackets:
{_WORDS}"""
EXAMPLES = """\
  swarm-tui wait --until done                                  the newest sweep is finished
  swarm-tui wait --until 'done or question' --timeout 2h       or an agent asks you
  swarm-tui wait --until 'fixes and not question' 20261118     another sweep
  swarm-tui wait --until 'over-budget' && swarm-tui stop
Exit codes: 0 the condition is true; 1 it is false and no engine is running; 2 usage error; 124 timeout."""

EXIT_SO, EXIT_NOT_SO, EXIT_TIME_OVER = 0, 1, 124
_INTERVAL: Final = 0.2
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
        words = filter(is_so(opened.state), expression.words)
        print(" ".join(words) or f"not {expression.words[0]}")
    return code


def wait_for(opened: OpenedSweep, expression: Expression, timeout: float | None) -> int:
    """Wait until the expression is true or no engine is left to make it true; return the exit code."""
    begun = working_at = time.monotonic()
    checked = -1
    while True:
        opened.read_new_events()
        now, state = time.monotonic(), opened.state
        if state.last_seq != checked:
            if expression.holds(is_so(state)):
                return EXIT_SO
            checked = state.last_seq
        if opened.has_running_engine:
            working_at = now
        elif now - working_at > (RELEASE_TIME if state.started_at is not None else _START_TIME):
            print_progress(f"the condition is false, and no engine is running for {opened.folder.name}")
            return EXIT_NOT_SO
        if timeout is not None and now - begun >= timeout:
            print_progress(f"the condition is false after {timeout:g} s")
            return EXIT_TIME_OVER
        time.sleep(_INTERVAL if timeout is None else max(0.0, min(_INTERVAL, begun + timeout - now)))

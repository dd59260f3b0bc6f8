"""Conditions of `swarm-tui wait --until`, and a parser for expressions such as `done or asks and not failed`.

This module does not import pydantic, so that `swarm-tui wait --help` stays fast.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from swarm_tui.errors import UsageError

_TOKEN: Final = re.compile(r"[()]|[^\s()]+")
_DEPTH_LIMIT: Final = 50

CONDITIONS: Final = {
    "done": "the sweep is finished",
    "ended": "the engine is not running: the sweep is finished, stopped or failed",
    "asks": "an agent is waiting for an answer",
    "failed": "an agent crashed, timed out or submitted nothing",
    "blocked": "a test is blocked",
    "unresolved": "an agent could not fix its test",
    "stuck": "an agent is running but makes no progress",
    "alert": "the number of tests with the same cause has reached `--alert`",
    "over-budget": "the budget of the sweep or of an agent is spent",
    "login-lost": "the agents are logged out, so nothing is launched",
    "host-lost": "a host does not answer",
    "held": "the queue is held until you release it",
    "fixes": "an integrated branch with fixes is ready to review",
}

IsSo = Callable[[str], bool]
"""A function that returns whether the condition of this name holds."""
Holds = Callable[[IsSo], bool]


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

"""The words for what a person may wait for in a sweep, and expressions of them: `done or asks and not failed`.

No pydantic here: `swarm-tui wait --help` answers before it could be imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from swarm_tui.errors import UsageError

_TOKEN: Final = re.compile(r"[()]|[^\s()]+")
_DEEPEST: Final = 50

CONDITIONS: Final = {
    "done": "the sweep is finished",
    "ended": "no engine works on it: finished, stopped or failed",
    "asks": "an agent waits for an answer",
    "failed": "a test has failed",
    "blocked": "a test is blocked",
    "unresolved": "an agent tried and could not",
    "stuck": "an agent runs, and nothing comes of it",
    "alert": "as many tests have met one cause as `--alert` says",
    "over-budget": "the budget is spent, or that of an agent",
    "login-lost": "the agents' login is lost, so that nothing is launched",
    "host-lost": "a host of agents does not answer",
    "held": "the queue waits for a person",
    "fixes": "there is an integrated branch with fixes to review",
}
"""The words and their meanings."""

IsSo = Callable[[str], bool]
"""Whether a condition holds, by its word."""
Holds = Callable[[IsSo], bool]


class Expression(NamedTuple):
    """An expression that was understood."""

    holds: Holds
    words: tuple[str, ...]
    """The conditions that it names, each once."""


def parse_expression(text: str) -> Expression:
    """Return the meaning of words, `and`, `or`, `not` and brackets; raise UsageError for anything else."""
    tokens = _TOKEN.findall(text)
    if not tokens:
        raise UsageError("wait for what?", f"--until names one or more of {', '.join(CONDITIONS)}")
    named: dict[str, None] = {}
    holds, rest = _any_of(tokens, named, 0)
    if rest:
        raise UsageError(f"--until {text!r}: {rest[0]!r} is too much", "join words by `and` and `or`")
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
        raise UsageError("--until ends where a word is missing", f"there are {', '.join(CONDITIONS)}")
    if depth > _DEEPEST:
        raise UsageError("--until has too many brackets, or too many `not`", "write it shorter")
    word, rest = tokens[0].lower(), tokens[1:]
    if word == "not":
        negated, rest = _one_of(rest, named, depth + 1)
        return (lambda is_so: not negated(is_so)), rest
    if word == "(":
        inner, rest = _any_of(rest, named, depth + 1)
        if not rest or rest[0] != ")":
            raise UsageError("--until has a bracket that is not closed", "each ( needs a )")
        return inner, rest[1:]
    condition = word.replace("_", "-")
    if condition not in CONDITIONS:
        raise UsageError(f"--until knows no {tokens[0]!r}", f"there are {', '.join(CONDITIONS)}")
    named[condition] = None
    return (lambda is_so: is_so(condition)), rest

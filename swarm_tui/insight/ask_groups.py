"""Which asks are alike, so that one answer may do for all of them, and which rules would answer them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from swarm_tui.model.asks import Ask, AskKind
from swarm_tui.model.rules import SHELL_TOOLS, AnswerRule, common_subject, fits, rule_problem
from swarm_tui.model.text import plain

FILE_TOOLS: Final = frozenset({"Edit", "Write", "Read", "MultiEdit", "NotebookEdit"})
# What these programs do is said by their second word.
_WITH_SUBCOMMANDS: Final = frozenset(
    {"git", "npm", "pnpm", "yarn", "pip", "uv", "cargo", "go", "docker", "kubectl", "make", "just", "apt", "apt-get"}
    | {"brew", "gh", "poetry", "systemctl", "terraform", "hatch", "nox", "tox", "conda", "mngr"}
)
# These run whatever their arguments say: their name alone allows everything.
_RUNS_ANYTHING: Final = frozenset(
    {"sh", "bash", "zsh", "dash", "fish", "env", "sudo", "su", "xargs", "eval", "exec", "command", "nohup", "time"}
    | {"python", "python3", "node", "perl", "ruby", "php", "find", "ssh", "make", "uv", "npx", "tmux", "watch", "awk"}
)
_OPERATORS: Final = frozenset(";&|()<>")


class Likeness(NamedTuple):
    """What asks have in common that are shown as one row."""

    key: str
    title: str


def likeness_of(ask: Ask, own_places: Mapping[str, str]) -> Likeness:
    """Return what an ask has in common with those that one answer may do for."""
    if ask.kind is not AskKind.PERMISSION:
        options = "/".join(option for question in ask.questions for option in question.options)
        return Likeness(f"{ask.kind.value}\n{ask.text}\n{options}", plain(ask.text, 300))
    subject = common_subject(ask, own_places)
    what = _what_it_is_used_on(ask, subject)
    # What is not shown as it is never is alike.
    key = f"{ask.tool}\n{what}\n{ask.id if ask.is_inexact else ''}"
    return Likeness(key, f"{ask.tool or 'a tool'} `{plain(what, 200)}`" if what else ask.tool or "a tool")


def _what_it_is_used_on(ask: Ask, subject: str) -> str:
    if ask.tool in SHELL_TOOLS:
        return commands_in(subject)
    if ask.tool in FILE_TOOLS:
        folder, slash, _ = subject.rpartition("/")
        return f"{folder}{slash}…"
    if "://" in subject:
        scheme, _, rest = subject.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/…"
    return subject


def commands_in(line: str) -> str:
    """Return the programs that a line of shell runs, as `cd …; pytest …`; the line itself where that is not clear."""
    if any(sign in line for sign in ("$(", "`", "<(", ">(", "<<", "\n")):
        return line
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = list(lexer)
    except ValueError:
        return line
    heads, current = [], list[str]()
    for word in [*words, ";"]:
        if set(word) <= _OPERATORS:
            if set(word) & set("<>"):
                return line
            heads += [_head(current)] if current else []
            current = []
        else:
            current.append(word)
    return "; ".join(heads) or line


def _head(words: list[str]) -> str:
    """Return what a simple command is about: its program, and the second word where that says more."""
    program = words[0].rpartition("/")[2]
    if "=" in program:
        return " ".join(words)
    is_module = program.startswith("python") and words[1:2] == ["-m"]
    length = 3 if is_module else 2 if program in _WITH_SUBCOMMANDS else 1
    if program in _RUNS_ANYTHING and length == 1:
        return " ".join(words)
    return " ".join(words[:length]) + (" …" if len(words) > length else "")


def proposed_rules(ask: Ask, own_places: Mapping[str, str]) -> list[AnswerRule]:
    """Return the rules that a person may make of an ask, the narrowest first."""
    if ask.kind is not AskKind.PERMISSION or ask.is_inexact or not ask.tool:
        return []
    subject = common_subject(ask, own_places)
    rules: list[AnswerRule] = []
    if ask.tool in SHELL_TOOLS:
        rules = [AnswerRule(id="", tool=ask.tool, pattern=subject), *_beginnings(ask.tool, subject)]
    elif ask.tool in FILE_TOOLS:
        folder = subject.rpartition("/")[0]
        rules = [AnswerRule(id="", tool=ask.tool, pattern=subject)]
        rules += [AnswerRule(id="", tool=ask.tool, way="folder", pattern=folder)] if folder else []
    else:
        rules = [AnswerRule(id="", tool=ask.tool, way="any")]
    return [rule for rule in rules if not rule_problem(rule) and fits(rule, ask, subject)]


def _beginnings(tool: str, subject: str) -> Iterable[AnswerRule]:
    words = subject.split()
    for length in range(min(3, len(words) - 1), 0, -1):
        beginning = words[:length]
        program = beginning[0].rpartition("/")[2]
        is_module = program.startswith("python") and beginning[1:2] == ["-m"] and length == 3
        allows_anything = program in _RUNS_ANYTHING and not is_module
        names_command = length > 1 or program not in _WITH_SUBCOMMANDS
        if not allows_anything and names_command and "=" not in beginning[0]:
            yield AnswerRule(id="", tool=tool, way="begins", pattern=" ".join(beginning))

"""Identical questions."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from swarm_tui.journal.record import TestRecord
from swarm_tui.model.questions import (
    SHELL_TOOLS,
    AnswerRule,
    OpenQuestion,
    Question,
    QuestionKind,
    common_subject,
    fits,
    identity,
    rule_problem,
)
from swarm_tui.model.results import State
from swarm_tui.model.text import plain

FILE_TOOLS: Final = frozenset({"Edit", "Write", "Read", "MultiEdit", "NotebookEdit"})
# Programs with subcommands as the second word.
_WITH_SUBCOMMANDS: Final = frozenset(
    {"git", "npm", "pnpm", "yarn", "pip", "uv", "cargo", "go", "docker", "kubectl", "make", "just", "apt", "apt-get"}
    | {"brew", "gh", "poetry", "systemctl", "terraform", "hatch", "nox", "tox", "conda", "mngr"}
)
# Programs that can run any other program. A rule for the name alone would allow everything.
_RUNS_ANYTHING: Final = frozenset(
    {"sh", "bash", "zsh", "dash", "fish", "env", "sudo", "su", "xargs", "eval", "exec", "command", "nohup", "time"}
    | {"python", "python3", "node", "perl", "ruby", "php", "find", "ssh", "make", "uv", "npx", "tmux", "watch", "awk"}
)
_OPERATORS: Final = frozenset(";&|()<>")


class QuestionGroupKey(NamedTuple):
    """The key of a group of similar questions, and the title of its row."""

    key: str
    title: str


def group_key(question: Question, own_places: Mapping[str, str]) -> QuestionGroupKey:
    """Return the key of the group that a question belongs to."""
    if question.kind is not QuestionKind.PERMISSION:
        options = "/".join(option for part in question.parts for option in part.options)
        return QuestionGroupKey(f"{question.kind.value}\n{question.text}\n{options}", plain(question.text, 300))
    subject = common_subject(question, own_places)
    target = _general_subject(question, subject)
    # A question that is not shown completely is never grouped.
    key = f"{question.tool}\n{target}\n{question.id if question.is_inexact else ''}"
    return QuestionGroupKey(
        key, f"{question.tool or 'a tool'} `{plain(target, 200)}`" if target else question.tool or "a tool"
    )


def _general_subject(question: Question, subject: str) -> str:
    if question.tool in SHELL_TOOLS:
        return commands_in(subject)
    if question.tool in FILE_TOOLS:
        folder, slash, _ = subject.rpartition("/")
        return f"{folder}{slash}…"
    if "://" in subject:
        scheme, _, rest = subject.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/…"
    return subject


def commands_in(line: str) -> str:
    """Return the programs that a shell command runs, such as `cd …; pytest …`; the command itself if unclear."""
    if any(syntax in line for syntax in ("$(", "`", "<(", ">(", "<<", "\n")):
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
    """Return the program of a simple command, with its subcommand if it has one."""
    program = words[0].rpartition("/")[2]
    if "=" in program:
        return " ".join(words)
    is_module = program.startswith("python") and words[1:2] == ["-m"]
    length = 3 if is_module else 2 if program in _WITH_SUBCOMMANDS else 1
    if program in _RUNS_ANYTHING and length == 1:
        return " ".join(words)
    return " ".join(words[:length]) + (" …" if len(words) > length else "")


def proposed_rules(question: Question, own_places: Mapping[str, str]) -> list[AnswerRule]:
    """Return the possible rules for a question, narrowest first."""
    if question.kind is not QuestionKind.PERMISSION or question.is_inexact or not question.tool:
        return []
    subject = common_subject(question, own_places)
    rules: list[AnswerRule] = []
    if question.tool in SHELL_TOOLS:
        rules = [AnswerRule(id="", tool=question.tool, pattern=subject), *_prefix_rules(question.tool, subject)]
    elif question.tool in FILE_TOOLS:
        folder = subject.rpartition("/")[0]
        rules = [AnswerRule(id="", tool=question.tool, pattern=subject)]
        rules += [AnswerRule(id="", tool=question.tool, way="folder", pattern=folder)] if folder else []
    else:
        rules = [AnswerRule(id="", tool=question.tool, way="any")]
    return [rule for rule in rules if not rule_problem(rule) and fits(rule, question, subject)]


def _prefix_rules(tool: str, subject: str) -> Iterable[AnswerRule]:
    words = subject.split()
    for length in range(min(3, len(words) - 1), 0, -1):
        prefix = words[:length]
        program = prefix[0].rpartition("/")[2]
        is_module = program.startswith("python") and prefix[1:2] == ["-m"] and length == 3
        allows_anything = program in _RUNS_ANYTHING and not is_module
        names_command = length > 1 or program not in _WITH_SUBCOMMANDS
        if not allows_anything and names_command and "=" not in prefix[0]:
            yield AnswerRule(id="", tool=tool, way="begins", pattern=" ".join(prefix))


GONE: Final = "the question is closed or has changed since it was shown; no answer was sent"


def item_of_turn(record: TestRecord) -> str:
    """Return the inbox id of an agent's finished turn. It depends on the question and the turn."""
    return identity(record.test, record.question, f"{record.since:.6f}")


def is_turn_over(record: TestRecord) -> bool:
    """Return whether an agent has finished its turn and waits for a message, without an open dialog.

    Return False for an agent whose hook has just received an answer, until its next poll.
    """
    is_between = bool(record.questions_until) and not record.question
    return record.state is State.WAITING and not record.open_questions and not record.needs_terminal and not is_between


def find_wait(records: Iterable[TestRecord], item: str) -> tuple[TestRecord, OpenQuestion | None] | None:
    """Return the record of an item that can be answered, with the question if it came from a hook."""
    for record in records:
        for open_question in record.open_questions:
            if open_question.item == item:
                return record, open_question
        if is_turn_over(record) and item_of_turn(record) == item:
            return record, None
    return None

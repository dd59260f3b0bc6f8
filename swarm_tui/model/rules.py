"""Rules: what a person has decided about asks of one kind for the rest of a sweep, and which asks a rule fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from swarm_tui.model.asks import YES, Ask, AskKind, OpenAsk

SUBJECT_LIMIT: Final = 2_000
SHELL_TOOLS: Final = frozenset({"Bash"})
# A prefix says nothing about a line with any of these: what follows them may be another command.
_SHELL_SIGNS: Final = frozenset(";&|<>`$(){}\\\n\r\0")

Way = Literal["exactly", "begins", "folder", "any"]


class AnswerRule(BaseModel):
    """A decision on all asks that use one tool in one way."""

    model_config = ConfigDict(frozen=True)

    id: str
    tool: str
    way: Way = "exactly"
    pattern: str = ""
    answer: str = YES
    by: str = ""

    @property
    def words(self) -> str:
        """The rule as people read it."""
        match self.way:
            case "exactly":
                what = f"{self.tool}, exactly `{self.pattern}`"
            case "begins":
                what = f"{self.tool}, a command that begins with `{self.pattern}`"
            case "folder":
                what = f"{self.tool}, a file below `{self.pattern}`"
            case _:
                what = f"{self.tool}, whatever it is used on"
        return what


def rule_problem(rule: AnswerRule, others: Iterable[AnswerRule] = ()) -> str:
    """Return why there cannot be such a rule beside others, or ""."""
    if not rule.tool or not rule.answer.strip():
        return "a rule needs a tool and an answer"
    if len(rule.pattern) > SUBJECT_LIMIT or (rule.way != "any" and not rule.pattern.strip()):
        return "a rule needs a pattern, of at most 2,000 characters"
    if rule.way == "begins" and not _is_one_command(rule.pattern):
        return "a rule can only begin with the words of one plain command"
    if rule.way == "any" and rule.tool in SHELL_TOOLS:
        return "a rule for all commands is no rule: give the agents that permission when the sweep is started"
    for other in others:
        if (other.tool, other.way, other.pattern) == (rule.tool, rule.way, rule.pattern):
            return f"rule {other.id} decides that already"
    return ""


def fits(rule: AnswerRule, ask: Ask, subject: str) -> bool:
    """Return whether a rule answers an ask; `subject` is what `common_subject` makes of it."""
    if ask.kind is not AskKind.PERMISSION or ask.is_inexact or ask.tool != rule.tool:
        return False
    match rule.way:
        case "exactly":
            return subject == rule.pattern
        case "begins":
            wanted = rule.pattern.split()
            return _is_one_command(subject) and subject.split()[: len(wanted)] == wanted
        case "folder":
            return subject.startswith(rule.pattern.rstrip("/") + "/") and ".." not in subject.split("/")
        case _:
            return True


def common_subject(ask: Ask, own_places: Mapping[str, str]) -> str:
    """Return the subject of an ask as it is for every agent, with names such as `COPY` for what is the agent's own."""
    text = ask.subject
    for name, place in own_places.items():
        text = _with_name(text, place.rstrip("/"), name)
    return text


def _with_name(subject: str, place: str, name: str) -> str:
    if len(place) < 2:
        return subject
    # A branch stands in ranges of commits too; `../copies/a` is another folder than `/copies/a`.
    before = " \t\n\"'=:(" + ("" if place.startswith("/") else ".")
    pieces = subject.split(place)
    text = pieces[0]
    for piece in pieces[1:]:
        # `/copies/a` is no part of `/copies/ab`, nor of `/old/copies/a`.
        is_whole = (not piece or piece[0] in "/ \t\n\"';&|)") and (not text or text[-1] in before)
        text += (name if is_whole else place) + piece
    return text


def rule_for(rules: dict[str, AnswerRule], asked: OpenAsk, own_places: Mapping[str, str]) -> AnswerRule | None:
    """Return the oldest rule that answers an open ask."""
    subject = common_subject(asked.ask, own_places)
    return next((rule for rule in rules.values() if fits(rule, asked.ask, subject)), None)


def _is_one_command(text: str) -> bool:
    return bool(text.split()) and not _SHELL_SIGNS & set(text)

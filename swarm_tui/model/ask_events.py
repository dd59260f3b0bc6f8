"""The events of the inbox: what agents ask, who answers it, and the rules by which some of it is answered."""

from __future__ import annotations

from typing import Final, Literal

from swarm_tui.model.asks import Ask
from swarm_tui.model.event_base import EventBase, TestEvent
from swarm_tui.model.rules import AnswerRule

BY_TYPING: Final = "on the screen, while a text was typed there: a key of that may have answered it"
"""Why an ask ended that perhaps nobody has answered."""


class Asked(TestEvent):
    """An agent asks something through its hook, and waits."""

    type: Literal["asked"] = "asked"
    ask: Ask


class AskAnswered(TestEvent):
    """An answer was laid where the agent's hook takes it from."""

    type: Literal["ask_answered"] = "ask_answered"
    ask: str
    text: str = ""
    by: str = ""
    rule: str = ""
    """The rule that gave it; empty when a person did."""


class AskClosed(TestEvent):
    """An agent does not wait with an ask any more."""

    type: Literal["ask_closed"] = "ask_closed"
    ask: str
    why: str = ""
    """`answered` where the answer was taken; else what ended it, such as `on the screen`."""


class RuleMade(EventBase):
    """From now on a rule answers what fits it."""

    type: Literal["rule_made"] = "rule_made"
    rule: AnswerRule


class RuleEnded(EventBase):
    """A person took a rule back."""

    type: Literal["rule_ended"] = "rule_ended"
    rule: str
    by: str = ""

"""Reads why an agent's model does not answer from the file in which agents of any kind may report it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from swarm_tui.agents.contract import CONDITION_PATH
from swarm_tui.agents.observation import AnswerFile, Observation, ObservedFile
from swarm_tui.model.asks import Ask, EndedAsk
from swarm_tui.model.text import plain
from swarm_tui.model.trouble import Trouble, trouble_words

_WORDS_LIMIT = 200


@dataclass(slots=True)
class ConditionObserver:
    """One agent of a kind of which nothing but its process and this file is known."""

    files: Sequence[ObservedFile] = (ObservedFile("condition", CONDITION_PATH, is_appended=False),)
    _trouble: Trouble | None = None
    _words: str = ""

    @property
    def typing_problem(self) -> str:
        return ""

    @property
    def dollars(self) -> float | None:
        return None

    @property
    def asks(self) -> Mapping[str, Ask]:
        return {}

    @property
    def ended_asks(self) -> Mapping[str, EndedAsk]:
        return {}

    def answer(self, ask: Ask, text: str, by: str) -> AnswerFile:
        raise LookupError("it asks nothing through a hook")

    def add_lines(self, name: str, lines: Sequence[bytes]) -> None:
        """Read nothing: no file of this observer is appended."""

    def set_contents(self, name: str, contents: Mapping[str, bytes]) -> None:
        raw = next(iter(contents.values()), b"{}")
        try:
            report = json.loads(raw)
            kind = report.get("trouble")
            self._trouble = Trouble.model_validate({**report, "kind": kind}) if kind else None
            self._words = plain(str(report.get("words") or ""), _WORDS_LIMIT)
        except (ValueError, ValidationError, AttributeError, TypeError, RecursionError):
            self._trouble = None

    def observe(self, now: float) -> Observation | None:
        if self._trouble is None:
            return None
        words = self._words or trouble_words(self._trouble.kind, self._trouble.until, now)
        return Observation(False, "its report", condition=words, trouble=self._trouble)

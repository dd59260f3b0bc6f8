"""What an agent's own files say of its state; `AgentKind` says which files, and who reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from swarm_tui.model.asks import Ask, EndedAsk
from swarm_tui.model.trouble import Trouble


@dataclass(frozen=True, slots=True)
class ObservedFile:
    """A file, or the files that fit a pattern, in an agent's state folder."""

    name: str
    """The name by which an observer knows it."""
    pattern: str
    is_appended: bool = True
    """Whether only its new lines are read; other files are small and read whole each time."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What an agent is doing, and from what that is known."""

    needs_person: bool
    source: str
    question: str = ""
    """What it wants to know, or is to be allowed."""
    options: tuple[str, ...] = ()
    condition: str = ""
    """A condition that a person should see but need not act on, such as a request that is tried again."""
    trouble: Trouble | None = None
    """Why its model does not answer."""
    needs_terminal: bool = False
    """Whether only somebody at its terminal can answer."""


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file in an agent's state folder that brings an answer to what the agent asks, without its terminal."""

    path: str
    content: bytes


class AgentObserver(Protocol):
    """Reads the files of one agent. Everything in them is hostile."""

    @property
    def typing_problem(self) -> str:
        """Why text must not be typed into the agent's terminal now; empty when it may be."""
        ...

    @property
    def dollars(self) -> float | None:
        """The agent's own sum of what it has spent, as of its last turn; None where it keeps none."""
        ...

    @property
    def asks(self) -> Mapping[str, Ask]:
        """What the agent asks through a hook, by its id, the oldest first."""
        ...

    @property
    def ended_asks(self) -> Mapping[str, EndedAsk]:
        """The asks that are over, by their ids, in the order in which they ended."""
        ...

    def answer(self, ask: Ask, text: str, by: str) -> AnswerFile:
        """Return the file that brings an answer to an ask; only where `answer_problem` returns no reason."""
        ...

    @property
    def files(self) -> Sequence[ObservedFile]:
        """The files that are to be read."""
        ...

    def add_lines(self, name: str, lines: Sequence[bytes]) -> None:
        """Read new lines of an appended file."""
        ...

    def set_contents(self, name: str, contents: Mapping[str, bytes]) -> None:
        """Read the small files that fit a pattern, by their paths."""
        ...

    def observe(self, now: float) -> Observation | None:
        """Return what the agent is doing at a time (since 1970); None when its files do not tell."""
        ...

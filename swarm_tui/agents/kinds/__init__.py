"""Agent kinds: what is special about offline, Claude, or another type of agent, in one module each.

A module of this package declares a kind: a subclass of `AgentKind` named `KIND` that lists the agent types it
stands for. It is found by that name; nothing else has to be told of it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final

from swarm_tui.agents.transcript_summary import TranscriptSummary
from swarm_tui.model.options import RunOptions

DEFAULT_AGENT_TYPE: Final = RunOptions.agent_type


@dataclass(frozen=True, slots=True)
class AgentKind:
    """The agents of one type. What this class says holds for a type of which mngr alone knows more than the name."""

    agent_type: str

    AGENT_TYPES: ClassVar[tuple[str, ...]] = ()
    """The types that the kind stands for; none for this class, which stands for all others."""

    title: ClassVar[str] = ""
    """What people call it; empty for the name of the type."""

    has_model: ClassVar[bool] = True
    """Whether it is a coding agent, which then also integrates, and not a program that does as it is written."""

    can_integrate: ClassVar[bool] = True

    is_ours: ClassVar[bool] = False
    """Whether it is an agent of swarm-tui's own, of which mngr does not know the type."""

    plays_records: ClassVar[bool] = False
    """Whether it plays records instead of working, and cannot do what no record shows."""

    program: ClassVar[str] = ""
    """The program that has to be installed before a launch; it answers to --version. Empty when none is known."""

    process: ClassVar[str] = ""
    """The name of its process as `ps` shows it; empty for the first word of its command."""

    environment_patterns: ClassVar[tuple[str, ...]] = ()
    """The variables of a person's environment that it needs: names, in which * stands for any characters."""

    withheld_environment: ClassVar[tuple[str, ...]] = ()
    """Those that match but belong to one running program, and would mislead another one."""

    permissions: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The words of its command line for each way to treat permissions, by the way's name."""

    ready_within: ClassVar[float] = 8.0
    """Seconds after its launch during which an agent that was never active may still be starting."""

    dialog_signs: ClassVar[tuple[str, ...]] = ()
    """Patterns of screen lines that stand there only while a dialog waits for a person."""

    limit_signs: ClassVar[tuple[str, ...]] = ()
    """Patterns of screen lines that tell of a limit, or of a server that does not answer."""

    @property
    def mngr_type(self) -> str:
        """The type as mngr knows it."""
        return self.agent_type

    @property
    def plugin(self) -> str:
        """The plugin of mngr that brings the type; empty when mngr has it without one."""
        return self.agent_type

    @property
    def transcript_emitters(self) -> tuple[str, ...]:
        """The names under which it writes its transcript in mngr's events, the likeliest first."""
        return (self.agent_type,)

    def argument_problem(self, arguments: Sequence[str]) -> tuple[str, str]:
        """Return why agents cannot be launched with these words, and what to do; both empty when they can."""
        return "", ""

    def prepare_command(self, arguments: tuple[str, ...], folder: Path, task_file: Path) -> tuple[str, ...]:
        """Return the words that mngr runs, or adds to those of the type; programs they need are written to `folder`."""
        return arguments

    def variables(self, arguments: Sequence[str], *, is_root: bool) -> dict[str, str]:
        """Return the variables that an agent with these words must have."""
        return {}

    def message(self, prompt: Path) -> str | None:
        """Return the message that sets an agent to work; None for one that needs none.

        It names the prompt's file: a terminal cuts long lines, a file is read whole.
        """
        return f"Read {prompt} and do everything it says, to its last step."

    def new_summary(self) -> TranscriptSummary:
        """Return an empty summary, which takes in a transcript of this kind bit by bit."""
        return TranscriptSummary()


def kind_of(agent_type: str) -> AgentKind:
    """Return the kind of the agents of a type."""
    return _kinds().get(agent_type, AgentKind)(agent_type)


@cache
def _kinds() -> dict[str, type[AgentKind]]:
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    kinds: list[type[AgentKind]] = [module.KIND for module in modules]
    return {agent_type: kind for kind in kinds for agent_type in kind.AGENT_TYPES}

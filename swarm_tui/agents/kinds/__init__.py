"""Agent kinds: what is special about offline, Claude, or another type of agent, in one module each.

Each module of this package binds `KIND` to a subclass of `AgentKind`, which lists the agent types that it stands
for. Modules are found by being here: a new kind is one new module.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final

from swarm_tui.model.options import RunOptions
from swarm_tui.model.sweep import SweepSpec
from swarm_tui.transcripts.locate import TranscriptSources

if TYPE_CHECKING:
    from swarm_tui.agents.observation import AgentObserver
    from swarm_tui.agents.shipped import Shelf
    from swarm_tui.agents.transcript_summary import TranscriptSummary

DEFAULT_AGENT_TYPE: Final = RunOptions.agent_type


@dataclass(frozen=True, slots=True)
class AgentStart:
    """What is known of an agent that is about to be created."""

    arguments: tuple[str, ...]
    """Of its command line: for what it may do, and those that a person gave."""
    shelf: Shelf
    """For files that all agents of a sweep share."""
    state_dir: str
    task_file: str | None = None
    unapproved_servers: tuple[str, ...] = ()
    outside_imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Permission:
    """What agents may do without asking, and the words of their command line for it."""

    sentence: str
    """Follows "the agents"; empty where their own settings decide."""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Login:
    """Whether an agent is logged in; None where that is not known."""

    is_logged_in: bool | None
    is_subscription: bool = False
    """Whether its work is paid by a subscription, so that a price per token is imputed."""


@dataclass(frozen=True, slots=True)
class AgentKind:
    """What differs between types of agents. This class itself is for types of which nothing but the name is known."""

    agent_type: str

    AGENT_TYPES: ClassVar[tuple[str, ...]] = ()
    """The types that the kind stands for; none for this class, which stands for all that no kind lists."""

    title: ClassVar[str] = ""
    """The name that people know it by, where that is not the type."""

    has_model: ClassVar[bool] = True
    """Whether it is a coding agent, which by default also integrates, or a program without a model."""

    says_cost: ClassVar[bool] = False
    """Whether it is known that its transcript says what it costs."""

    can_integrate: ClassVar[bool] = True

    is_ours: ClassVar[bool] = False
    """Whether it is an agent of swarm-tui's own, of which mngr does not know the type."""

    is_simulated: ClassVar[bool] = False
    """Whether there are only events of it: such agents are never launched."""

    plays_records: ClassVar[bool] = False
    """Whether it plays records, and can do nothing else."""

    program: ClassVar[str] = ""
    """The program that has to be installed, which knows --version; empty when none is known."""

    process: ClassVar[str] = ""
    """The name of its process as `ps` shows it; empty for the first word of its command."""

    environment_patterns: ClassVar[tuple[str, ...]] = ()
    """The variables of a person's environment that it needs: names, in which * matches any characters."""

    withheld_environment: ClassVar[tuple[str, ...]] = ()
    """Variables that match, but that one running program sets for its own children."""

    permissions: ClassVar[Mapping[str, Permission]] = {}
    """What `--permissions allow`, `ask` and `skip` mean; empty where the agent's own settings decide."""

    permission_flags: ClassVar[tuple[str, ...]] = ()
    """Flags of its command line by which a person decides on permissions without `--permissions`."""

    needed_version: ClassVar[tuple[int, ...]] = ()
    """The oldest version of the program that can be used."""

    login_hint: ClassVar[str] = ""
    """What to do when it is not logged in."""

    login_command: ClassVar[tuple[str, ...]] = ()
    """The command that tells whether it is logged in; empty when there is none."""

    ready_within: ClassVar[float] = 8.0
    """Seconds after its launch during which an agent that was never active may still be starting."""

    dialog_signs: ClassVar[tuple[str, ...]] = ()
    """Patterns of lines that are on its screen only while a dialog waits for a person."""

    start_dialog_hint: ClassVar[str] = "start its program once yourself and answer it there"
    """What a person can do about a dialog that keeps agents from beginning."""

    def needed_variables(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the names in a person's environment that the agent needs to log in and to reach its model."""
        patterns, withheld = self.environment_patterns, self.withheld_environment
        found = (name for name in environment if any(fnmatchcase(name, pattern) for pattern in patterns))
        return tuple(sorted(name for name in found if name not in withheld))

    def permission(self, chosen: str, arguments: Sequence[str]) -> Permission:
        """Return what an agent may do; words of its command line that decide on it win."""
        own = [word for word in arguments if word.partition("=")[0] in self.permission_flags]
        if own:
            return Permission(f"do what {' '.join(own)} lets them")
        return self.permissions.get(chosen, Permission(""))

    def read_login(self, code: int, output: str, environment: Mapping[str, str]) -> Login:
        """Return what the login command said by its exit code and its output."""
        return Login(is_logged_in=code == 0)

    @property
    def unknown_facts(self) -> str:
        """What cannot be found out about its agents, as the subject of "... are not known"; empty for a known kind."""
        return "" if self.AGENT_TYPES else "what they cost, what their dialogs ask and what they do without asking"

    @property
    def mngr_type(self) -> str:
        """The type as mngr knows it."""
        return self.agent_type

    @property
    def plugin(self) -> str:
        """The plugin of mngr that brings the type; empty when mngr has it without one."""
        return self.agent_type

    @property
    def transcript_sources(self) -> TranscriptSources:
        """Where it writes its transcript."""
        return TranscriptSources((self.agent_type,))

    def argument_problem(self, arguments: Sequence[str]) -> tuple[str, str]:
        """Return why agents cannot be launched with these arguments, and a hint; both are empty when they can."""
        return "", ""

    def home_problem(self, environment: Mapping[str, str]) -> str:
        """Return what of the person's home keeps agents from beginning that mngr creates; "" for nothing."""
        return ""

    def project_problem(self, read: Callable[[str], bytes]) -> str:
        """Return what in the project keeps every agent from beginning; "" for nothing."""
        return ""

    def unapproved_servers(self, read: Callable[[str], bytes]) -> tuple[str, ...]:
        """Return the project's tool servers (MCP) that nobody has approved; `read` returns a file of the project.

        Agents do without them: to be asked at its start would keep each one from beginning.
        """
        return ()

    def outside_imports(self, read: Callable[[str], bytes]) -> tuple[str, ...]:
        """Return the files outside of a project that its own instructions for agents import.

        Agents do without them too.
        """
        return ()

    def prepare_command(self, start: AgentStart) -> tuple[str, ...]:
        """Return the command line arguments for mngr; write the files that they name."""
        return start.arguments

    def variables(self, arguments: Sequence[str], *, is_root: bool) -> dict[str, str]:
        """Return the environment variables that an agent with these arguments must have."""
        return {}

    def message(self, prompt: str) -> str | None:
        """Return the message that an agent begins with; None for one that needs none.

        It names the prompt's file, because terminals cut long lines.
        """
        return f"Read {prompt} and do everything it says, to its last step."

    def new_observer(self) -> AgentObserver | None:
        """Return what tells from the agent's own files what it does; None where only its process is known."""
        from swarm_tui.agents.reported_condition import ConditionObserver

        return ConditionObserver()

    def new_summary(self) -> TranscriptSummary:
        """Return a summary that reads transcripts of this kind."""
        from swarm_tui.agents.transcript_summary import TranscriptSummary

        return TranscriptSummary()


def kind_of(agent_type: str, parent_type: str = "") -> AgentKind:
    """Return the kind of the agents of a type, which may be derived from another one in mngr's settings."""
    kind, parent = _kinds().get(agent_type), _kinds().get(parent_type)
    if kind is None and parent is not None and parent.has_model:
        return parent(agent_type)
    # What a type that is derived from a plain command runs is not known.
    return (kind or AgentKind)(agent_type)


def kind_of_sweep(spec: SweepSpec) -> AgentKind:
    """Return the kind of a sweep's agents."""
    return kind_of(spec.agent_type, spec.parent_type)


@cache
def _kinds() -> dict[str, type[AgentKind]]:
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    kinds: list[type[AgentKind]] = [module.KIND for module in modules]
    return {agent_type: kind for kind in kinds for agent_type in kind.AGENT_TYPES}

"""Agent types: the differences between Claude, the offline agent and other types, in one module each.

Each module of this package binds `AGENT_TYPE` to a subclass of `AgentType`, which lists the mngr types that it
supports. To add an agent type, add a module.
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
from swarm_tui.model.spec import SweepSpec
from swarm_tui.transcripts.locate import TranscriptSources

if TYPE_CHECKING:
    from swarm_tui.agents.observer import AgentObserver
    from swarm_tui.agents.packaged import PackageDir
    from swarm_tui.agents.summary import TranscriptSummary

DEFAULT_AGENT_TYPE: Final = RunOptions.agent_type


@dataclass(frozen=True, slots=True)
class AgentStart:
    """The properties of an agent that is about to be created."""

    arguments: tuple[str, ...]
    """Command line arguments: for permissions, and those that the user gave."""
    package_dir: PackageDir
    """Contains the files that all agents of a sweep share."""
    state_dir: str
    task_file: str | None = None
    unapproved_servers: tuple[str, ...] = ()
    outside_imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Permission:
    """What agents may do without asking, and the arguments for it."""

    sentence: str
    """Continues the sentence "the agents ..."; empty if their own settings decide."""
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Login:
    """Whether an agent is logged in; None if unknown."""

    is_logged_in: bool | None
    is_subscription: bool = False
    """Whether the user has a subscription, so that costs are estimated from prices per token."""


@dataclass(frozen=True, slots=True)
class HomeLeftovers:
    """What agents of a sweep left in the user's home folder."""

    removable: tuple[str, ...] = ()
    """Phrases such as "2 entries in /home/ada/.claude.json"."""
    kept: tuple[str, ...] = ()
    """Files that `clean` does not change, each with the reason."""


@dataclass(frozen=True, slots=True)
class AgentType:
    """The properties of an agent type. Instances of this class itself are for unknown types."""

    name: str

    AGENT_TYPES: ClassVar[tuple[str, ...]] = ()
    """The mngr types that this class supports; empty for this class, which supports all others."""

    title: ClassVar[str] = ""
    """The display name, if it differs from the type."""

    has_model: ClassVar[bool] = True
    """Whether it is a coding agent, which by default also integrates, or a program without a model."""

    says_cost: ClassVar[bool] = False
    """Whether its transcript is known to contain its cost."""

    can_integrate: ClassVar[bool] = True

    is_ours: ClassVar[bool] = False
    """Whether it is part of swarm-tui and unknown to mngr."""

    is_simulated: ClassVar[bool] = False
    """Whether it exists only as events and is never launched."""

    plays_records: ClassVar[bool] = False
    """Whether it replays records and does nothing else."""

    program: ClassVar[str] = ""
    """The program that must be installed and supports --version; empty if unknown."""

    install_command: ClassVar[str] = ""
    """The command that installs the program, as root on Debian, in the version whose dialogs mngr recognizes."""

    process: ClassVar[str] = ""
    """The name of its process in `ps`; empty for the first word of its command."""

    environment_patterns: ClassVar[tuple[str, ...]] = ()
    """The variables of the user's environment that it needs: names or patterns with *."""

    withheld_environment: ClassVar[tuple[str, ...]] = ()
    """Matching variables to leave out, because a running program sets them for its own child processes."""

    permissions: ClassVar[Mapping[str, Permission]] = {}
    """The meaning of `--permissions allow`, `ask` and `skip`; empty if the agent's own settings decide."""

    permission_flags: ClassVar[tuple[str, ...]] = ()
    """Arguments that set permissions without `--permissions`."""

    needs_full_copy: ClassVar[bool] = False
    """Whether it cannot commit in a worktree, because its sandbox protects the git folder there."""

    needed_version: ClassVar[tuple[int, ...]] = ()
    """The oldest supported version of the program."""

    tested_version: ClassVar[tuple[int, ...]] = ()
    """The version whose dialogs mngr recognizes; newer versions may have others. Empty if there is no such version."""

    login_hint: ClassVar[str] = ""
    """How to log in."""

    login_command: ClassVar[tuple[str, ...]] = ()
    """The command that reports whether it is logged in; empty if there is none."""

    ready_within: ClassVar[float] = 8.0
    """Seconds after launch during which an agent that was never active may still be starting."""

    dialog_signs: ClassVar[tuple[str, ...]] = ()
    """Patterns of screen lines that appear only while a dialog waits for the user."""

    start_dialog_hint: ClassVar[str] = "start its program once yourself and answer the dialog there"
    """What to do about a dialog that prevents agents from starting."""

    def needed_variables(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Return the variables in the user's environment that the agent needs to log in and to reach its model."""
        patterns, withheld = self.environment_patterns, self.withheld_environment
        found = (name for name in environment if any(fnmatchcase(name, pattern) for pattern in patterns))
        return tuple(sorted(name for name in found if name not in withheld))

    def permission(self, chosen: str, arguments: Sequence[str]) -> Permission:
        """Return what an agent may do. Arguments that set permissions take precedence."""
        own = [word for word in arguments if word.partition("=")[0] in self.permission_flags]
        if own:
            return Permission(f"do what {' '.join(own)} allows")
        return self.permissions.get(chosen, Permission(""))

    def read_login(
        self, code: int, output: str, environment: Mapping[str, str], arguments: Sequence[str] = ()
    ) -> Login:
        """Return the login state from the exit code and output of the login command.

        `arguments` are those of the user, which may select another model provider.
        """
        return Login(is_logged_in=code == 0)

    def argument_check(self, arguments: Sequence[str]) -> tuple[str, ...]:
        """Return a command that fails if the program rejects these arguments; () if there is none."""
        return ()

    def read_refusal(self, output: str) -> str:
        """Return why the program rejects arguments, from the output of `argument_check`; "" if unknown."""
        return ""

    @property
    def unknown_facts(self) -> str:
        """Unknown properties of its agents, as the subject of "... are not known"; empty for a supported type."""
        return "" if self.AGENT_TYPES else "their cost, the text of their dialogs and their permissions"

    @property
    def mngr_type(self) -> str:
        """The name of the type in mngr."""
        return self.name

    @property
    def plugin(self) -> str:
        """The mngr plugin that provides the type; empty if mngr includes it."""
        return self.name

    @property
    def transcript_sources(self) -> TranscriptSources:
        """Where the agent writes its transcript."""
        return TranscriptSources((self.name,))

    def model(self, arguments: Sequence[str]) -> str:
        """Return the model that agents with these arguments use; "" if the program chooses it, or reports its cost."""
        return ""

    def argument_problem(self, arguments: Sequence[str]) -> tuple[str, str]:
        """Return why agents cannot be launched with these arguments, and a hint; both are "" if they can."""
        return "", ""

    def home_problem(self, environment: Mapping[str, str]) -> str:
        """Return why the user's home folder prevents agents from starting, or ""."""
        return ""

    def home_leftovers(self, copies: Sequence[str], environment: Mapping[str, str]) -> HomeLeftovers:
        """Return what agents with these copies of the repository left in the user's home folder."""
        return HomeLeftovers()

    def clean_home(self, copies: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """Remove what agents with these removed copies left in the user's home folder; return the problems."""
        return []

    def project_problem(self, read: Callable[[str], bytes]) -> str:
        """Return why the project prevents every agent from starting, or ""."""
        return ""

    def unapproved_servers(self, read: Callable[[str], bytes]) -> tuple[str, ...]:
        """Return the MCP servers of the project that the user has not approved; `read` returns a file of the project.

        swarm-tui disables them for agents, because a dialog about them would prevent each agent from starting.
        """
        return ()

    def outside_imports(self, read: Callable[[str], bytes]) -> tuple[str, ...]:
        """Return the files outside of the project that its instructions for agents import.

        swarm-tui excludes them for agents, for the same reason.
        """
        return ()

    def prepare_command(self, start: AgentStart) -> tuple[str, ...]:
        """Return the arguments for mngr, and write the files that they name."""
        return start.arguments

    def create_arguments(self, start: AgentStart, permissions: str) -> tuple[str, ...]:
        """Return the arguments of `mngr create` for its settings, and write the files that they name."""
        return ()

    def variables(self, arguments: Sequence[str], *, is_root: bool) -> dict[str, str]:
        """Return the environment variables that an agent with these arguments requires."""
        return {}

    def message(self, prompt: str) -> str | None:
        """Return the agent's first message, or None if it needs none.

        The message names the prompt's file, because terminals cut long lines.
        """
        return f"Read {prompt} and follow all of it, including the last step."

    def new_observer(self) -> AgentObserver | None:
        """Return an observer of the agent's own files; None if only its process can be observed."""
        from swarm_tui.agents.observer import ConditionObserver

        return ConditionObserver()

    def new_summary(self) -> TranscriptSummary:
        """Return a summary that reads transcripts of this type."""
        from swarm_tui.agents.summary import TranscriptSummary

        return TranscriptSummary()


def agent_type_of(name: str, parent: str = "") -> AgentType:
    """Return the agent type by name; mngr's settings may derive it from `parent`."""
    known, parent_type = _agent_types().get(name), _agent_types().get(parent)
    if known is None and parent_type is not None and parent_type.has_model:
        return parent_type(name)
    # A type that is derived from a plain command may run anything.
    return (known or AgentType)(name)


def agent_type_of_sweep(spec: SweepSpec) -> AgentType:
    """Return the agent type of a sweep."""
    return agent_type_of(spec.agent_type, spec.parent_type)


@cache
def _agent_types() -> dict[str, type[AgentType]]:
    modules = (importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__))
    types: list[type[AgentType]] = [module.AGENT_TYPE for module in modules]
    return {name: found for found in types for name in found.AGENT_TYPES}

"""The request to mngr to create an agent, and mngr's answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from swarm_tui.errors import UsageError

Transfer = Literal["git-mirror", "git-worktree", "none"]

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]*[A-Za-z0-9])?")
_ADDRESS: Final = re.compile(rf"{_NAME.pattern}(?:@[A-Za-z0-9][\w.-]*|@\.[A-Za-z0-9][\w-]*)?")
_LABEL_KEY: Final = re.compile(r"[A-Za-z_][\w.-]*")
_ENVIRONMENT_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# mngr passes --env to a shell, so values must not have special characters.
_ENVIRONMENT_VALUE: Final = re.compile(r"[\w./:,@%+= -]*")
_BRANCH: Final = re.compile(r"[\w./@+-]+")


def is_plain_value(value: str) -> bool:
    """Return whether a value can be passed to an agent as a variable, with no special characters of a shell."""
    return _ENVIRONMENT_VALUE.fullmatch(value) is not None


def is_agent_name(name: str) -> bool:
    """Return whether this is a valid name of an agent, and not an option, a path or a part of a tmux target."""
    return _NAME.fullmatch(name) is not None


def checked_address(address: str) -> str:
    """Return a `name` or `name@host.provider` unchanged; raise UsageError if it is invalid."""
    if _ADDRESS.fullmatch(address) is None:
        raise UsageError(f"invalid name of an agent: {address!r}", "use letters, digits, and - and _ inside")
    return address


def checked_host(name: str, provider: str) -> str:
    """Return mngr's name `@name.provider` of a host; raise UsageError if it is invalid."""
    for each in (name, provider):
        if not is_agent_name(each):
            raise UsageError(
                f"invalid name of a host or a provider: {each!r}", "use letters, digits, and - and _ inside"
            )
    return f"@{name}.{provider}"


class MngrAnswer(BaseModel):
    """A part of an answer. Keys of newer versions are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")


class NewHost(BaseModel):
    """A host that is created for an agent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    idle_timeout: int
    """Seconds without a running program after which the host stops."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    build_arguments: tuple[str, ...] = ()
    start_arguments: tuple[str, ...] = ()

    def words(self) -> list[str]:
        """Return the arguments for the host."""
        words = ["--new-host", "--idle-mode", "run", "--idle-timeout", f"{self.idle_timeout}s"]
        words += [word for key, value in self.labels.items() for word in ("--host-label", f"{key}={value}")]
        words += [word for argument in self.build_arguments for word in ("--build-arg", argument)]
        return [*words, *(word for argument in self.start_arguments for word in ("--start-arg", argument))]


class CreateRequest(BaseModel):
    """A request for an agent. Raise UsageError for values that mngr or a shell could misread."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    agent_type: str = "command"
    command: tuple[str, ...] = ()
    source: Path
    """The repository to copy; the working directory of mngr."""
    transfer: Transfer = "git-mirror"
    base: str | None = None
    branch: str | None = None
    """The new branch, created from `base`. Without both, mngr chooses the name."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    message: str | None = None
    environment: Mapping[str, str] = Field(default_factory=dict)
    """Constants and checked paths only, because mngr passes the values to a shell."""
    passed_environment: tuple[str, ...] = ()
    """The names of variables that mngr takes from its own environment."""
    provider: str = "local"
    host: str | None = None
    new_host: NewHost | None = None
    """Have the provider create the host, with a new name."""
    is_approved: bool = False
    """Answer yes to the questions of mngr, for example whether Claude may trust the folder."""
    extra_arguments: tuple[str, ...] = ()

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not is_agent_name(name):
            raise UsageError(f"invalid name of an agent: {name!r}", "use letters, digits, and - and _ inside")
        return name

    @field_validator("base", "branch")
    @classmethod
    def _check_branch(cls, branch: str | None) -> str | None:
        if branch is not None and (_BRANCH.fullmatch(branch) is None or branch.startswith("-")):
            raise UsageError(f"invalid branch of an agent: {branch!r}")
        return branch

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: Mapping[str, str]) -> Mapping[str, str]:
        for key in labels:
            if _LABEL_KEY.fullmatch(key) is None:
                raise UsageError(f"invalid name of a label: {key!r}")
        return labels

    @field_validator("environment")
    @classmethod
    def _check_environment(cls, environment: Mapping[str, str]) -> Mapping[str, str]:
        for name, value in environment.items():
            if _ENVIRONMENT_NAME.fullmatch(name) is None or not is_plain_value(value):
                raise UsageError(
                    f"invalid variable of an agent: {name}={value!r}",
                    "a shell would evaluate the value; pass it in a file or a label",
                )
        return environment

    @field_validator("passed_environment")
    @classmethod
    def _check_passed_environment(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if _ENVIRONMENT_NAME.fullmatch(name) is None:
                raise UsageError(f"invalid name of a variable: {name!r}")
        return names

    @property
    def address(self) -> str:
        """Return `name` on this machine, otherwise `name@host.provider`. Without a host, the provider creates one."""
        if self.host is None and self.provider == "local":
            return self.name
        return checked_address(f"{self.name}@{self.host or ''}.{self.provider}")

    def arguments(self) -> list[str]:
        """Return the arguments of `mngr create`."""
        words = [self.address, "--type", self.agent_type, "--no-connect", "--format", "json"]
        words += ["--no-ensure-clean", "--exclude-unclean", "--transfer", self.transfer]
        if self.branch is not None:
            words += ["--branch", f"{self.base or ''}:{self.branch}"]
        words += [word for key, value in self.labels.items() for word in ("--label", f"{key}={value}")]
        words += [word for key, value in self.environment.items() for word in ("--env", f"{key}={value}")]
        words += [word for name in self.passed_environment for word in ("--pass-env", name)]
        if self.message is not None:
            words.append(f"--message={self.message}")
        if self.is_approved:
            words.append("--yes")
        if self.new_host is not None:
            words += self.new_host.words()
        words += self.extra_arguments
        return [*words, "--", *self.command] if self.command else words


class Created(MngrAnswer):
    """An agent that mngr has created."""

    agent_id: str


class SshDetails(MngrAnswer):
    """The ssh connection to a host."""

    user: str = "root"
    host: str
    port: int = 22
    key_path: str | None = None
    known_hosts_path: str | None = None


class HostDetails(MngrAnswer):
    """The host of an agent in `mngr list`."""

    id: str = ""
    name: str = ""
    provider_name: str = ""
    state: str = ""
    """RUNNING, CRASHED, DESTROYED ... in mngr's words. A destroyed host stays in the listing."""
    ssh: SshDetails | None = None


class AgentDetails(MngrAnswer):
    """An agent in `mngr list`."""

    id: str
    name: str
    type: str = ""
    work_dir: str = ""
    create_time: str = ""
    initial_branch: str | None = None
    state: str = "UNKNOWN"
    pid: int | None = None
    labels: Mapping[str, str] = Field(default_factory=dict)
    host: HostDetails | None = None


class ListProblem(MngrAnswer):
    """A provider that did not answer, or an unreadable agent."""

    message: str
    help_text: str | None = None
    provider_name: str | None = None


class AgentListing(MngrAnswer):
    """The agents that mngr lists, and the problems."""

    agents: tuple[AgentDetails, ...] = ()
    errors: tuple[ListProblem, ...] = ()


class AgentFailure(MngrAnswer):
    """An agent for which a command failed, with the error message of mngr."""

    agent: str
    error: str


class ActionReport(MngrAnswer):
    """The result of stop, start or destroy. Every name is in exactly one of the three."""

    done: tuple[str, ...] = ()
    failed: tuple[AgentFailure, ...] = ()
    missing: tuple[str, ...] = ()
    """The names of agents that do not exist."""


class MessageReport(MngrAnswer):
    """Which agents got a message. Agents in `blocked` got it, but a dialog still waits for the user."""

    sent: tuple[str, ...] = ()
    failed: tuple[AgentFailure, ...] = ()
    blocked: tuple[AgentFailure, ...] = ()
    missing: tuple[str, ...] = ()


class Plugin(MngrAnswer):
    """A plugin of mngr, for example an agent type or a provider."""

    name: str
    version: str = "-"
    is_enabled: bool = Field(default=False, alias="enabled")

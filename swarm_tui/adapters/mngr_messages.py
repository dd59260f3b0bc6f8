"""The request by which mngr creates an agent, and the answers of mngr, as frozen models."""

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
# mngr has a shell evaluate what it gets by --env: nothing that a shell reads as more than itself may pass.
_ENVIRONMENT_VALUE: Final = re.compile(r"[\w./:,@%+= -]*")
_BRANCH: Final = re.compile(r"[\w./@+-]+")


def is_plain_value(value: str) -> bool:
    """Return whether a value can be handed to an agent as a variable: a shell on its way would act on other signs."""
    return _ENVIRONMENT_VALUE.fullmatch(value) is not None


def is_agent_name(name: str) -> bool:
    """Return whether this can be the name of an agent; then it is no option, path or part of a tmux target."""
    return _NAME.fullmatch(name) is not None


def checked_address(address: str) -> str:
    """Return a `name` or `name@host.provider` unchanged; raise UsageError when mngr could read it otherwise."""
    if _ADDRESS.fullmatch(address) is None:
        raise UsageError(f"{address!r} is no name of an agent", "letters, digits, - and _ inside")
    return address


def checked_host(name: str, provider: str) -> str:
    """Return `@name.provider`, by which mngr knows a host; raise UsageError when mngr could read it otherwise."""
    for each in (name, provider):
        if not is_agent_name(each):
            raise UsageError(f"{each!r} is no name of a host or a provider", "letters, digits, - and _ inside")
    return f"@{name}.{provider}"


class MngrAnswer(BaseModel):
    """A part of an answer; keys of newer versions are kept."""

    model_config = ConfigDict(frozen=True, extra="allow")


class NewHost(BaseModel):
    """A host that is made for an agent."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    idle_timeout: int
    """Seconds without a running program after which it ends by itself."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    build_arguments: tuple[str, ...] = ()
    start_arguments: tuple[str, ...] = ()

    def words(self) -> list[str]:
        """Return the part of the command line that is about it."""
        words = ["--new-host", "--idle-mode", "run", "--idle-timeout", f"{self.idle_timeout}s"]
        words += [word for key, value in self.labels.items() for word in ("--host-label", f"{key}={value}")]
        words += [word for argument in self.build_arguments for word in ("--build-arg", argument)]
        return [*words, *(word for argument in self.start_arguments for word in ("--start-arg", argument))]


class CreateRequest(BaseModel):
    """One agent to be created; raises UsageError for every value that mngr or a shell could read otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    agent_type: str = "command"
    command: tuple[str, ...] = ()
    source: Path
    """The repository that the agent gets a copy of; mngr is called there."""
    transfer: Transfer = "git-mirror"
    base: str | None = None
    branch: str | None = None
    """The new branch, made from `base`; without both mngr names it itself."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    message: str | None = None
    environment: Mapping[str, str] = Field(default_factory=dict)
    """Only constants and checked paths, since mngr has a shell evaluate the values."""
    passed_environment: tuple[str, ...] = ()
    """Names of variables that mngr takes from its own environment."""
    provider: str = "local"
    host: str | None = None
    new_host: NewHost | None = None
    """Have the provider make the host, which bears a name that no other has."""
    is_approved: bool = False
    """Answer yes to mngr's questions, such as whether Claude may trust the folder."""
    extra_arguments: tuple[str, ...] = ()

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if not is_agent_name(name):
            raise UsageError(f"{name!r} is no name of an agent", "letters, digits, - and _ inside")
        return name

    @field_validator("base", "branch")
    @classmethod
    def _check_branch(cls, branch: str | None) -> str | None:
        if branch is not None and (_BRANCH.fullmatch(branch) is None or branch.startswith("-")):
            raise UsageError(f"{branch!r} is no branch that an agent can be given")
        return branch

    @field_validator("labels")
    @classmethod
    def _check_labels(cls, labels: Mapping[str, str]) -> Mapping[str, str]:
        for key in labels:
            if _LABEL_KEY.fullmatch(key) is None:
                raise UsageError(f"{key!r} is no name of a label")
        return labels

    @field_validator("environment")
    @classmethod
    def _check_environment(cls, environment: Mapping[str, str]) -> Mapping[str, str]:
        for name, value in environment.items():
            if _ENVIRONMENT_NAME.fullmatch(name) is None or not is_plain_value(value):
                raise UsageError(
                    f"{name}={value!r} cannot be given to an agent as a variable",
                    "a shell would evaluate it; it has to go through a file or a label",
                )
        return environment

    @field_validator("passed_environment")
    @classmethod
    def _check_passed_environment(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if _ENVIRONMENT_NAME.fullmatch(name) is None:
                raise UsageError(f"{name!r} is no name of a variable")
        return names

    @property
    def address(self) -> str:
        """Return `name` on this machine, else `name@host.provider`; without a host, the provider makes a new one."""
        if self.host is None and self.provider == "local":
            return self.name
        return checked_address(f"{self.name}@{self.host or ''}.{self.provider}")

    def arguments(self) -> list[str]:
        """Return the command line that follows `mngr create`."""
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
    """An agent that mngr has just created."""

    agent_id: str


class SshDetails(MngrAnswer):
    """How a host is reached."""

    user: str = "root"
    host: str
    port: int = 22
    key_path: str | None = None
    known_hosts_path: str | None = None


class HostDetails(MngrAnswer):
    """The host of an agent as `mngr list` describes it."""

    id: str = ""
    name: str = ""
    provider_name: str = ""
    ssh: SshDetails | None = None


class AgentDetails(MngrAnswer):
    """An agent as `mngr list` describes it."""

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
    """A provider that did not answer, or an agent that could not be read."""

    message: str
    help_text: str | None = None
    provider_name: str | None = None


class AgentListing(MngrAnswer):
    """The agents that mngr found, and the problems it met."""

    agents: tuple[AgentDetails, ...] = ()
    errors: tuple[ListProblem, ...] = ()


class AgentFailure(MngrAnswer):
    """One agent for which a command failed, and mngr's error message."""

    agent: str
    error: str


class ActionReport(MngrAnswer):
    """What stop, start or destroy did; every given name is in exactly one of the three."""

    done: tuple[str, ...] = ()
    failed: tuple[AgentFailure, ...] = ()
    missing: tuple[str, ...] = ()
    """Names of agents that do not exist."""


class MessageReport(MngrAnswer):
    """Which agents got a message; those in `blocked` got it, and still show a dialog that waits for a person."""

    sent: tuple[str, ...] = ()
    failed: tuple[AgentFailure, ...] = ()
    blocked: tuple[AgentFailure, ...] = ()
    missing: tuple[str, ...] = ()


class Plugin(MngrAnswer):
    """A plugin of mngr, such as an agent type or a provider."""

    name: str
    version: str = "-"
    is_enabled: bool = Field(default=False, alias="enabled")

"""The adapter to mngr: every call is one process with JSON on its output, nothing on its input and a time limit."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from swarm_tui.adapters.mngr_messages import (
    ActionReport,
    AgentDetails,
    AgentFailure,
    AgentListing,
    CommandReport,
    Created,
    CreateRequest,
    ExecResult,
    ListProblem,
    MessageReport,
    Plugin,
    checked_address,
)
from swarm_tui.adapters.process import Finished, run_process, scrubbed_environment
from swarm_tui.errors import AdapterError, AgentExists, UsageError
from swarm_tui.model.sweep import MngrSettings
from swarm_tui.model.text import plain, plain_lines

_Model = TypeVar("_Model", bound=BaseModel)

CREATE_TIMEOUT: Final = 600.0
CALL_TIMEOUT: Final = 120.0

_OK, _ERROR, _TIMEOUT_OR_USAGE, _PROVIDER_INACCESSIBLE, _BLOCKED = 0, 1, 2, 6, 7
_UNKNOWN_AGENT: Final = re.compile(r"Agent lookup failed for (\S+); discovery returned")
_EXISTS: Final = re.compile(r"An agent named .* already exists")
_ERROR_LINE: Final = re.compile(r"^Error: (.*)$", re.MULTILINE)
# Of a traceback, also of one in a group of exceptions, which is framed and ends with a line of dashes.
_EXCEPTION_LINE: Final = re.compile(
    r"^[ |]*(?:\w+\.)+\w*(?:Error|Exception|Exists|Failed): (.*(?:\n ! .*)*)$", re.MULTILINE
)
_REMEDY: Final = re.compile(r"\s*\[([^\[\]]*(?:\[[^\]]*\][^\[\]]*)*)\]\s*$")
_SETTING_NAMES: Final = ("MNGR_HOST_DIR", "TMUX_TMPDIR", "MNGR_PREFIX", "MNGR_ROOT_NAME")


def current_settings(path: str, environment: Mapping[str, str] | None = None) -> MngrSettings:
    """Return the values that make a call of this mngr meet the same agents later, from another environment too."""
    given = os.environ if environment is None else environment
    home = given.get("HOME") or str(Path.home())
    root = given.get("MNGR_ROOT_NAME") or "mngr"
    return MngrSettings(
        path=path,
        host_dir=str(Path(given.get("MNGR_HOST_DIR") or f"{home}/.{root}").expanduser().absolute()),
        tmux_tmpdir=given.get("TMUX_TMPDIR") or None,
        prefix=given.get("MNGR_PREFIX") or f"{root}-",
        home=home,
    )


def mngr_environment(settings: MngrSettings, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the scrubbed environment in which mngr and tmux meet the agents that the settings speak of."""
    environment = {name: value for name, value in scrubbed_environment().items() if name not in _SETTING_NAMES}
    environment["MNGR_PREFIX"] = settings.prefix
    for name, value in (
        ("MNGR_HOST_DIR", settings.host_dir),
        ("TMUX_TMPDIR", settings.tmux_tmpdir),
        ("HOME", settings.home),
    ):
        if value is not None:
            environment[name] = value
    return environment | dict(extra or {})


class MngrAdapter(Protocol):
    """Everything that swarm-tui asks of mngr."""

    async def version(self) -> str: ...

    async def plugins(self) -> tuple[Plugin, ...]: ...

    async def create(self, request: CreateRequest, timeout: float = CREATE_TIMEOUT) -> Created:
        """Create an agent; AgentExists when one of that name is there."""
        ...

    async def list_agents(self, include: str | None = None, provider: str | None = "local") -> AgentListing:
        """List agents, filtered by a CEL expression; provider None asks all of them."""
        ...

    async def stop(self, names: Sequence[str]) -> ActionReport: ...

    async def start(self, names: Sequence[str]) -> ActionReport: ...

    async def destroy(self, names: Sequence[str], *, is_branch_deleted: bool = False) -> ActionReport: ...

    async def message(self, names: Sequence[str], text: str) -> MessageReport: ...

    async def exec_command(self, names: Sequence[str], command: str) -> CommandReport:
        """Run a shell command, which must be a constant, in the work dir of each agent; starts none."""
        ...

    async def pull(self, name: str, path: str, destination: Path) -> None:
        """Copy a file or folder (`path/`: its content) of an agent's work dir with rsync."""
        ...

    async def push(self, source: Path, name: str, path: str) -> None:
        """Copy a file or folder into an agent's work dir with rsync."""
        ...

    async def transcript(self, name: str) -> tuple[dict[str, Any], ...]: ...

    async def events(self, name: str, source: str, tail: int | None = None) -> tuple[dict[str, Any], ...]: ...

    async def config_path(self, scope: str = "user") -> Path: ...

    async def set_config(self, key: str, value: str, scope: str = "user") -> None: ...

    def connect_command(self, name: str) -> list[str]:
        """Return the command line that puts a person in front of the agent's terminal."""
        ...


class Mngr:
    """The real mngr, at a path, in an environment that stays the same for all its calls."""

    def __init__(self, path: str, environment: Mapping[str, str], cwd: Path | None = None) -> None:
        self.path = path
        self.environment = dict(environment) | {"MNGR_HEADLESS": "1"}
        self._cwd = cwd

    async def version(self) -> str:
        finished = await self._run(["--version"])
        return finished.text.strip().rpartition(" ")[2]

    async def plugins(self) -> tuple[Plugin, ...]:
        answer = await self._ask(["plugin", "list"])
        return tuple(Plugin.model_validate(plugin) for plugin in answer.get("plugins", ()))

    async def create(self, request: CreateRequest, timeout: float = CREATE_TIMEOUT) -> Created:
        finished = await self._call(["create", *request.words()], cwd=request.source, timeout=timeout)
        if finished.code != _OK and _EXISTS.search(finished.error_text):
            raise AgentExists(f"there is an agent named {request.name} already", "it can be taken over or destroyed")
        return _validated(Created, _answer(_checked(finished)), finished)

    async def list_agents(self, include: str | None = None, provider: str | None = "local") -> AgentListing:
        words = ["list", "--format", "json"]
        words += ["--provider", provider] if provider is not None else []
        words += ["--include", include] if include is not None else []
        finished = await self._call(words)
        return _listing(_answer(_checked(finished, allowed=(_OK, _PROVIDER_INACCESSIBLE))))

    async def stop(self, names: Sequence[str]) -> ActionReport:
        return await self._act(["stop"], names, "stopped_agents")

    async def start(self, names: Sequence[str]) -> ActionReport:
        return await self._act(["start"], names, "started_agents")

    async def destroy(self, names: Sequence[str], *, is_branch_deleted: bool = False) -> ActionReport:
        flags = ["--force", "--remove-created-branch"] if is_branch_deleted else ["--force"]
        return await self._act(["destroy", *flags], names, "destroyed_agents")

    async def message(self, names: Sequence[str], text: str) -> MessageReport:
        # Said outright, for a person's settings may say otherwise: an agent that has ended would begin anew.
        finished, answer, missing = await self._ask_about(["message", "--no-start"], names, stdin=text.encode())
        _checked(finished, allowed=(_OK, _BLOCKED) if not answer else (_OK, _ERROR, _BLOCKED))
        return MessageReport(
            sent=tuple(answer.get("successful_agents", ())),
            failed=_failures(answer.get("failed_agents", ())),
            blocked=_failures(answer.get("blocked_agents", ())),
            missing=missing,
        )

    async def exec_command(self, names: Sequence[str], command: str) -> CommandReport:
        if command.startswith("-"):
            raise UsageError(f"{command!r} is no command", "it begins with a dash")
        finished, answer, missing = await self._ask_about(["exec", "--no-start"], names, after=[command])
        _checked(finished, allowed=(_OK,) if not answer else (_OK, _ERROR))
        return CommandReport(
            results=tuple(ExecResult.model_validate(result) for result in answer.get("results", ())),
            failed=_failures(answer.get("failed_agents", ())),
            missing=missing,
        )

    async def pull(self, name: str, path: str, destination: Path) -> None:
        await self._run(["rsync", f"{checked_address(name)}:{path}", str(destination.absolute())])

    async def push(self, source: Path, name: str, path: str) -> None:
        trailing = "/" if source.is_dir() else ""
        await self._run(["rsync", f"{source.absolute()}{trailing}", f"{checked_address(name)}:{path}"])

    async def transcript(self, name: str) -> tuple[dict[str, Any], ...]:
        finished = await self._run(["transcript", checked_address(name), "--format", "jsonl"])
        return _json_lines(finished.text)

    async def events(self, name: str, source: str, tail: int | None = None) -> tuple[dict[str, Any], ...]:
        limit = ["--tail", str(tail)] if tail is not None else []
        finished = await self._run(["event", checked_address(name), "--source", source, *limit, "--format", "jsonl"])
        return _json_lines(finished.text)

    async def config_path(self, scope: str = "user") -> Path:
        return Path((await self._run(["config", "path", "--scope", scope])).text.strip())

    async def set_config(self, key: str, value: str, scope: str = "user") -> None:
        await self._run(["config", "set", "--scope", scope, key, value])

    def connect_command(self, name: str) -> list[str]:
        return [self.path, "connect", checked_address(name)]

    async def _act(self, words: list[str], names: Sequence[str], done_key: str) -> ActionReport:
        """Run a verb on agents: one unknown name among them would make mngr do nothing for all of them."""
        finished, answer, missing = await self._ask_about(words, names)
        if not answer:
            _checked(finished)
        done = tuple(answer.get(done_key, ()))
        failed = {failure.agent: failure for failure in _failures(answer.get("failures", ()))}
        asked = [name for name in dict.fromkeys(names) if name not in missing]
        for name in asked:
            if name.partition("@")[0] not in done and name not in failed:
                failed[name] = AgentFailure(agent=name, error="mngr did not say what became of it")
        return ActionReport(done=done, failed=tuple(failed.values()), missing=missing)

    async def _ask_about(
        self, words: list[str], names: Sequence[str], *, stdin: bytes | None = None, after: Sequence[str] = ()
    ) -> tuple[Finished, dict[str, Any], tuple[str, ...]]:
        """Call mngr about agents, again without the names it does not know; return its answer and those names."""
        asked = [checked_address(name) for name in dict.fromkeys(names)]
        missing: list[str] = []
        while True:
            finished = (
                await self._call([*words, *asked, *after, "--format", "json"], stdin=stdin)
                if asked
                else Finished(tuple(words), _OK, b"", b"", 0.0, False)
            )
            unknown = [name for name in asked if name in _UNKNOWN_AGENT.findall(finished.error_text)]
            if not unknown:
                return finished, _answer(finished), tuple(missing)
            missing += unknown
            asked = [name for name in asked if name not in unknown]

    async def _ask(self, words: list[str]) -> dict[str, Any]:
        return _answer(await self._run([*words, "--format", "json"]))

    async def _run(self, words: list[str]) -> Finished:
        return _checked(await self._call(words))

    async def _call(
        self, words: list[str], *, cwd: Path | None = None, stdin: bytes | None = None, timeout: float = CALL_TIMEOUT
    ) -> Finished:
        return await run_process(
            [self.path, *words], cwd=cwd or self._cwd, environment=self.environment, stdin=stdin, timeout=timeout
        )


def _checked(finished: Finished, allowed: Sequence[int] = (_OK,)) -> Finished:
    """Return the call back when its code is an expected one, else raise mngr's own words and its remedy."""
    if finished.code in allowed:
        return finished
    errors = _ERROR_LINE.findall(plain_lines(finished.error_text))
    lines = plain_lines(finished.error_text).strip().splitlines()
    told = errors or _EXCEPTION_LINE.findall("\n".join(lines)) or lines or [f"it ended with code {finished.code}"]
    said = told[-1]
    remedy = _REMEDY.search(said)
    message = _REMEDY.sub("", said) if remedy else said
    verb = finished.arguments[1] if len(finished.arguments) > 1 else ""
    raise AdapterError(f"mngr {verb} failed: {plain(message, 600)}", plain(remedy.group(1), 300) if remedy else "")


def _answer(finished: Finished) -> dict[str, Any]:
    """Return the last JSON object on the output, or {} when there is none."""
    for line in reversed(finished.text.splitlines()):
        if line.startswith("{"):
            try:
                answer = json.loads(line)
            except ValueError:
                continue
            if isinstance(answer, dict):
                return answer
    return {}


def _json_lines(text: str) -> tuple[dict[str, Any], ...]:
    lines = []
    for line in text.splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            lines.append(value)
    return tuple(lines)


def _validated(model: type[_Model], answer: dict[str, Any], finished: Finished) -> _Model:
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        said = plain(finished.text, 300)
        raise AdapterError(
            f"mngr {finished.arguments[1]} answered what swarm-tui does not understand: {said!r}"
        ) from error


def _listing(answer: dict[str, Any]) -> AgentListing:
    """Read a listing agent by agent: one that cannot be read becomes a problem, not the end of all."""
    agents, problems = [], []
    for agent in answer.get("agents", ()):
        try:
            agents.append(AgentDetails.model_validate(agent))
        except ValidationError as error:
            name = agent.get("name") if isinstance(agent, dict) else agent
            problems.append(ListProblem(message=f"the agent {name!r} cannot be read: {error.errors()[0]['msg']}"))
    for problem in answer.get("errors", ()):
        known = {"message": "unknown problem"} | (problem if isinstance(problem, dict) else {"message": str(problem)})
        problems.append(ListProblem.model_validate(known))
    return AgentListing(agents=tuple(agents), errors=tuple(problems))


def _failures(found: Sequence[dict[str, Any]]) -> tuple[AgentFailure, ...]:
    """Read failures: messages name them agent and error, clean-ups agent_name and message."""
    return tuple(
        AgentFailure(
            agent=str(failure.get("agent") or failure.get("agent_name") or "?"),
            error=plain(str(failure.get("error") or failure.get("message") or failure.get("reason") or failure)),
        )
        for failure in found
    )
